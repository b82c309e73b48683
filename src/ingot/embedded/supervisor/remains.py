"""What is left of a part after its main process ended, and ending it.

Each part runs in a session of its own, so its children are found by the session, and each carries a mark in its environment that
names the state folder, so a stranger who got the same number is never touched.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ingot.embedded.supervisor.procfs import Process, boot_id, process, session_members
from ingot.embedded.supervisor.status import Status

MARK: Final = "INGOT_SUPERVISED"
PATIENCE: Final = 5.0


def mark_of(run: Path) -> str:
    return f"{MARK}={run.resolve()}"


def of_session(session: int, run: Path) -> list[Process]:
    """The living members of a part's session."""
    return [member for member in session_members(session) if member.marked(mark_of(run))]


def of_earlier_run(status: Status, run: Path) -> list[Process]:
    """Processes that an earlier supervisor of this folder started and that still live."""
    if status.boot_id != boot_id():
        return []
    found: list[Process] = []
    for part in status.parts:
        leader = process(part.pid) if part.pid else None
        if leader is not None and leader.started == part.started_ticks and not leader.zombie:
            found.append(leader)
        if part.pid:
            found.extend(member for member in of_session(part.pid, run) if member not in found)
    return found


async def end(processes: Iterable[Process]) -> list[Process]:
    """Kill them and wait until they are gone; returns those that are not (the kernel holds them)."""
    found = list(processes)
    gone = await asyncio.gather(*(_end(process) for process in found))
    return [process for process, is_gone in zip(found, gone, strict=True) if not is_gone]


async def _end(found: Process) -> bool:
    try:
        handle = os.pidfd_open(found.pid)
    except ProcessLookupError:
        return True
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    try:
        # The handle names one process for ever; look again whether it is still the one we found.
        if process(found.pid) != found:
            return True
        # Readable means: it ended. No child of ours, so there is nothing to reap.
        loop.add_reader(handle, ended.set)
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE):
            await ended.wait()
    except ProcessLookupError:
        return True
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(handle)
        os.close(handle)
    return True
