"""Which hosts there are: told to a back end, so that it can drop the records of those that are gone.

A record outlives its host where somebody took our finalizer off, restored the API from an older backup, or renamed a host. Nobody
asks for such a record by its name, so the back end has to look for it by itself: now and then it compares what it knows with
the `Census`. What no host owns at two looks in a row is dropped, after the permit was asked, and the machine stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ingot.api.meta import Key
from ingot.provisioner.answers import Permit

T = TypeVar("T")


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
        """Every host; None while that is not known."""
        ...

    def covers(self, namespace: str) -> bool:
        """Whether the hosts of this namespace are among them."""
        ...

    def permit(self, key: Key) -> Permit:
        """Asked with `Act.DELETE`, just before the record of this host is dropped."""
        ...


class Suspects:
    """What nobody owned at the last look."""

    def __init__(self) -> None:
        self._before: frozenset[str] = frozenset()

    def confirmed(self, found: Iterable[tuple[str, T]]) -> list[T]:
        """Those of this look, by their names, that were found at the last one as well."""
        now = dict(found)
        before, self._before = self._before, frozenset(now)
        return [one for name, one in now.items() if name in before]
