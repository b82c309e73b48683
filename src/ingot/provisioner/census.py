"""Which hosts there are: told to a back end, so that it can drop the records of those that are gone.

A record outlives its host where somebody took our finalizer off, restored the API from an older backup, or renamed a host. Nobody
asks for such a record by its name, so the back end has to look for it by itself: now and then it compares what it knows with
the `Census`. What no host owned for ten minutes is dropped, after the permit was asked, and the machine stays as it is. A record
of a machine that holds an instance is kept: for a host that is made again without its status it is all that tells of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from ingot.api.meta import Key
from ingot.provisioner.answers import Permit

T = TypeVar("T")

ORPHANED_AFTER: Final = 600.0
"""Seconds. Whoever restores hosts, or moves them here, needs some minutes for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """What tells which record is a host's."""

    key: Key
    uid: str
    backend_id: str = ""
    boot_mac: str = ""
    address: str = ""
    """Of its BMC."""


class Census(Protocol):
    """Who there is. All of it is asked anew at each look."""

    def hosts(self) -> Sequence[KnownHost] | None:
        """Every host; None while that is not known. That there is none at all is no knowledge either: nothing is dropped."""
        ...

    def covers(self, namespace: str) -> bool:
        """Whether the hosts of this namespace are among them."""
        ...

    def permit(self, key: Key) -> Permit:
        """Asked with `Act.DELETE`, just before the record of this host is dropped."""
        ...


class Suspects:
    """What nobody owned at the last look, and since when."""

    def __init__(self, after: float = ORPHANED_AFTER, clock: Callable[[], float] = time.monotonic) -> None:
        self._after = after
        self._clock = clock
        self._since: dict[str, float] = {}

    def confirmed(self, found: Iterable[tuple[str, T]]) -> list[T]:
        """Those of this look, by their names, that were found at each look for long enough, and never only once."""
        now, at, before = dict(found), self._clock(), self._since
        self._since = {name: before.get(name, at) for name in now}
        return [one for name, one in now.items() if name in before and at - before[name] >= self._after]
