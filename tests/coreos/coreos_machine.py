"""A machine that runs a CoreOS live system, as far as an install needs one: a root folder, a disk, the agent with our part in it.

The disk is a loop device. Everything is mounted in a mount namespace of its own, as podman would do it for the agent's
container: the root with the real coreos-installer, and the host's /dev, /proc, /sys and programs in it. `udevadm` there is a
stand-in that does the work of udev, which is not running here, and shows the partitions to the kernel, because some kernels of
virtual machines do not look for them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from agent_environment import agent_python
from small_coreos import SIZE, lay_out_objects

from ingot.services.environment import without_ours

HERE = Path(__file__).parent
AGENT = HERE.parents[1] / "agent"
PATIENCE = 120.0
NETWORK = "[connection]\nid=eth0\ntype=ethernet\n\n[ipv4]\nmethod=auto\n"
OS_RELEASE = 'NAME="Small CoreOS"\nVARIANT_ID=coreos\nOSTREE_VERSION=44.1\nPRETTY_NAME="Small CoreOS 44.1"\n'

# $1 the root to make, $2 coreos-installer, $3 the device, $4 a folder of stand-ins for the agent; the rest is what is run.
INSIDE = """
set -eu
root=$1 installer=$2 device=$3 tools=$4; shift 4
mount -t tmpfs tmpfs "$root"
cp -a "$root.made/." "$root"
for name in bin sbin lib lib32 lib64; do
    if [ -L "/$name" ]; then cp -P "/$name" "$root/$name"
    elif [ -d "/$name" ]; then mkdir "$root/$name"; mount --rbind "/$name" "$root/$name"; fi
done
for name in usr dev proc sys; do mkdir "$root/$name"; mount --rbind "/$name" "$root/$name"; done
mount -t tmpfs tmpfs "$root/usr/local"
mkdir "$root/usr/local/bin"
cp "$installer" "$root/usr/local/bin/coreos-installer"
sed "s,DEVICE,$device," "$tools/udevadm.in" >"$root/usr/local/bin/udevadm"
chmod 755 "$root/usr/local/bin/udevadm"
if [ -n "$IN_USE_IN_THE_TEST" ]; then
    mkdir "$root/data"
    mount -o ro "$IN_USE_IN_THE_TEST" "$root/data"
fi
echo "$NAME_OF_THE_TEST" >/proc/sys/kernel/hostname
[ -n "$CONTAINER_OF_THE_TEST" ] || exec "$@"
cd "$CONTAINER_OF_THE_TEST"
for name in dev proc sys; do mount --rbind "/$name" "$name"; done
mkdir -p run/udev mnt/bench mnt/site mnt/tools
mount --rbind "$root" mnt/coreos
mount --bind "$root/run/udev" run/udev
mount --bind "$BENCH_OF_THE_TEST" mnt/bench
mount --bind "$SITE_OF_THE_TEST" mnt/site
mount --bind "$tools" mnt/tools
unset PYTHONPATH
export PATH=/mnt/tools:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export INGOT_COREOS_ROOT=/mnt/coreos PYTHONPATH=/mnt/site:/mnt/bench PYTHONDONTWRITEBYTECODE=1
exec chroot . python3 /mnt/bench/real_install.py
"""

# What udev does after a partition table was read again: nodes for the partitions, and a record of what is on them.
UDEVADM = """#!/bin/sh
partx -u DEVICE 2>/dev/null
mkdir -p /run/udev/data
for number in /sys/block/$(basename DEVICE)/*/partition; do
    [ -e "$number" ] || continue
    part=${number%/partition}
    { echo I:1; blkid -p -o udev "/dev/${part##*/}" | sed s/^/E:/; } >"/run/udev/data/b$(cat "$part/dev")"
done
exit 0
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the agent answered, and its log."""

    done: Any
    offered: Any
    managers: list[str]
    inventory: Any
    journal: str
    log: str

    @property
    def result(self) -> Any:
        assert self.done["command_status"] == "SUCCEEDED", self.done["command_error"]
        return self.done["command_result"]["deploy_result"]

    @property
    def error(self) -> Any:
        assert self.done["command_status"] == "FAILED", self.done
        return self.done["command_error"]


class Machine:
    """One machine with one disk. Its agent is in an environment of its own, or in the root of a container."""

    def __init__(self, folder: Path, installer: Path, device: str, disk: Path) -> None:
        self.name = "h1.example.com"
        """What the machine is called when the agent starts."""
        self.boots = "bios"
        self.container: Path | None = None
        self.in_use = ""
        """A partition that its CoreOS has mounted at /data."""
        self.disk = disk
        self.device = device
        self._folder = folder
        self._installer = installer
        self._said = folder / "said"
        self.root = folder / "root"
        self.root.mkdir()
        self.made = folder / "root.made"
        for name in ("etc/NetworkManager/system-connections", "run/udev", "tmp", "var"):
            (self.made / name).mkdir(parents=True)
        (self.made / "etc" / "os-release").write_text(OS_RELEASE)
        (self.made / "run" / "udev" / "control").touch()
        keyfile = self.made / "etc" / "NetworkManager" / "system-connections" / "eth0.nmconnection"
        keyfile.write_text(NETWORK)
        keyfile.chmod(0o600)

    @classmethod
    @contextmanager
    def running(cls, folder: Path, installer: Path) -> Iterator[Machine]:
        folder.mkdir(exist_ok=True)
        disk = folder / "disk"
        with disk.open("wb") as made:
            made.truncate(SIZE + (8 << 20))  # larger than the image, as real disks are
        words = ["losetup", "--find", "--show", "--partscan", str(disk)]
        device = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        try:
            yield cls(folder, installer, device, disk)
        finally:
            subprocess.run(["partx", "-d", device], capture_output=True, check=False)
            subprocess.run(["losetup", "--detach", device], check=True)

    def can_install_offline(self, osmet: Path) -> None:
        """Give its CoreOS what it needs to write itself to a disk."""
        (self.made / "run" / "coreos-installer" / "osmet").mkdir(parents=True)
        shutil.copy(osmet, self.made / "run" / "coreos-installer" / "osmet" / "metal.osmet")
        lay_out_objects(self.made / "sysroot" / "ostree" / "repo")

    def install(self, *, instance: dict[str, Any] | None = None, **args: Any) -> Answer:
        return self._told({"install": True, "inventory": False, "args": args}, instance or {})

    def boot_entries(self) -> list[str]:
        """What the firmware was told: how efibootmgr was called."""
        return (self._folder / "tools" / "entries").read_text().splitlines()

    def inspected(self) -> Answer:
        return self._told({"install": False, "inventory": True, "args": {}}, {})

    @contextmanager
    def installing(self, instance: dict[str, Any]) -> Iterator[subprocess.Popen[bytes]]:
        """The agent's process while it installs; afterwards nothing of it is left on the disk's device."""
        with self._started({"install": True, "inventory": False, "args": {}}, instance) as process:
            yield process
        wait_until(lambda: not any(self._writes(folder) for folder in Path("/proc").glob("[0-9]*")))

    def _writes(self, process: Path) -> bool:
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            return False
        return b"coreos-installer" in words and self.device.encode() in words

    def _told(self, order: dict[str, Any], instance: dict[str, Any]) -> Answer:
        with self._started(order, instance) as process:
            process.wait(timeout=PATIENCE)
        *log, answer = self._said.read_text().splitlines()
        assert process.returncode == 0, "\n".join([*log[-40:], answer])
        return Answer(**json.loads(answer), log="\n".join(log))

    def _started(self, order: dict[str, Any], instance: dict[str, Any]) -> subprocess.Popen[bytes]:
        node = {"uuid": "6c5b3a0e-1111-4222-8333-444455556666", "instance_info": instance, "properties": {}}
        told = self._folder / "order"
        told.write_text(json.dumps(order | {"node": node}))
        tools = self._tools()
        inside = [str(self.root), str(self._installer), self.device, str(tools)]
        words = ["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", INSIDE, "sh", *inside]
        with told.open() as given, self._said.open("wb") as said:
            return subprocess.Popen(
                [*words, str(agent_python()), str(HERE / "real_install.py")],
                stdin=given,
                stdout=said,
                stderr=said,
                env=self._environment(tools),
            )

    def _tools(self) -> Path:
        """Programs in front of the agent's own: what it may not do on this machine, and what this machine does not have."""
        tools = self._folder / "tools"
        tools.mkdir(exist_ok=True)
        for name in ("partprobe", "sgdisk", "mdadm", "udevadm"):
            if shutil.which(name) is None and self.container is None:  # they only look, or find nothing
                _write_program(tools / name, "exit 0")
        _write_program(tools / "journalctl", f'echo {"the journal below " * 5} "$@"')
        _write_program(tools / "efibootmgr", 'echo BootCurrent: 0000; echo "$@" >>"$(dirname "$0")/entries"')
        (tools / "udevadm.in").write_text(UDEVADM)  # for coreos-installer; the agent itself need not know
        return tools

    def _environment(self, tools: Path) -> dict[str, str]:
        site = bench(self._folder.parent)
        return without_ours(os.environ) | {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": f"{distribution(self._folder.parent)}:{site}:{HERE}",
            "INGOT_COREOS_ROOT": str(self.root),
            "INGOT_COREOS_RETRY_PAUSE": "0.1",
            "IPA_COREOS_IP_OPTIONS": "ip=dhcp rd.neednet=1",
            "IPA_DEFAULT_HOSTNAME": "named-by-its-ramdisk",
            "DISK_OF_THE_TEST": self.device,
            "NAME_OF_THE_TEST": self.name,
            "BOOT_OF_THE_TEST": self.boots,
            "IN_USE_IN_THE_TEST": self.in_use,
            "CONTAINER_OF_THE_TEST": str(self.container or ""),
            "BENCH_OF_THE_TEST": str(HERE),
            "SITE_OF_THE_TEST": str(site),
        }


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)


def _write_program(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@cache
def bench(folder: Path) -> Path:
    """Where the agent finds the bench's hardware manager."""
    info = folder / "site" / "bench-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bench\nVersion: 1\n")
    group = "[ironic_python_agent.hardware_managers]\nbench = real_install:Bench\n"
    (info / "entry_points.txt").write_text(group)
    return info.parent


@cache
def distribution(folder: Path) -> Path:
    """ingot-agent as it is installed; the agent finds it through its entry point."""
    build = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, folder], cwd=AGENT, check=True, capture_output=True)
    (wheel,) = folder.glob("ingot_agent-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "installed")
    return folder / "installed"
