"""The words of the command, what coreos-installer's words mean, what never reaches a log, and what the host says of itself."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ingot_agent import command, host
from ingot_agent.errors import Refused
from ingot_agent.order import Order
from ingot_agent.redaction import HIDDEN, guard, redacted
from ingot_agent.transcript import LONGEST_REASON, Transcript, is_hopeless, progress

ROOT = Path("/mnt/coreos")


def words(
    order: Order, *, device: str = "/dev/sda", ignition_file: str | None = None, image_url: str | None = None
) -> list[str]:
    return command.install(order, root=ROOT, device=device, ignition_file=ignition_file, image_url=image_url)


def test_without_an_image_the_install_is_offline() -> None:
    assert words(Order()) == [
        *("chroot", "/mnt/coreos", "coreos-installer", "install"),
        *("--offline", "/dev/sda"),
    ]


def test_every_kernel_argument_has_a_flag_of_its_own() -> None:
    order = Order(append_kargs=("a=1,2", "--x"), delete_kargs=("quiet",), copy_network=True)
    made = words(order, ignition_file="/run/x/config.ign", image_url="http://127.0.0.1:1/t/a.raw")
    assert made[4:] == [
        *("--image-url", "http://127.0.0.1:1/t/a.raw", "--insecure"),
        *("--ignition-file", "/run/x/config.ign"),
        *("--append-karg=a=1,2", "--append-karg=--x", "--delete-karg=quiet"),
        *("--copy-network", "/dev/sda"),
    ]


@pytest.mark.parametrize(
    "device", ["/dev/sda", "/dev/nvme0n1", "/dev/disk/by-path/pci-0000:00:1f.2-ata-1", "/dev/md/0"]
)
def test_names_of_disks_are_taken(device: str) -> None:
    assert words(Order(), device=device)[-1] == device


@pytest.mark.parametrize(
    "device", ["", "sda", "--offline", "/dev/../etc/passwd", "/dev/sda\n", "/dev/-x", "/tmp/x"]
)
def test_what_is_no_name_of_a_disk_is_refused(device: str) -> None:
    with pytest.raises(Refused, match="not the name of a disk"):
        words(Order(), device=device)


def heard(text: str, **spelled: str) -> Transcript:
    transcript = Transcript(spelled)
    for line in text.splitlines(keepends=True):
        transcript.line(line)
    return transcript


WRITE_FAILED = """\
Downloading image from http://127.0.0.1:4/t/a.raw
Read disk 84.5 MiB/633.1 MiB (13%)

Error: decoding and writing image

Caused by:
    0: reading the disk
    1: No space left on device (os error 28)

Resetting partition table
Error: install failed
"""
BUSY = """\
Installing Fedora CoreOS
Partitions in use on /dev/sda:
    /dev/sda3 mounted on /data
    /dev/sda4 in use by /dev/dm-0
Error: checking for exclusive access to /dev/sda

Caused by:
    found busy partitions
"""


def test_the_reason_of_a_failed_write_is_the_block_before_its_end() -> None:
    assert heard(WRITE_FAILED).reason() == (
        "decoding and writing image: reading the disk: No space left on device (os error 28)"
    )


def test_busy_partitions_are_named() -> None:
    assert heard(BUSY).reason() == (
        "checking for exclusive access to /dev/sda: found busy partitions; "
        "Partitions in use on /dev/sda:; /dev/sda3 mounted on /data; /dev/sda4 in use by /dev/dm-0"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Error: install failed\n", "install failed"),
        ("error: unexpected argument '--x' found\n", "unexpected argument '--x' found"),
        ("\nkilled\n\n", "killed"),
        ("", "it said nothing"),
        ("Error: a\nRetrying in 1 second\nError: b\nError: install failed\n", "b"),
    ],
)
def test_the_reason_of_other_ends(text: str, reason: str) -> None:
    assert heard(text).reason() == reason


def test_a_reason_is_bounded_and_printable() -> None:
    reason = heard(
        "Error: " + "x\x1b[31m" * 9000 + "\n\nCaused by:\n" + "    y" * 900 + "\n" + "    z\n" * 150
    ).reason()
    assert len(reason) <= LONGEST_REASON + 2
    assert reason.isprintable()
    flood = "Error: first\n\nCaused by:\n" + "".join(f"    {number}: {'c' * 200}\n" for number in range(100))
    assert len(heard(flood).reason()) <= LONGEST_REASON + 2


def test_the_relays_url_is_shown_as_the_images() -> None:
    transcript = Transcript({"http://127.0.0.1:4/t/a.raw": "https://host/a.raw"})
    assert transcript.line("fetching 'http://127.0.0.1:4/t/a.raw'\n") == "fetching 'https://host/a.raw'"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Read disk 84.5 MiB/633.1 MiB (13%)\n", "84.5 MiB of 633.1 MiB (13 %)"),
        ("Read disk 1 GiB", "1 GiB"),
        ("Read disk 1.5 GiB/1.5 GiB (100%)", "1.5 GiB of 1.5 GiB (100 %)"),
    ],
)
def test_lines_about_progress_are_understood(line: str, shown: str) -> None:
    assert str(progress(line)) == shown


@pytest.mark.parametrize("line", ["Install complete.", "Reading signature from x", "Read disk"])
def test_other_lines_are_no_progress(line: str) -> None:
    assert progress(line) is None


@pytest.mark.parametrize(
    ("reason", "hopeless"),
    [
        ("cannot perform offline install; metadata missing", True),
        ("source has sector size 512 but destination has sector size 4096", True),
        ("found busy partitions", False),
        ("No space left on device (os error 28)", False),
    ],
)
def test_some_reasons_leave_no_hope(reason: str, hopeless: bool) -> None:
    assert is_hopeless(reason) is hopeless


def test_secrets_are_taken_out_wherever_they_stand() -> None:
    args = {"ignition": {"a": 1}, "append_kargs": ["x"], "network_keyfiles": {"eth0": "hunter2"}}
    step = {"step": "install_coreos", "args": args}
    node = {"instance_info": {"configdrive": {"user_data": "hunter2"}}, "agent_token": "", "n": None}
    assert redacted([step, (node,)]) == [
        {"step": "install_coreos", "args": dict(args, ignition=HIDDEN, network_keyfiles=HIDDEN)},
        ({"instance_info": {"configdrive": HIDDEN}, "agent_token": "", "n": None},),
    ]


def test_no_handler_sees_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("guarded")
    logger.addHandler(caplog.handler)
    guard(logger)
    guard(logger)
    try:
        logger.warning("step %s", {"args": {"ignition": "hunter2"}})
        logger.warning("step %(step)s of %(n)d", {"step": {"args": {"user_data": "hunter2"}}, "n": 3})
        logger.warning("%d plain", 7)
    finally:
        logger.removeHandler(caplog.handler)
        caplog.handler.filters.clear()
    assert "hunter2" not in caplog.text
    assert "7 plain" in caplog.text
    assert "of 3" in caplog.text


FCOS = """\
NAME="Fedora Linux"
VERSION="44 (CoreOS)"
OSTREE_VERSION='44.20260707.3.1'
PRETTY_NAME="Fedora CoreOS 44"
"""


def test_the_build_that_runs_is_read_from_its_root(tmp_path: Path) -> None:
    assert host.build(tmp_path) is None
    assert not host.is_there(tmp_path)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text(FCOS)
    assert host.is_there(tmp_path)
    assert host.build(tmp_path) == host.Build("44.20260707.3.1", "Fedora CoreOS 44")
    (tmp_path / "etc" / "coreos-live-initramfs").write_text("44.20260707.3.2\n")
    assert host.build(tmp_path) == host.Build("44.20260707.3.2", "Fedora CoreOS 44")


def test_an_odd_os_release_is_survived(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_bytes(b'\xff\nVERSION="1\n=x\n' + b"y" * 9000)
    assert host.build(tmp_path) == host.Build('"1', '"1')


@pytest.mark.parametrize(
    ("current", "default", "better"),
    [
        ("localhost", "h1", "h1"),
        ("localhost.localdomain", "h1", "h1"),
        ("", "h1", "h1"),
        ("h0", "h1", None),
        ("localhost", "", None),
        ("localhost", "a b", None),
    ],
)
def test_only_a_machine_without_a_name_is_given_one(current: str, default: str, better: str | None) -> None:
    assert host.better_hostname(current, default) == better
