"""A room whose Ironic runs the real ipmitool, and in which every command line that ipmitool was started with is written down."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from ipmi_bmc import Bmc
from ironic_room import Host, Room

IPMITOOL = "ipmitool"

_RECORDER = """\
#!/bin/sh
printf '%s\\n' "$*" >>{record}
exec {program} "$@"
"""

# Ironic leaves a BMC five seconds of peace between two commands; that it stops trying after half a minute stays as we set it.
QUICK_IPMI = {"OS_IPMI__MIN_COMMAND_INTERVAL": "1"}


class IpmiRoom(Room):
    """Each BMC has a loopback address of its own: Ironic counts the pauses between commands by address."""

    _bmcs = 0

    def start(self, name: str, *arguments: str, environment: Mapping[str, str]) -> None:
        programs = self._recorder().parent
        more = {**QUICK_IPMI, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        super().start(name, *arguments, environment={**environment, **more})

    def start_operator(self, **more: str) -> None:
        lab = self.lab.file
        super().start_operator(DEPLOY_KERNEL_URL=lab.kernel_url, DEPLOY_RAMDISK_URL=lab.initrd_url, **more)

    @property
    def _record(self) -> Path:
        return self.state / "ipmitool.started"

    def _recorder(self) -> Path:
        program = shutil.which(IPMITOOL)
        assert program is not None
        recorder = self.state / "programs" / IPMITOOL
        if not recorder.exists():
            recorder.parent.mkdir()
            recorder.write_text(
                _RECORDER.format(record=shlex.quote(str(self._record)), program=shlex.quote(program))
            )
            recorder.chmod(0o755)
        return recorder

    def commands(self) -> list[str]:
        """What ipmitool was started with, each time that a BMC was called."""
        return [line for line in self._record.read_text().splitlines() if "-H " in line]

    def called(self) -> list[str]:
        """The BMCs that were called, in order and each as often as it was."""
        return [command.partition("-H ")[2].split()[0] for command in self.commands()]

    def loopback(self) -> str:
        """An address of this machine that nobody else uses."""
        self._bmcs += 1
        return f"127.0.1.{self._bmcs}"

    @contextlib.contextmanager
    def bmc_of(self, host: Host) -> Iterator[Bmc]:
        """A BMC that knows the user of this host."""
        folder = self.state / f"{host.name}-bmc"
        with Bmc.serving(folder, host=self.loopback(), username=host.plate.username) as bmc:
            yield bmc
