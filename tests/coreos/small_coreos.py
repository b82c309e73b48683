"""A disk of the shape that CoreOS metal images have, of 24 MiB: partitions, file systems, a boot entry, an OSTree repository.

Nothing in it boots. It has what coreos-installer looks for and changes, in the places where a real image has it.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MIB: Final = 1 << 20
SIZE: Final = 24 * MIB
OPTIONS: Final = "mitigations=auto,nosmt ignition.platform.id=metal $ignition_firstboot quiet"
INITRAMFS: Final = b"initramfs of the small CoreOS" * 100
OBJECTS: Final = {
    name: content
    for content in (b"first object\n" * 4000, b"second object\n" * 700)
    if (name := hashlib.sha256(content).hexdigest())
}
LOADER: Final = ("shimx64.efi", "Small CoreOS")
"""The boot loader on the EFI system partition, and the name of its entry."""
_LINUX: Final = uuid.UUID("0fc63daf-8483-4772-8e79-3d69d8477de4")
_EFI: Final = uuid.UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")


@dataclass(frozen=True, slots=True)
class Part:
    """A partition: its label, and where it is, in MiB."""

    label: str
    start: int
    length: int
    kind: uuid.UUID = _LINUX


PARTS: Final = (
    Part("BIOS-BOOT", 1, 1),
    Part("EFI-SYSTEM", 2, 1, _EFI),
    Part("boot", 3, 10),
    Part("root", 13, 10),
)
BOOT: Final = PARTS[2]


def metal_image(folder: Path) -> bytes:
    """The whole disk. `folder` is for the trees that become its file systems."""
    disk = bytearray(SIZE)
    head, tail = _partition_table()
    disk[: len(head)] = head
    disk[SIZE - len(tail) :] = tail
    trees = (_efi_tree(folder / "efi"), _boot_tree(folder / "boot"), _root_tree(folder / "root"))
    for part, tree in zip(PARTS[1:], trees, strict=True):
        content = _file_system(folder / f"{part.label}.img", tree, part)
        disk[part.start * MIB : part.start * MIB + len(content)] = content
    return bytes(disk)


def labels(disk: Path) -> list[str]:
    """The names of the partitions on a disk, as its table says; raises where there is no table."""
    content = disk.read_bytes()[512 : 512 + 34 * 512]
    assert content[:8] == b"EFI PART", "there is no partition table"
    entries = content[512 : 512 + 128 * 128]
    found = (entries[at : at + 128] for at in range(0, len(entries), 128))
    return [entry[56:].decode("utf-16-le").rstrip("\0") for entry in found if entry[:16].strip(b"\0")]


def file_on_boot(disk: Path, path: str) -> bytes | None:
    """A file of the boot partition; None where it is not there."""
    words = ["debugfs", "-R", f"cat {path}", f"{disk}?offset={BOOT.start * MIB}"]
    ended = subprocess.run(words, capture_output=True, check=True)
    return None if b"File not found" in ended.stderr else ended.stdout


def mode_on_boot(disk: Path, path: str) -> str:
    words = ["debugfs", "-R", f"stat {path}", f"{disk}?offset={BOOT.start * MIB}"]
    said = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    return said.split("Mode:")[1].split()[0]


def lay_out_objects(repository: Path) -> None:
    """The same objects as on the image's root, as the system that runs has them."""
    for name, content in OBJECTS.items():
        file = repository / "objects" / name[:2] / f"{name[2:]}.file"
        file.parent.mkdir(parents=True)
        file.write_bytes(content)


def _boot_tree(tree: Path) -> Path:
    files = {
        "loader/entries/ostree-1-coreos.conf": (
            f"title CoreOS\nversion 1\noptions {OPTIONS}\nlinux /ostree/c/vmlinuz\ninitrd /ostree/c/initramfs.img\n"
        ).encode(),
        "loader/entries/ostree-0-older.conf": b"title Older\noptions older\n",
        "ostree/c/vmlinuz": b"kernel" * 50,
        "ostree/c/initramfs.img": INITRAMFS,
        "ignition.firstboot": b"",
        "grub2/grub.cfg": b"\n# CONSOLE-SETTINGS-START\n# CONSOLE-SETTINGS-END\n",
    }
    for name, content in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    # As in real images: the folder that paths of boot entries begin with is the partition itself.
    (tree / "boot").symlink_to(".")
    return tree


def _efi_tree(tree: Path) -> Path:
    folder = tree / "EFI" / "small"
    folder.mkdir(parents=True)
    (folder / "BOOTX64.CSV").write_bytes(
        f"{LOADER[0]},{LOADER[1]},,This is the boot entry\n".encode("utf-16")
    )
    (folder / LOADER[0]).write_bytes(b"MZ")
    return tree


def _root_tree(tree: Path) -> Path:
    lay_out_objects(tree / "ostree" / "repo")
    return tree


def _file_system(file: Path, tree: Path, part: Part) -> bytes:
    with file.open("wb") as made:
        made.truncate(part.length * MIB)
    # A real EFI system partition is FAT, which not every kernel of a virtual machine knows.
    kind = "mkfs.ext2" if part.kind == _EFI else "mkfs.ext4"
    subprocess.run([kind, "-q", "-F", "-L", part.label, "-d", tree, file], check=True)
    return file.read_bytes()


def _partition_table() -> tuple[bytes, bytes]:
    sectors = SIZE // 512
    entries = b"".join(
        part.kind.bytes_le
        + uuid.uuid4().bytes_le
        + struct.pack("<QQQ", part.start * 2048, (part.start + part.length) * 2048 - 1, 0)
        + part.label.encode("utf-16-le").ljust(72, b"\0")
        for part in PARTS
    ).ljust(128 * 128, b"\0")
    name = uuid.uuid4().bytes_le

    def header(here: int, other: int, table: int) -> bytes:
        fields = (b"EFI PART", 0x10000, 92, 0, 0, here, other, 34, sectors - 34, name, table, 128, 128)
        packed = struct.pack("<8sIIIIQQQQ16sQIII", *fields, zlib.crc32(entries))
        return (packed[:16] + struct.pack("<I", zlib.crc32(packed)) + packed[20:]).ljust(512, b"\0")

    protective = struct.pack("<B3sB3sII", 0, b"\0\2\0", 0xEE, b"\xff\xff\xff", 1, sectors - 1)
    boot_code = b"boot code".ljust(446, b"\x90")
    record = boot_code + protective + bytes(48) + b"\x55\xaa"
    return record + header(1, sectors - 1, 2) + entries, entries + header(sectors - 1, 1, sectors - 33)
