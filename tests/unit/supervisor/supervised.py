"""Run by the tests as a program: a supervisor for a folder, with a part that has a child. Prints the ids of both, then waits.

supervised.py RUN-FOLDER
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from ingot.embedded.supervisor import Part, Supervisor, end_remains, hold

PARENT = """
import subprocess, sys, time
ignores = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-S", "-c", ignores])
print("ready", child.pid, flush=True)
time.sleep(600)
"""


async def main(run: Path) -> None:
    with hold(run):
        ended = await end_remains(run)
        part = Part(name="parent", argv=[sys.executable, "-S", "-c", PARENT], ready_line="ready")
        supervisor = Supervisor(run, [part])
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.stop)
        running = asyncio.create_task(supervisor.run())
        while not supervisor.status.all_ready:  # noqa: ASYNC110 - a program of the tests
            await asyncio.sleep(0.02)
        child = (run / "logs/parent.log").read_text().split()[-1]
        print(supervisor.status.parts[0].pid, child, *ended, flush=True)
        await running


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
