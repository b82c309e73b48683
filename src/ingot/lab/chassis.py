"""The lasting part of a server: its plate, its record, its disk and its log.

What runs on the server (BMC, firmware, agent) comes and goes and works on this.
"""

from __future__ import annotations

import logging
from pathlib import Path

from ingot.lab.disk import Disk
from ingot.lab.hardware import DISK_BYTES
from ingot.lab.labfile import Plate
from ingot.lab.record import Record, Store

_log = logging.getLogger(__name__)


class Chassis:
    def __init__(self, plate: Plate, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.plate = plate
        self.folder = folder
        self.disk = Disk(folder, DISK_BYTES)
        self._store = Store(folder / "record.json")

    @property
    def record(self) -> Record:
        return self._store.record

    async def save(self) -> None:
        """Return when the record is on disk; call it before anything is acknowledged."""
        await self._store.save()

    def note(self, text: str) -> None:
        """A line in the server's own log, kept with the next save, and in the farm's."""
        self.record.note(text)
        _log.info("%s: %s", self.plate.name, text)
