"""Run by the tests as a program: a supervisor for a folder, with a part that has a child. Prints the ids of both, then waits.

supervised.py RUN-FOLDER
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from ingot.embedded.supervisor import Part, Supervisor, end_remains, hold, read_status

PARENT = """
import subprocess, sys, time
ignores = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-S", "-c", ignores])
print("ready", child.pid, flush=True)
time.sleep(600)
"""


def lives(number: int) -> bool:
    """Whether a process runs. One that ended and was not yet reaped does not."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def end(number: int) -> None:
    """For the end of a test: what was meant to survive the supervisor must not survive the test."""
    if lives(number):
        os.kill(number, signal.SIGKILL)


async def main(run: Path) -> None:
    with hold(run):
        ended = await end_remains(run)
        part = Part(name="parent", argv=[sys.executable, "-S", "-c", PARENT], ready_line="ready")
        supervisor = Supervisor(run, [part])
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
        running = asyncio.create_task(supervisor.run())
        while (told := read_status(run)) is None or not told.all_ready or told != supervisor.status:  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.02)
        child = (run / "logs/parent.log").read_text().split()[-1]
        print(supervisor.status.parts[0].pid, child, *ended, flush=True)
        await running


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
