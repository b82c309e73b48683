"""A real BMC that speaks IPMI 2.0: OpenIPMI's simulator as a process of its own, on an address of its own.

It checks passwords and keeps a power state. What its chassis is told is written down by a program that it calls, so that a test
asks the chassis, not the one who gave the order. It knows cipher suite 3 and no other, and does not say which it knows.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

PROGRAM = "ipmi_sim"
PASSWORD = "from-the-plate-1"
"""IPMI has passwords of up to 20 bytes, and the simulator keeps 19 of them."""

# Called with an address, `get` and what is asked, or `set` and pairs of what and its value.
_CHASSIS = """\
#!/bin/sh
cd '{folder}' || exit 1
verb=$2
shift 2
while [ $# -gt 0 ]; do
    case $verb in
        get) echo "$1:$(cat "$1")"; shift ;;
        set)
            echo "$1 $2" >>told
            case $1 in
                power|boot) echo "$2" >"$1" ;;
                shutdown) [ -e deaf ] || echo 0 >power ;;
            esac
            shift 2 ;;
    esac
done
"""
_CONFIG = """\
name "bmc"
set_working_mc 0x20
startlan 1
  addr {host} {port}
  priv_limit admin
  allowed_auths_admin md5
  guid a123456789abcdefa123456789abcdef
endlan
chassis_control "{folder}/chassis 0x20"
user 2 true "{username}" "{password}" admin 10
"""
_COMMANDS = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
mc_enable 0x20
"""


class Bmc:
    """Use `serving`."""

    def __init__(self, folder: Path, *, host: str, username: str) -> None:
        self.folder = folder
        self.host, self.port = host, free_port(host)
        (folder / "state").mkdir(parents=True)
        (folder / "told").touch()
        (folder / "power").write_text("0\n")
        (folder / "boot").write_text("default\n")
        chassis = folder / "chassis"
        chassis.write_text(_CHASSIS.format(folder=folder))
        chassis.chmod(0o755)
        config = _CONFIG.format(
            host=host, port=self.port, folder=folder, username=username, password=PASSWORD
        )
        (folder / "lan.conf").write_text(config)
        (folder / "commands").write_text(_COMMANDS)

    @classmethod
    @contextlib.contextmanager
    def serving(cls, folder: Path, *, host: str, username: str) -> Iterator[Bmc]:
        bmc = cls(folder, host=host, username=username)
        program = shutil.which(PROGRAM)
        assert program is not None
        files = "-c", str(folder / "lan.conf"), "-f", str(folder / "commands"), "-s", str(folder / "state")
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([program, *files, "-n"], stdout=log, stderr=log)
        try:
            yield bmc
            assert process.poll() is None, f"the BMC ended by itself: {(folder / 'log').read_text()}"
        finally:
            process.kill()
            process.wait()

    @property
    def address(self) -> str:
        """As a BareMetalHost names it."""
        return f"ipmi://{self.host}:{self.port}"

    @property
    def is_on(self) -> bool:
        return (self.folder / "power").read_text() == "1\n"

    @property
    def told(self) -> list[str]:
        """What the chassis was told, in order: `power 1`, `power 0`, `shutdown 1` (the polite way), `boot pxe`."""
        return (self.folder / "told").read_text().splitlines()


def free_port(host: str) -> int:
    with socket.socket(type=socket.SOCK_DGRAM) as one:
        one.bind((host, 0))
        return int(one.getsockname()[1])
