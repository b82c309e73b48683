"""Records that no host owns: dropped, unless the machine holds an instance, and the machines left as they are."""

from __future__ import annotations

import asyncio
from typing import Final

from ingot.provisioner import Act, Census
from ingot.provisioner.census import ORPHANED_AFTER, Suspects
from ingot.provisioner.demo.carrying_out import sight
from ingot.provisioner.demo.hall import Hall, Known

LOOK_AGAIN: Final = 60.0


class Orphans:
    """Looks for them now and then, from the moment that somebody says whom there is."""

    def __init__(self, hall: Hall, after: float = ORPHANED_AFTER) -> None:
        self._hall = hall
        self._suspects = Suspects(after)
        self._looking: asyncio.Task[None] | None = None

    def follow(self, census: Census) -> None:
        self.close()
        self._looking = asyncio.create_task(self._look(census), name="look for records that nobody owns")

    def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self, census: Census) -> None:
        while True:
            await self.sweep(census)
            await asyncio.sleep(LOOK_AGAIN)

    async def sweep(self, census: Census) -> None:
        hosts = census.hosts()
        if not hosts or self._hall.trouble is not None:
            return
        owned = {host.key for host in hosts}
        found = [
            (str(key), Known(key, machine, machine.record))
            for key, machine in self._hall.machines.items()
            if machine.record is not None and key not in owned and census.covers(key.namespace)
        ]
        for known in self._suspects.confirmed(found):
            seen = sight(known.machine, known.record)
            if known.record.busy_with() is not None or seen.holds_instance:
                continue
            refusal = await census.permit(known.key)(Act.DELETE, seen)
            if refusal is None and known.machine.record is known.record:
                known.machine.record = None
                self._hall.note(known.key)
                await self._hall.written()
