"""The Machines in the API: read from a cache, written by patches of the version that was read.

What a writer has to know of its own writes is kept here: which version of an object is our own doing, and so no news to us.
"""

from __future__ import annotations

from collections.abc import Mapping

from ingot.api.machine import MACHINES, Machine
from ingot.api.meta import Key
from ingot.kube import Client, Conflict, Informer, NotFound


class Records:
    def __init__(self, client: Client, machines: Informer[Machine]) -> None:
        self._client = client
        self._machines = machines
        self._ours: dict[Key, str] = {}

    def get(self, key: Key) -> Machine | None:
        return self._machines.get(key)

    async def look_again(self, key: Key) -> Machine | None:
        """The Machine as the API has it now."""
        try:
            found = await self._client.get(MACHINES, key)
        except NotFound:
            return None
        self._machines.observe(found)
        return found

    async def still_as(self, machine: Machine) -> None:
        """Raises `Conflict` where the API has another version by now.

        For what is written elsewhere on this Machine's behalf: what was read there before this is called, and is patched with
        its version after it, is patched for a Machine that was still the same when it was read.
        """
        found = await self.look_again(machine.key)
        if found is None or found.metadata.resource_version != machine.metadata.resource_version:
            raise _changed(machine.key)

    async def write(self, machine: Machine, patch: Mapping[str, object], *, subresource: str = "") -> Machine:
        """Patch the version that was read; an empty patch is not sent. Raises `Conflict` where that is not the newest one."""
        if not patch:
            return machine
        try:
            written = await self._client.patch(
                MACHINES,
                machine.key,
                patch,
                subresource=subresource,
                resource_version=machine.metadata.resource_version,
            )
        except NotFound:
            raise _changed(machine.key) from None
        self._ours[machine.key] = written.metadata.resource_version
        self._machines.observe(written)
        return written

    def is_ours(self, machine: Machine) -> bool:
        """Whether this version is what we wrote last."""
        return self._ours.get(machine.key) == machine.metadata.resource_version

    def forget(self, key: Key) -> None:
        self._ours.pop(key, None)


def _changed(key: Key) -> Conflict:
    return Conflict(409, "Conflict", f"Machine {key} has changed, or gone, meanwhile")
