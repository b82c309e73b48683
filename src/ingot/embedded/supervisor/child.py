"""One life of a part: its process, from start to the last of its children.

Promises that the process is in a session of its own, tied to our life, that what it prints reaches the log, and that nothing of
it is left once `wait` has returned. Leaves it to `keeper` to decide whether there is a next life.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ingot.embedded.supervisor import procfs, remains
from ingot.embedded.supervisor.logs import Log
from ingot.embedded.supervisor.part import Part

_LEASH: Final = str(Path(__file__).with_name("leash.py"))
# What a dead process left in its pipe is there at once; a child of it that still holds the other end is not waited for.
_LAST_OUTPUT_WITHIN: Final = 0.5


class Child:
    def __init__(self, part: Part, run: Path, process: Process, output: asyncio.Task[None]) -> None:
        self._part = part
        self._run = run
        self._process = process
        self._output = output
        self.pid = process.pid
        found = procfs.process(process.pid)
        self.started_ticks = found.started if found else 0

    @classmethod
    async def start(cls, part: Part, run: Path, log: Log) -> Child:
        ours, theirs = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", _LEASH, str(os.getpid())),
                *part.argv,
                stdin=DEVNULL,
                stdout=theirs,
                stderr=theirs,
                env=_environment(part, run),
                start_new_session=True,
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return cls(part, run, process, asyncio.create_task(_copy(ours, log)))

    async def wait(self) -> str:
        """Until it and its children are gone; says how it ended, to follow "it"."""
        code = await self._process.wait()
        await remains.end(remains.of_session(self.pid, self._run))
        # Not awaited itself: whoever cancels this would cancel it too, and the next to wait would be cancelled by that.
        await asyncio.wait([self._output], timeout=_LAST_OUTPUT_WITHIN)
        self._output.cancel()
        return how_it_ended(code)

    async def end(self, *, grace: float | None = None) -> None:
        """Ask it to stop, and make it stop when it has not after its grace. Returns when it is gone."""
        self._signal(self._part.stop_signal)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._part.grace if grace is None else grace):
                await self._process.wait()
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


def how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _environment(part: Part, run: Path) -> Mapping[str, str]:
    mark, _, value = remains.mark_of(run).partition("=")
    own = {
        mark: value,
        # Programs that change their title would overwrite the environment the mark is found in.
        "SPT_NOENV": "1",
        # A ready line must not wait in a buffer.
        "PYTHONUNBUFFERED": "1",
    }
    return {**os.environ, **part.environment, **part.late_environment(), **own}


async def _copy(ours: int, log: Log) -> None:
    """Everything that comes out of the pipe goes to the log, until all writers are gone."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb")
    )
    try:
        while chunk := await reader.read(65536):
            log.write(chunk)
    finally:
        transport.close()
