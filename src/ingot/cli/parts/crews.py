"""What the operator is made up of: the parts that work at one kind of thing come as a crew, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ingot.api.baremetalhost import BareMetalHost
from ingot.cli.parts.listen import Listen, cannot_listen
from ingot.cli.parts.state import StateFolder
from ingot.kube import Client, Controller, Elector, EventRecorder, Informer
from ingot.kube.health import Check

T = TypeVar("T")
Job = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Shop:
    """What every crew works with. Whatever is entered into the stack is left when the operator ends, in the opposite order."""

    stack: AsyncExitStack
    state: StateFolder
    client: Client
    recorder: EventRecorder
    elector: Elector | None

    def acts(self) -> bool:
        """Whether this process is the one that works."""
        return self.elector is None or self.elector.leadership.held

    async def listening(
        self, server: AbstractAsyncContextManager[T], what: str, listen: Listen, option: str
    ) -> T:
        """Enter what listens there. `what` and `option` are for the sentence when it cannot."""
        try:
            return await self.stack.enter_async_context(server)
        except OSError as error:
            raise cannot_listen(error, listen, what, option) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """What one crew wants to be run."""

    informers: list[Informer[Any]]
    controllers: list[Controller]
    work: list[Job] = field(default_factory=list)
    """What the leader runs beside its controllers."""
    beside: list[Job] = field(default_factory=list)
    """What runs in any case."""
    prepare: Job | None = None
    """What the leader does before it begins."""
    checks: dict[str, Check] = field(default_factory=dict)
    announcement: Callable[[], str]
    """What there is to say once it works."""
    hosts: Informer[BareMetalHost] | None = None
    """The hosts, for crews that read them too; one of the informers."""
