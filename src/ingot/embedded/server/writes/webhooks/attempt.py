"""What is being attempted: the part of a write that webhooks are chosen by and told about, apart from the object itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from ingot.api.meta import Key
from ingot.embedded.server.kinds.kind import Kind

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"


class User(Protocol):
    """Whoever attempts it."""

    @property
    def name(self) -> str: ...

    @property
    def uid(self) -> str: ...

    @property
    def groups(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class _Itself:
    name: str = "system:apiserver"
    uid: str = ""
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")


ITSELF: Final[User] = _Itself()
"""The server, when it tidies up."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """`key.name` is empty for an object that gets its name later. `options` are the client's own, as the API writes them."""

    operation: str
    kind: Kind
    key: Key
    user: User
    subresource: str = ""
    dry_run: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
