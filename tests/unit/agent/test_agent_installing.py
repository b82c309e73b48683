"""The attempts to install, with a coreos-installer that is a script below the root; the real one is in tests/coreos."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from image_host import ImageHost
from ingot_agent.checksum import Digest, DigestAt
from ingot_agent.download import opener, trust
from ingot_agent.errors import Failed, Hopeless, Refused
from ingot_agent.installing import Installer
from ingot_agent.order import Image, Order

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
IMAGE = b"image" * 999999
SHA256 = hashlib.sha256(IMAGE).hexdigest()


class Machine:
    """The root of this machine, with a script of that name in front of its programs. It keeps what it was told beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.slept: list[float] = []
        self.installer = Installer(
            Path("/"),
            opener(trust(True)),
            environment={"PATH": f"{folder}:/usr/sbin:/usr/bin:/sbin:/bin"},
            sleep=self.slept.append,
        )

    def script(self, text: str) -> None:
        file = self.folder / "coreos-installer"
        file.write_text(f'#!/bin/sh\ncd {self.folder}\necho x >>runs\nprintf "%s\\n" "$@" >words\n{text}\n')
        file.chmod(0o755)

    def words(self) -> list[str]:
        return (self.folder / "words").read_text().splitlines()

    def runs(self) -> int:
        return len((self.folder / "runs").read_text().splitlines())


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def images() -> Iterator[ImageHost]:
    with ImageHost.running() as host:
        host.files["/a.raw"] = IMAGE
        yield host


FETCH = """
for word in "$@"; do case $word in http://*) url=$word;; esac; done
python3 -c 'import sys, urllib.request as u; all = u.urlopen(sys.argv[1]).read(); open("got", "wb").write(all)' "$url" || {
echo "Error: fetching $url"; exit 1; }
echo "Install complete."
"""


def test_the_config_is_there_for_root_alone_while_it_is_needed(machine: Machine) -> None:
    machine.script("cp -p $4 kept; ls -ld $4 $(dirname $4) | cut -c1-10 >modes")
    machine.installer.install(Order(ignition='{"ignition":{"version":"3.0.0"}}', hostname="h1"), "/dev/sdx")
    kept = json.loads((machine.folder / "kept").read_text())
    assert kept["storage"]["files"][0]["path"] == "/etc/hostname"
    assert sorted((machine.folder / "modes").read_text().split()) == ["-rw-------", "drwx------"]
    path = machine.words()[3]
    assert path.startswith("/run/ingot-")
    assert not Path(path).parent.exists()


def test_keyfiles_are_there_for_root_alone_while_they_are_needed(machine: Machine) -> None:
    machine.script(
        "cp -pr $5 kept; ls -ld $5 | cut -c1-10 >modes; ls -l $5 | tail -n +2 | cut -c1-10 >>modes"
    )
    keyfiles = {"eth0.nmconnection": "[connection]\nid=eth0\n", "bond 0.nmconnection": "[bond]\n"}
    machine.installer.install(Order(keyfiles=keyfiles), "/dev/sdx")
    kept = machine.folder / "kept"
    assert {file.name: file.read_text() for file in kept.iterdir()} == keyfiles
    assert (machine.folder / "modes").read_text().split() == ["drwx------", "-rw-------", "-rw-------"]
    folder = machine.words()[4]
    assert machine.words() == ["install", "--offline", "--copy-network", "--network-dir", folder, "/dev/sdx"]
    assert folder.startswith("/run/ingot-")
    assert not Path(folder).parent.exists()


def test_without_a_config_none_is_given(machine: Machine) -> None:
    machine.script("")
    machine.installer.install(Order(), "/dev/sdx")
    assert machine.words() == ["install", "--offline", "/dev/sdx"]


def test_an_attempt_that_fails_is_repeated_after_a_pause(machine: Machine) -> None:
    machine.script('[ $(wc -l <runs) = 3 ] || { echo "Error: the disk went away"; exit 1; }')
    machine.installer.install(Order(hostname="h1"), "/dev/sdx")
    assert (machine.runs(), machine.slept) == (3, [10.0, 20.0])


def test_after_the_last_attempt_its_reason_is_told(machine: Machine) -> None:
    machine.script(
        'printf "Error: writing\\n\\nCaused by:\\n    it broke\\n\\nError: install failed\\n" >&2; exit 1'
    )
    with pytest.raises(Failed, match=r"could not install on /dev/sdx: writing: it broke \(attempt 3 of 3\)"):
        machine.installer.install(Order(), "/dev/sdx")
    assert machine.runs() == 3


def test_what_would_fail_again_is_not_repeated(machine: Machine) -> None:
    machine.script('echo "Error: cannot perform offline install; metadata missing"; exit 1')
    with pytest.raises(Hopeless, match="metadata missing"):
        machine.installer.install(Order(), "/dev/sdx")
    assert machine.runs() == 1


def test_a_root_without_coreos_installer_is_told(machine: Machine) -> None:
    with pytest.raises(Hopeless, match="coreos-installer cannot be run below /"):
        machine.installer.install(Order(), "/dev/sdx")


def test_a_wrong_name_of_a_disk_runs_nothing(machine: Machine) -> None:
    machine.script("")
    with pytest.raises(Refused):
        machine.installer.install(Order(), "/etc/passwd")
    assert not (machine.folder / "runs").exists()


def test_an_image_reaches_coreos_installer_through_the_relay(machine: Machine, images: ImageHost) -> None:
    machine.script(FETCH)
    images.script.append(503)
    image = Image(f"{images.url}/a.raw", Digest("sha256", SHA256))
    machine.installer.install(Order(image=image), "/dev/sdx")
    assert (machine.folder / "got").read_bytes() == IMAGE
    assert machine.runs() == 2


def test_the_hash_may_stand_in_a_file_beside_the_image(machine: Machine, images: ImageHost) -> None:
    machine.script(FETCH)
    images.files["/SUMS"] = f"{SHA256}  a.raw\n".encode()
    image = Image(f"{images.url}/a.raw", DigestAt(f"{images.url}/SUMS", None))
    machine.installer.install(Order(image=image), "/dev/sdx")
    assert (machine.folder / "got").read_bytes() == IMAGE


def test_a_wrong_hash_is_the_reason_whatever_coreos_installer_says(
    machine: Machine, images: ImageHost
) -> None:
    machine.script(FETCH)
    image = Image(f"{images.url}/a.raw", Digest("sha256", "0" * 64))
    with pytest.raises(Hopeless, match=f"its sha256 is {SHA256}, and 0000"):
        machine.installer.install(Order(image=image), "/dev/sdx")
    assert machine.runs() == 1
    assert not (machine.folder / "got").exists()


def test_a_disk_is_made_unbootable_even_when_coreos_installer_noticed_nothing(
    machine: Machine, images: ImageHost, request: pytest.FixtureRequest
) -> None:
    disk = Path(f"/dev/shm/ingot-{os.getpid()}")
    request.addfinalizer(lambda: disk.unlink(missing_ok=True))
    disk.write_bytes(b"boot" * (1 << 19))
    machine.script(FETCH.replace("exit 1", "exit 0"))
    image = Image(f"{images.url}/a.raw", Digest("sha256", "0" * 64))
    with pytest.raises(Hopeless, match="is not the one that was asked for"):
        machine.installer.install(Order(image=image), str(disk))
    assert disk.read_bytes() == bytes(1 << 20) + b"boot" * (1 << 18)
    machine.script("exit 0")
    with pytest.raises(Hopeless, match="did not read the image"):
        machine.installer.install(Order(image=image), str(disk))
    with pytest.raises(Hopeless, match="cannot be removed"):
        machine.installer.install(Order(image=image), "/dev/no-such-disk")


def test_progress_is_seen_in_the_log(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    machine.script(
        'for n in 1 2 100; do echo "Read disk $n.0 MiB/100.0 MiB ($n%)"; done; echo "Install complete."'
    )
    with caplog.at_level(logging.INFO, "ingot_agent"):
        machine.installer.install(
            Order(ignition='{"ignition":{"version":"3.0.0"},"x":"hunter2"}'), "/dev/sdx"
        )
    told = [record.message for record in caplog.records if "of the image" in record.message]
    assert told == [
        "install_coreos: 1.0 MiB of 100.0 MiB (1 %) of the image written",
        "install_coreos: 100.0 MiB of 100.0 MiB (100 %) of the image written",
    ]
    assert "hunter2" not in caplog.text
