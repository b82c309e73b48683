"""The hosts as claimants see them: whose is whose, and which can be had.

A view of the informer's cache. A host that somebody here is about to claim is reserved until the answer has come, so that two
workers of one process never ask for the same host; what other processes do is settled by the version that every patch carries.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.meta import Key, ObjectReference
from ingot.kube import Client, Informer, NotFound
from ingot.machines.choosing import Tally, Wish, choose, choose_free
from ingot.machines.targets import Target, difference
from ingot.machines.vacancies import claimant, why_taken

_CONSUMER: Final = "consumer"
_VACANT: Final = "vacant"

INDEXES: Final[Mapping[str, Callable[[BareMetalHost], list[str]]]] = {
    _CONSUMER: lambda host: [claimant(host.spec.consumer_ref)] if host.spec.consumer_ref else [],
    _VACANT: lambda host: [host.metadata.namespace] if why_taken(host) is None else [],
}
"""What an informer of hosts needs so that the pool finds them quickly."""


def host_informer(client: Client, *, namespace: str = "") -> Informer[BareMetalHost]:
    return Informer(client, BARE_METAL_HOSTS, namespace=namespace, indexes=INDEXES)


class Pool:
    def __init__(self, client: Client, hosts: Informer[BareMetalHost]) -> None:
        self._client = client
        self._hosts = hosts
        self._reserved: set[Key] = set()
        self._heirs: list[Callable[[Key], None]] = []

    def get(self, key: Key) -> BareMetalHost | None:
        return self._hosts.get(key)

    def of(self, consumer: ObjectReference) -> list[BareMetalHost]:
        """The hosts that belong to it; more than one only if somebody else gave it another."""
        return self._hosts.by_index(_CONSUMER, claimant(consumer))

    def choose(self, wish: Wish, namespaces: Iterable[str]) -> BareMetalHost | None:
        """The host to ask for, of those that nobody here asks for already."""
        vacant = (host for namespace in namespaces for host in self._hosts.by_index(_VACANT, namespace))
        return choose_free((host for host in vacant if host.key not in self._reserved), wish)

    def why_none(self, wish: Wish, namespaces: Iterable[str]) -> str:
        """Why there is no host to be had, for a person. Looks at all of them."""
        tally, among = Tally(), set(namespaces)
        hosts = [host for host in self._hosts.items() if host.metadata.namespace in among]
        choose((host for host in hosts if host.key not in self._reserved), wish, tally=tally)
        if about_to_be := sum(host.key in self._reserved for host in hosts):
            tally.taken["claimed already"] += about_to_be
        return tally.sentence()

    @contextlib.contextmanager
    def reserved(self, key: Key) -> Iterator[None]:
        """Nobody else here chooses this host meanwhile."""
        self._reserved.add(key)
        try:
            yield
        finally:
            self._reserved.discard(key)
            for heir in self._heirs:
                heir(key)

    def is_reserved(self, key: Key) -> bool:
        return key in self._reserved

    def when_not_reserved(self, heir: Callable[[Key], None]) -> None:
        """Have it told of every host that was reserved and is not any more, whether it was taken or not."""
        self._heirs.append(heir)

    async def make(self, host: BareMetalHost, target: Target) -> BareMetalHost:
        """Have the host be the target's, by one patch of the version that was looked at; raises `Conflict` when it is older."""
        return await self.patch(host, difference(host, target))

    async def patch(self, host: BareMetalHost, change: Mapping[str, object]) -> BareMetalHost:
        if not change:
            return host
        written = await self._client.patch(
            BARE_METAL_HOSTS, host.key, dict(change), resource_version=host.metadata.resource_version
        )
        self._hosts.observe(written)
        return written

    async def look_again(self, key: Key) -> BareMetalHost | None:
        """The host as the API has it now: somebody else wrote it before us, and the watch may lag behind."""
        try:
            found = await self._client.get(BARE_METAL_HOSTS, key)
        except NotFound:
            return None
        self._hosts.observe(found)
        return found
