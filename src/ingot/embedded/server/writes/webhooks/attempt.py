"""What is being attempted: the part of a write that webhooks are chosen by and told about, apart from the object itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

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


class Attempt(NamedTuple):
    """`key.name` is empty for an object that gets its name later; `propagation` says what a deletion does to dependents."""

    operation: str
    kind: Kind
    key: Key
    user: User
    subresource: str = ""
    dry_run: bool = False
    propagation: str = ""
