"""The supervisor: all keepers together, what they report, and the order in which they stop.

Run it while holding the folder's lock (`hold`) and after `end_remains`. It ends when `stop` is called or when a part can never
start; either way every part is gone when `run` returns or raises.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ingot.embedded.supervisor import remains
from ingot.embedded.supervisor.errors import SupervisorError
from ingot.embedded.supervisor.keeper import Keeper
from ingot.embedded.supervisor.part import Part, in_order
from ingot.embedded.supervisor.procfs import boot_id
from ingot.embedded.supervisor.status import Status, read_status
from ingot.trust import write_public

log = logging.getLogger(__name__)

WRITE_AGAIN_AFTER: Final = 1.0


async def end_remains(run: Path) -> list[int]:
    """End what a supervisor that was killed left behind; returns the ids of the processes that were ended."""
    status = read_status(run)
    found = remains.of_earlier_run(status, run) if status else []
    if left := await remains.end(found):
        raise SupervisorError(
            f"{run.parent}: process {left[0].pid} of an earlier run cannot be ended, not even by SIGKILL. "
            "It hangs inside the kernel, usually on a disk that does not answer."
        )
    return [process.pid for process in found]


class Supervisor:
    def __init__(
        self, run: Path, parts: Sequence[Part], *, on_change: Callable[[Status], None] | None = None
    ) -> None:
        self._folder = run
        self._on_change = on_change
        self._since = time.time()
        self._boot_id = boot_id()
        self._unwritten = asyncio.Event()
        self._stopping = asyncio.Event()
        self._keepers = {part.name: Keeper(part, run, self._changed) for part in in_order(parts)}

    @property
    def status(self) -> Status:
        return Status(
            supervisor_pid=os.getpid(),
            boot_id=self._boot_id,
            since=self._since,
            parts=[keeper.status for keeper in self._keepers.values()],
        )

    async def ready(self, *names: str) -> None:
        """Returns once these parts (all, when none is named) have been ready."""
        for name in names or self._keepers:
            await self._keepers[name].ready_once.wait()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Begin to stop: every part is asked, and has its grace."""
        self._stopping.set()

    def stop_now(self) -> None:
        """Stop without waiting for anybody's grace."""
        self._stopping.set()
        for keeper in self._keepers.values():
            keeper.kill()

    async def run(self) -> None:
        writing = asyncio.create_task(self._keep_writing())
        keeping = [
            asyncio.create_task(keeper.keep(self._keepers), name=f"keep {name}")
            for name, keeper in self._keepers.items()
        ]
        try:
            await self._until_stopped(keeping)
        finally:
            self._stopping.set()
            for task in keeping:
                task.cancel()
            await asyncio.gather(*keeping, return_exceptions=True)
            await self._stop_all()
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            # The lock tells everybody that we are gone, whatever the file says.
            with suppress(OSError):
                await asyncio.to_thread(self._write, self.status)

    async def _until_stopped(self, keeping: Iterable[asyncio.Task[None]]) -> None:
        asked = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait([asked, *keeping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
        # A keeper ends only by an exception.
        for task in done - {asked}:
            task.result()

    async def _stop_all(self) -> None:
        """Each part stops once the ones that came after it are gone; those that do not depend on each other stop together."""
        gone = {name: asyncio.Event() for name in self._keepers}

        async def stop(keeper: Keeper) -> None:
            name = keeper.part.name
            for other in self._keepers.values():
                if name in other.part.after:
                    await gone[other.part.name].wait()
            await keeper.stop()
            gone[name].set()

        async with asyncio.TaskGroup() as group:
            for keeper in self._keepers.values():
                group.create_task(stop(keeper))

    def _changed(self) -> None:
        self._unwritten.set()
        if self._on_change is not None:
            self._on_change(self.status)

    async def _keep_writing(self) -> None:
        """The status file follows the parts; changes that come together are written once."""
        while True:
            await self._unwritten.wait()
            self._unwritten.clear()
            try:
                await asyncio.to_thread(self._write, self.status)
            except OSError as problem:
                log.warning("%s: the status cannot be written: %s", self._folder, problem.strerror)
                self._unwritten.set()
                await asyncio.sleep(WRITE_AGAIN_AFTER)

    def _write(self, status: Status) -> None:
        text = msgspec.json.format(msgspec.json.encode(status))
        write_public(self._folder / "status.json", text + b"\n")
