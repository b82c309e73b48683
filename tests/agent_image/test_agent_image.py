"""The agent's container: built from Debian's packages and the locks, then its root file system is run.

Minutes the first time, so these tests have a target of their own (`make test-agent-image`).
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from coreos_machine import Machine
from small_coreos import LOADER, PARTS, file_on_boot, labels, metal_image

from image_host import ImageHost
from ingot.formats.oci import Index, Manifest, decode_config
from ingot.images.release.layout import Layout

BUILD = Path(__file__).parents[2] / "deploy" / "agent" / "build.py"
TOOL = Path(__file__).parents[2] / "tools" / "coreos-installer" / "build"
INSTALLER = Path(subprocess.run([TOOL, "--where"], capture_output=True, text=True, check=True).stdout.strip())
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="packages are installed in a folder with chroot, by root"),
    pytest.mark.skipif(shutil.which("apt-get") is None, reason="there is no apt to install packages with"),
    pytest.mark.timeout(1800),
]
CALLED = re.compile(r"execute\(\s*'([a-z0-9._-]+)'")
# What the agent can do without, and does when it is not there.
OPTIONAL = {
    *("chronyc", "chronyd", "ntpdate"),  # the clock is the host's
    "biosdevname",
    *("iscsistart", "hardware-detect"),
    *("mstconfig", "mstflint", "mstfwreset"),  # cards of one vendor
}
# Named in other ways, by the agent and by us.
MORE = {
    "chroot",
    "journalctl",
    "ipmitool",
    "kpartx",
    "lvs",
    "mkfs.vfat",
    "mkfs.ext4",
    "mkswap",
    "qemu-img",
    "shred",
    "ethtool",
}


def built(folder: Path) -> str:
    ended = subprocess.run([sys.executable, BUILD, folder], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    folder = tmp_path_factory.mktemp("layout")
    assert built(folder).startswith("sha256:")
    return Layout(folder)


def manifest(layout: Layout) -> Manifest:
    index = layout.document(layout.root())
    assert isinstance(index, Index)
    (only,) = index.manifests
    found = layout.document(only)
    assert isinstance(found, Manifest)
    return found


@pytest.fixture(scope="module")
def root(layout: Layout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's root file system, as a container engine lays it out."""
    folder = tmp_path_factory.mktemp("root")
    for layer in manifest(layout).layers:
        subprocess.run(["tar", "-xpf", layout.path(layer.digest), "-C", folder], check=True)
    return folder


def run(root: Path, *words: str) -> str:
    mounts = 'cd "$1"; shift; for name in dev proc sys; do mount --rbind "/$name" "$name"; done; exec chroot . "$@"'
    ended = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-ec", mounts, "sh", root, *words],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended.stdout


def test_its_entry_point_is_the_agent(layout: Layout, root: Path) -> None:
    config = decode_config(layout.read(manifest(layout).config)).config
    assert config is not None
    assert config.entrypoint is not None
    assert config.entrypoint[1:] == ["--config-dir", "/etc/ironic-python-agent"]
    assert "--config-dir" in run(root, config.entrypoint[0], "--help")


def test_the_agent_finds_our_hardware_manager_through_its_entry_point(root: Path) -> None:
    program = (
        "import json, stevedore, ironic_python_agent.config; print(json.dumps(stevedore.ExtensionManager("
        "'ironic_python_agent.hardware_managers', invoke_on_load=True).names()))"
    )
    assert "ingot_coreos" in json.loads(run(root, "python3", "-c", program))


def test_every_tool_that_is_called_is_there(root: Path) -> None:
    package = root / "usr" / "local" / "lib" / "python3.11" / "dist-packages" / "ironic_python_agent"
    called = {name for file in package.rglob("*.py") for name in CALLED.findall(file.read_text())}
    assert {"mdadm", "parted", "sgdisk"} < called
    needed = sorted(called - OPTIONAL | MORE)
    look = 'for tool; do command -v "$tool" >/dev/null || echo "$tool"; done'
    assert run(root, "sh", "-c", look, "sh", *needed).split() == []


def test_python_is_compiled_and_trusts_no_clock(root: Path) -> None:
    program = (
        "import ironic_python_agent.config\n"
        "import importlib.util as u, ironic_python_agent.hardware as h, ingot_agent.manager as m, json as j\n"
        "for module in (h, m, j):\n"
        "    flags = open(u.cache_from_source(module.__file__), 'rb').read(8)[4:]\n"
        "    assert flags == (1).to_bytes(4, 'little'), (module.__file__, flags)\n"
    )
    run(root, "python3", "-B", "-c", program)


def test_it_says_nothing_about_the_machine_that_built_it(root: Path) -> None:
    for name in ("resolv.conf", "hostname", "nvme/hostid", "nvme/hostnqn"):
        assert not (root / "etc" / name).exists()
    assert (root / "etc" / "machine-id").read_text() in ("", "uninitialized\n")
    assert list((root / "var" / "log").iterdir()) == []
    here = str(Path(sys.executable).parent).encode()
    scripts = [
        file
        for file in (root / "usr" / "local").rglob("*")
        if file.is_file() and b"\0" not in file.read_bytes()[:512]
    ]
    assert [file for file in scripts if here in file.read_bytes()] == []


def test_the_same_inputs_make_the_same_digest(layout: Layout, tmp_path: Path) -> None:
    assert built(tmp_path / "again") == layout.root().digest


@pytest.fixture
def images(tmp_path: Path) -> Iterator[ImageHost]:
    with ImageHost.running() as host:
        host.files["/metal.raw.xz"] = lzma.compress(metal_image(tmp_path / "image"), preset=0)
        yield host


@pytest.mark.skipif(
    not INSTALLER.exists(), reason="coreos-installer is not built; `make test-coreos` builds it"
)
def test_it_installs_coreos_and_tells_the_firmware(root: Path, images: ImageHost, tmp_path: Path) -> None:
    content = images.files["/metal.raw.xz"]
    instance = {
        "image_source": f"{images.url}/metal.raw.xz",
        "image_checksum": hashlib.sha256(content).hexdigest(),
        "configdrive": {"user_data": '{"ignition": {"version": "3.2.0"}}'},
    }
    with Machine.running(tmp_path / "machine", INSTALLER) as machine:
        machine.container = root
        machine.boots = "uefi"
        answer = machine.install(instance=instance)
        assert answer.result["device"] == machine.device
        assert labels(machine.disk) == [part.label for part in PARTS]
        assert file_on_boot(machine.disk, "/ignition/config.ign") is not None
        loader, name = LOADER
        made = f"-v -c -d {machine.device} -p 2 -w -L {name} -l \\EFI\\small\\{loader}"
        assert machine.boot_entries()[-1] == made
