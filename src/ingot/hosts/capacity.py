"""How many hosts may boot a ramdisk over the network at the same time.

Network boot goes through one DHCP and one TFTP server, so there are only so many places. A host takes one while it is
inspected, provisioned or deprovisioned, and one that boots from virtual media takes none. Places are counted from what is
known of the hosts, plus those that were given away in passes which have not written yet: two hosts never get the same place.

Who finds no place is `delayed` and waits in line. It is woken when a place is free; nobody asks again and again. Who is woken
and does not ask, because it does not want the place any more, has left the line, and the next one is woken.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from ingot.api.baremetalhost import BareMetalHost, OperationalStatus, State
from ingot.api.meta import Key
from ingot.kube import Change, Informer

TAKES_A_PLACE: Final = frozenset({State.INSPECTING, State.PROVISIONING, State.DEPROVISIONING})

_IDLE: Final = frozenset({OperationalStatus.DELAYED, OperationalStatus.ERROR, OperationalStatus.DETACHED})
"""A host that waits for its next try boots nothing meanwhile."""


class Capacity:
    """The places, who has one, and who waits for one."""

    def __init__(self, limit: int, boots_over_network: Callable[[str], bool]) -> None:
        self._limit = limit
        self._boots_over_network = boots_over_network
        self._holders: set[Key] = set()
        self._promised: set[Key] = set()
        self._waiting: dict[Key, None] = {}
        self._turned_away: set[Key] = set()
        """Those that asked for a place in their present pass, and did not get one."""
        self.wake: Callable[[Key], None] = lambda key: None
        """Told whose turn it is."""

    @property
    def limit(self) -> int:
        return self._limit

    def follow(self, hosts: Informer[BareMetalHost]) -> None:
        hosts.subscribe(self._changed)

    def admits(self, host: BareMetalHost) -> bool:
        """Whether the host has, or gets, a place. It keeps it until `pass_over`, and then by what its status says."""
        key = host.key
        if not self._boots_over_network(host.spec.bmc.address):
            return True
        taken = self._holders | self._promised
        if key not in taken and len(taken) >= self._limit:
            self._waiting.setdefault(key)
            self._turned_away.add(key)
            return False
        self._waiting.pop(key, None)
        self._promised.add(key)
        return True

    def pass_over(self, key: Key) -> None:
        """The pass of this host has ended, whatever it came to; what it wrote is known by now."""
        self._promised.discard(key)
        if key not in self._turned_away:
            self._waiting.pop(key, None)
        self._turned_away.discard(key)
        self._call_next()

    def _changed(self, change: Change[BareMetalHost]) -> None:
        if change.new is not None and self._holds(change.new):
            self._holders.add(change.key)
            return
        if change.new is None:
            self._waiting.pop(change.key, None)
        if change.key in self._holders:
            self._holders.discard(change.key)
            self._call_next()

    def _holds(self, host: BareMetalHost) -> bool:
        return (
            host.status.provisioning.state in TAKES_A_PLACE
            and host.status.operational_status not in _IDLE
            and self._boots_over_network(host.spec.bmc.address)
        )

    def _call_next(self) -> None:
        if not self._waiting:
            return
        free = self._limit - len(self._holders | self._promised)
        for key in list(islice(self._waiting, max(0, free))):
            self.wake(key)
