"""install_coreos inside the real ironic-python-agent, with the real coreos-installer, on a disk.

The image is small and ours, but has the shape of a metal image; what is on the disk afterwards is read from the disk.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from coreos_machine import NETWORK, Answer, Machine, wait_until
from small_coreos import INITRAMFS, OPTIONS, PARTS, file_on_boot, labels, metal_image, mode_on_boot

from image_host import ImageHost
from ingot.formats.initrd import read_members

TOOL = Path(__file__).parents[2] / "tools" / "coreos-installer" / "build"
THEIRS = Path(subprocess.run([TOOL, "--where"], capture_output=True, text=True, check=True).stdout.strip())
NEEDED = ("losetup", "partx", "unshare", "debugfs", "mkfs.ext4")
MISSING = [name for name in NEEDED if shutil.which(name) is None]
pytestmark = [
    pytest.mark.skipif(
        not THEIRS.exists(), reason="coreos-installer is not built; `make test-coreos` builds it"
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="a disk to install on is made by root"),
    pytest.mark.skipif(not Path("/dev/loop-control").exists(), reason="there are no loop devices"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]
SECRET = "hunter2-in-the-user-data"
IGNITION = {
    "ignition": {"version": "3.4.0"},
    "storage": {"files": [{"path": "/etc/secret", "contents": {"source": f"data:,{SECRET}"}}]},
}
KEY = "ssh-ed25519 AAAAC3Nz me@here"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("coreos")


@pytest.fixture(scope="module")
def image(folder: Path) -> bytes:
    return metal_image(folder / "image")


@pytest.fixture(scope="module")
def osmet(folder: Path, image: bytes) -> Path:
    """What a live image carries of the disk that it was made from, packed by coreos-installer itself."""
    disk, packed = folder / "golden", folder / "metal.osmet"
    disk.write_bytes(image)
    attach = ["losetup", "--find", "--show", "--partscan", str(disk)]
    device = subprocess.run(attach, capture_output=True, text=True, check=True).stdout.strip()
    try:
        subprocess.run(["partx", "-u", device], check=True, capture_output=True)
        words = ["pack", "osmet", "--fast", "--description", "Small CoreOS", "--output", str(packed), device]
        told = ["--checksum", hashlib.sha256(image).hexdigest()]
        subprocess.run([THEIRS, *words, *told], check=True, capture_output=True)
    finally:
        subprocess.run(["partx", "-d", device], capture_output=True, check=False)
        subprocess.run(["losetup", "--detach", device], check=True)
    return packed


@pytest.fixture
def images(image: bytes) -> Iterator[ImageHost]:
    with ImageHost.running() as host:
        host.files["/metal.raw.xz"] = lzma.compress(image, preset=0)
        yield host


@pytest.fixture
def machine(folder: Path, request: pytest.FixtureRequest) -> Iterator[Machine]:
    with Machine.running(folder / request.node.name[:60], THEIRS) as running:
        yield running


@pytest.fixture(scope="module")
def inspected(folder: Path) -> Answer:
    with Machine.running(folder / "inspected", THEIRS) as machine:
        return machine.inspected()


def source(images: ImageHost, **more: Any) -> dict[str, Any]:
    wanted = hashlib.sha256(images.files["/metal.raw.xz"]).hexdigest()
    url = f"{images.url}/metal.raw.xz"
    return {
        "image_source": url,
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": wanted,
        "configdrive": {"user_data": json.dumps(IGNITION), "meta_data": {"local-hostname": "rack-3"}},
        **more,
    }


def written(machine: Machine) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(file_on_boot(machine.disk, "/ignition/config.ign") or b"")
    return config


def options(machine: Machine) -> str:
    entry = file_on_boot(machine.disk, "/loader/entries/ostree-1-coreos.conf") or b""
    return next(line for line in entry.decode().splitlines() if line.startswith("options ")).removeprefix(
        "options "
    )


def test_the_agent_finds_the_step_and_knows_the_build_that_runs(inspected: Answer) -> None:
    answer = inspected
    assert "CoreOSHardwareManager" in answer.managers
    assert "GenericHardwareManager" in answer.managers
    (step,) = answer.offered["command_result"]["deploy_steps"]["CoreOSHardwareManager"]
    assert (step["step"], step["priority"], step["interface"]) == ("install_coreos", 0, "deploy")
    network = {"copy_network", "network_keyfiles"}
    assert set(step["argsinfo"]) == {"ignition", "append_kargs", "delete_kargs", "ssh_keys"} | network
    assert answer.inventory["coreos"] == {"build": "44.1", "name": "Small CoreOS 44.1", "agent": "0.1.0"}


def test_network_cards_that_lead_to_the_bmc_are_left_out(inspected: Answer) -> None:
    assert [card["name"] for card in inspected.inventory["interfaces"]] == ["eth0"]


def test_the_journal_of_the_host_is_among_the_logs(inspected: Answer, folder: Path) -> None:
    assert f"--root {folder / 'inspected' / 'root'}" in inspected.journal


@pytest.mark.parametrize(
    ("name", "installed"), [("h1.example.com", "h1.example.com"), ("localhost", "named-by-its-ramdisk")]
)
def test_the_installed_system_has_the_machines_name(
    machine: Machine, osmet: Path, name: str, installed: str
) -> None:
    machine.name = name
    machine.can_install_offline(osmet)
    assert machine.install().result["device"] == machine.device
    (file,) = written(machine)["storage"]["files"]
    assert (file["path"], file["contents"]["source"]) == ("/etc/hostname", f"data:,{installed}%0A")


def test_an_image_is_written_with_everything_that_was_asked_for(machine: Machine, images: ImageHost) -> None:
    answer = machine.install(
        instance=source(images),
        append_kargs=["console=ttyS0,115200", "a=1,2"],
        delete_kargs="quiet",
        copy_network=True,
        ssh_keys=[KEY],
    )
    assert answer.result["device"] == machine.device
    assert answer.result["image"] == f"{images.url}/metal.raw.xz"
    assert labels(machine.disk) == [part.label for part in PARTS]
    assert machine.disk.read_bytes()[:9] == b"boot code"
    config = written(machine)
    assert config["passwd"] == {"users": [{"name": "core", "sshAuthorizedKeys": [KEY]}]}
    (file,) = config["storage"]["files"]
    assert (file["path"], file["contents"]["source"]) == ("/etc/hostname", "data:,rack-3%0A")
    (child,) = config["ignition"]["config"]["merge"]
    assert json.loads(b64decode(child["source"].partition("base64,")[2])) == IGNITION
    assert mode_on_boot(machine.disk, "/ignition/config.ign") == "0600"
    kept = OPTIONS.removesuffix(" quiet")
    assert options(machine) == f"{kept} console=ttyS0,115200 a=1,2 ip=dhcp rd.neednet=1"
    assert (
        file_on_boot(machine.disk, "/loader/entries/ostree-0-older.conf") == b"title Older\noptions older\n"
    )
    assert network(machine) == {"eth0.nmconnection": NETWORK}


def test_the_installed_system_has_a_network_of_its_own_in_place_of_the_ramdisks(
    machine: Machine, images: ImageHost
) -> None:
    own = {
        "bond0.nmconnection": f"[connection]\nid=bond0\ntype=bond\n# {SECRET}\n",
        "eth1.nmconnection": "[x]\n",
    }
    drive = {"meta_data": {"coreos_network_keyfiles": own}}
    answer = machine.install(instance=source(images, configdrive=drive), copy_network=True)
    assert answer.result["device"] == machine.device
    assert network(machine) == own
    assert SECRET not in answer.log


def network(machine: Machine) -> dict[str, str]:
    """The connections that the installed system has at its first boot, before Ignition runs."""
    initramfs = file_on_boot(machine.disk, "/ostree/c/initramfs.img") or b""
    assert initramfs.startswith(INITRAMFS)
    found = read_members(io.BytesIO(initramfs[len(INITRAMFS) :]), lambda _: True)
    folder = "etc/coreos-firstboot-network/"
    return {
        name.removeprefix(folder): text.decode() for name, text in found.items() if name.startswith(folder)
    }


def test_the_running_build_is_installed_without_any_network(machine: Machine, osmet: Path) -> None:
    machine.can_install_offline(osmet)
    answer = machine.install(ignition=IGNITION)
    assert answer.result["image"] == "the build that ran"
    assert labels(machine.disk) == [part.label for part in PARTS]
    assert options(machine) == f"{OPTIONS} ip=dhcp rd.neednet=1"
    assert file_on_boot(machine.disk, "/ignition/config.ign") is not None


def test_an_image_with_a_wrong_hash_is_refused_and_leaves_nothing_to_boot(
    machine: Machine, images: ImageHost
) -> None:
    answer = machine.install(instance=source(images, image_os_hash_value="0" * 64))
    assert answer.error["type"] == "DeploymentError"
    assert "is not the one that was asked for" in answer.error["details"]
    assert "0" * 64 in answer.error["details"]
    assert labels(machine.disk) == []
    assert machine.disk.read_bytes()[:446] == bytes(446)
    assert images.asked.count("/metal.raw.xz") == 1


def test_a_download_that_breaks_off_is_begun_anew_and_the_log_tells_of_it_without_user_data(
    machine: Machine, images: ImageHost
) -> None:
    images.script.append("cut")
    answer = machine.install(instance=source(images), ignition=json.dumps(IGNITION))
    assert answer.result["device"] == machine.device
    assert images.asked.count("/metal.raw.xz") == 2
    assert labels(machine.disk) == [part.label for part in PARTS]
    assert "attempt 1 of 3" in answer.log
    assert "(100 %) of the image written" in answer.log
    assert SECRET not in answer.log


def test_an_agent_that_is_killed_leaves_nothing_to_boot(
    machine: Machine, images: ImageHost, image: bytes
) -> None:
    with machine.disk.open("r+b") as disk:
        disk.write(image)  # what was installed before
    images.files["/metal.raw"] = image  # half of it is more than what coreos-installer keeps in its hands
    wanted = hashlib.sha256(image).hexdigest()
    plain = source(images, image_source=f"{images.url}/metal.raw", image_os_hash_value=wanted)
    images.script.append("hold")
    with machine.installing(plain) as agent:
        wait_until(lambda: labels(machine.disk) == [] or agent.poll() is not None)
        agent.kill()
    assert labels(machine.disk) == []
    assert machine.disk.read_bytes()[:446] == bytes(446)
    images.release.set()
    assert machine.install(instance=plain).result["device"] == machine.device
    assert labels(machine.disk) == [part.label for part in PARTS]


def test_the_reason_that_coreos_installer_gives_is_the_message(machine: Machine, images: ImageHost) -> None:
    images.files["/metal.raw.xz"] = lzma.compress(b"\0" * (4 << 20))
    answer = machine.install(instance=source(images))
    assert "coreos-installer could not install on" in answer.error["details"]
    assert f"couldn't find any partitions on {machine.device}" in answer.error["details"]
    assert "attempt 3 of 3" in answer.error["details"]
    assert labels(machine.disk) == []


def test_a_disk_that_is_in_use_is_left_alone_and_the_message_says_by_what(
    machine: Machine, image: bytes, osmet: Path
) -> None:
    machine.can_install_offline(osmet)
    Path(machine.device).write_bytes(image)
    subprocess.run(["partx", "-u", machine.device], check=True)
    machine.in_use = f"{machine.device}p3"
    details = machine.install().error["details"]
    assert "found busy partitions" in details
    assert f"{machine.device}p3 mounted on /data" in details
    assert labels(machine.disk) == [part.label for part in PARTS]


def test_without_what_an_offline_install_needs_nothing_is_tried_twice(machine: Machine) -> None:
    before = machine.disk.read_bytes()
    answer = machine.install(ignition=IGNITION)
    assert "cannot perform offline install; metadata missing" in answer.error["details"]
    assert "attempt 1" not in answer.log
    assert machine.disk.read_bytes() == before


def test_user_data_that_is_no_ignition_is_refused_before_the_disk_is_touched(machine: Machine) -> None:
    before = machine.disk.read_bytes()
    answer = machine.install(instance={"configdrive": {"user_data": f"#cloud-config\n{SECRET}"}})
    assert "the user data is a cloud-config" in answer.error["details"]
    assert machine.disk.read_bytes() == before
    assert SECRET not in answer.log + json.dumps(answer.done)
