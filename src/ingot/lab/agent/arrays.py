"""Software RAID arrays of a server: taking them apart."""

from __future__ import annotations

import asyncio

from ingot.lab.agent.work import Work


async def forget_arrays(work: Work) -> None:
    """Take all software arrays apart; what was on them is gone."""
    record = work.chassis.record
    for array in record.arrays:
        key = array.device.removeprefix("/dev/")
        record.written.pop(key, None)
        await asyncio.to_thread(work.chassis.disks.wipe_key, key)
    if record.arrays:
        work.chassis.note(f"software RAID {', '.join(array.device for array in record.arrays)} was removed")
    record.arrays = []
