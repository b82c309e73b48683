"""Who waits for a host, machines and claims alike, and whom a host that becomes vacant wakes.

A host that becomes vacant, or gets other labels while it is, wakes the one that has waited longest of those it fits: as many
are woken as there are hosts to be had, never all of them for one. Who was woken and took another host, or none, hands its chance
on to the next; nobody is woken twice for the same vacancy. A host that somebody here asked for and did not take was vacant all
the time, and those who looked meanwhile did not see it: it is offered then. Whatever is missed all the same (what somebody may
have can change without any host changing) is caught by looking again after half a minute, as Metal3 does.

Belongs to one event loop, and nothing here waits: whoever finds no host and enters in the same breath misses no host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from prometheus_client import Gauge

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.meta import Key
from ingot.kube import Again, Change, Informer
from ingot.machines.pool import Pool
from ingot.machines.vacancies import why_taken

LOOK_AGAIN: Final = 30.0
"""Seconds, a little more by the controller's jitter."""

WAITING: Final = Gauge(
    "ingot_waiting_for_a_host", "Machines and claims that wait for a host to become vacant."
)

Fits = Callable[[BareMetalHost], bool]
Wake = Callable[[], None]


@dataclass(slots=True)
class _Place:
    """A place in the line, kept until its owner leaves."""

    fits: Fits
    wake: Wake
    woken_for: Key | None = None


class WaitingList:
    """Places are told apart by who has them, as `vacancies.claimant` says it."""

    def __init__(self, hosts: Informer[BareMetalHost], pool: Pool) -> None:
        self._hosts = hosts
        self._pool = pool
        self._line: dict[str, _Place] = {}
        self._asked: dict[Key, set[str]] = {}
        """For each vacant host, those who were woken for it."""
        hosts.subscribe(self._changed)
        pool.when_not_reserved(self._hand_on)

    def __len__(self) -> int:
        return len(self._line)

    def __contains__(self, who: str) -> bool:
        return who in self._line

    def enter(self, who: str, *, fits: Fits, wake: Wake) -> Again:
        """Wait for a host for which `fits` is true; whoever waits already keeps its place. Returns when to look again anyhow."""
        place = self._line.get(who)
        if place is None:
            self._line[who] = _Place(fits, wake)
            WAITING.set(len(self._line))
        else:
            missed, place.woken_for = place.woken_for, None
            place.fits, place.wake = fits, wake
            if missed is not None and self._pool.is_reserved(missed):
                # It did not see the host that it was woken for, and is asked again if that is not taken.
                self._asked.get(missed, set()).discard(who)
            else:
                self._hand_on(missed)
        return Again(LOOK_AGAIN, "no host can be had")

    def leave(self, who: str) -> None:
        """It has a host, or is gone."""
        place = self._line.pop(who, None)
        if place is not None:
            WAITING.set(len(self._line))
            self._hand_on(place.woken_for)

    def _changed(self, change: Change[BareMetalHost]) -> None:
        old, new = change.old, change.new
        if new is None or why_taken(new) is not None:
            self._asked.pop(change.key, None)
        elif old is None or why_taken(old) is not None or old.metadata.labels != new.metadata.labels:
            self._asked[change.key] = set()
            self._offer(new)

    def _hand_on(self, key: Key | None) -> None:
        host = self._hosts.get(key) if key is not None else None
        if host is not None and why_taken(host) is None:
            self._offer(host)

    def _offer(self, host: BareMetalHost) -> None:
        asked = self._asked.setdefault(host.key, set())
        for who, place in self._line.items():
            if place.woken_for is None and who not in asked and place.fits(host):
                asked.add(who)
                place.woken_for = host.key
                place.wake()
                return
