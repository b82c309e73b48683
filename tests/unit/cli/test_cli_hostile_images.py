"""Images that lie, or are made to harm: every verb says one clear sentence, touches nothing and leaves nothing behind."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from ingot.cli.main import main
from ingot.formats.coreos.bincode import number, sized
from ingot.formats.initrd import cpio
from ingot.formats.iso9660 import Iso
from live_images import NEWEST, live_image

CONFIG = b'{"ignition": {"version": "3.3.0"}}\n'
INFO, KARGS = "/coreos/igninfo.json", "/coreos/kargs.json"


def edited(path: str, content: bytes) -> bytes:
    """The newest image with other bytes at the beginning of one of its files."""
    image = bytearray(live_image(NEWEST))
    at = Iso(io.BytesIO(bytes(image)), plain_names=True).entry(path).offset
    image[at : at + len(content)] = content
    return bytes(image)


def looping() -> bytes:
    """The folder IMAGES is the root."""
    image = live_image(NEWEST)
    iso = Iso(io.BytesIO(image), plain_names=True)
    block, root = iso.entry("IMAGES").offset // 2048, iso.primary.root[2:10]
    place = struct.pack("<I", block) + struct.pack(">I", block)
    record = image.index(place, int.from_bytes(root[:4], "little") * 2048)
    return image[:record] + root + image[record + 8 :]


def bomb(kind: Callable[[bytes], bytes]) -> bytes:
    """An archive that fits the area and unpacks to more than anybody embeds."""
    zeros = cpio.entry_bytes("zeros", cpio.REGULAR | 0o600, bytes(70 << 20))
    return kind(zeros + cpio.trailer())


def growing() -> bytes:
    """A recipe for a minimal image many times as large as the full one."""
    size = len(live_image(NEWEST)) // 2
    pieces = [(index * (size // 2048 + 1), 0, size) for index in range(1000)]
    table = b"".join(number(part) for piece in pieces for part in piece)
    return (
        b"MINISO\0\0"
        + number(1)
        + sized(b"x")
        + number(len(pieces))
        + table
        + bytes(32)
        + sized(lzma.compress(b""))
    )


HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "cut short": lambda: live_image(NEWEST)[:-150_000],
    "a folder that contains itself": looping,
    "an area over the list of areas": lambda: live_image(NEWEST, {INFO: {"file": "coreos/kargs.jso"}}),
    "an area that leads out": lambda: live_image(NEWEST, {INFO: {"file": "../../etc/passwd"}}),
    "an area behind the end": lambda: live_image(NEWEST, {INFO: {"offset": 1 << 62, "length": 4096}}),
    "areas over each other": lambda: live_image(
        NEWEST, {KARGS: {"files": [{"path": "images/ignition.img", "offset": 0}]}}
    ),
}
VERBS = [
    ["iso", "ignition", "embed"],
    ["iso", "ignition", "show"],
    ["iso", "ignition", "remove"],
    ["iso", "kargs", "modify", "-a", "x"],
    ["iso", "kargs", "show"],
    ["iso", "reset"],
    ["iso", "customize", "--dest-device", "/dev/vda"],
    ["iso", "extract", "minimal-iso"],
    ["dev", "show", "iso", "--ignition"],
]


def refused(image: Path, words: list[str], *behind: str) -> str:
    before, beside = image.read_bytes(), sorted(image.parent.iterdir())
    ended = CliRunner().invoke(main, [*words, str(image), *behind], input=CONFIG)
    assert ended.exit_code == 1, ended.output
    assert ended.stderr.startswith("Error: ")
    assert len(ended.stderr) < 400
    assert ended.stdout == ""
    assert image.read_bytes() == before
    assert sorted(image.parent.iterdir()) == beside
    return ended.stderr


@pytest.mark.parametrize("name", HOSTILE)
def test_an_image_that_lies_is_refused_by_every_verb(name: str, tmp_path: Path) -> None:
    image = tmp_path / "image.iso"
    image.write_bytes(HOSTILE[name]())
    for words in VERBS:
        refused(image, words)
        if words[0] == "iso" and words[2:3] != ["show"] and "extract" not in words:
            refused(image, [*words, "-o", str(tmp_path / "out.iso")])


@pytest.mark.parametrize("kind", [gzip.compress, lzma.compress])
def test_an_area_that_unpacks_to_too_much_is_refused_and_a_reset_mends_it(
    kind: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    image = tmp_path / "image.iso"
    image.write_bytes(edited("IMAGES/IGNITION.IMG", bomb(kind)))
    for words in (
        ["iso", "ignition", "show"],
        ["iso", "ignition", "embed", "-f"],
        ["iso", "network", "extract"],
    ):
        assert "`iso reset` empties it" in refused(image, words)
    assert CliRunner().invoke(main, ["iso", "reset", str(image)]).exit_code == 0
    assert image.read_bytes() == live_image(NEWEST)


def test_a_recipe_that_grows_writes_nothing(tmp_path: Path) -> None:
    image = tmp_path / "image.iso"
    image.write_bytes(edited("COREOS/MINISO.DAT", growing()))
    words = ["iso", "extract", "minimal-iso", "--output-rootfs", str(tmp_path / "rootfs.img")]
    assert "larger than the full one" in refused(image, words, str(tmp_path / "minimal.iso"))


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../up"])
def test_keyfiles_with_paths_that_lead_out_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    path = f"etc/coreos-firstboot-network/{name}"
    archive = cpio.entry_bytes(path, cpio.REGULAR | 0o600, b"id=a\n") + cpio.trailer()
    image = tmp_path / "image.iso"
    image.write_bytes(edited("IMAGES/IGNITION.IMG", gzip.compress(archive)))
    ended = CliRunner().invoke(main, ["iso", "network", "extract", "-C", str(tmp_path / "out"), str(image)])
    assert ended.exit_code == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == [Path(name).name]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image.iso", "out"]
