"""The lasting part of a server: its plate, its record, its disks and its log.

What runs on the server (BMC, firmware, agent) comes and goes and works on this.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ingot.lab.disk import Disks
from ingot.lab.faults import Counted, Faults, in_force, spend
from ingot.lab.labfile import Plate
from ingot.lab.ledger import Ledger

_log = logging.getLogger(__name__)


class Chassis:
    def __init__(self, plate: Plate, folder: Path, ledger: Ledger) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.plate = plate
        self.folder = folder
        self.disks = Disks(folder)
        self.booted_ignition: Final = folder / "booted.ign"
        """The Ignition config that the last boot ran with. Beside the record, which is written often."""
        self.held_at = ""
        """Where the server waits now because it is held there."""
        self._released = asyncio.Event()
        self.record: Final = ledger.record(plate.name, once_in=folder / "record.json")
        self._ledger = ledger

    async def save(self) -> None:
        """Return when the record is on disk; call it before anything is acknowledged."""
        await self._ledger.save(self.plate.name, self.record)

    @property
    def faults(self) -> Faults:
        """How the server misbehaves at this moment: the steady faults and the plan's."""
        if self.record.plan is None:
            return self.record.faults
        return in_force(self.record.faults, self.record.plan, datetime.now(UTC))

    def spend(self, fault: Counted) -> bool:
        """Whether a fault that has a count acts this time; it then has one time less."""
        acts = spend(fault, self.record.faults, self.record.plan, datetime.now(UTC))
        if acts:
            self.record.note_fault(fault)
        return acts

    def acts(self, fault: str) -> bool:
        """Whether this fault, which has no count, holds now. Ask where it is acted out: that is noted, with the next save."""
        holds = bool(getattr(self.faults, fault))
        if holds:
            self.record.note_fault(fault)
        return holds

    async def held(self, place: str) -> None:
        """Wait here for as long as the server is to be held at this place; otherwise go on at once."""
        if self.record.hold != place:
            return
        self.note(f"held at {place} until it is released")
        self.held_at = place
        try:
            while self.record.hold == place:
                self._released.clear()
                await self._released.wait()
        finally:
            self.held_at = ""

    def hold(self, place: str) -> None:
        """Hold the server when it comes to this place, and release it from any other; "" holds it nowhere."""
        self.record.hold = place
        self._released.set()

    def note(self, text: str) -> None:
        """A line in the server's own log, kept with the next save, and in the farm's."""
        self.record.note(text)
        _log.info("%s: %s", self.plate.name, text)
