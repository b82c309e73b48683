"""A small FAT12 volume with long names, as mkfs.vfat and mcopy make one; for tests."""

from __future__ import annotations

import struct

SECTOR = 512
SECTORS = 2880
FAT_SECTORS = 9
ROOT_ENTRIES = 224


def fat_volume(files: dict[str, bytes], *, label: str = "ir-vfd-dev") -> bytes:
    """A floppy of 1.44 MB: one sector a cluster, two tables."""
    disk = bytearray(SECTOR * SECTORS)
    disk[0:3] = b"\xeb\x3c\x90"
    struct.pack_into("<HBHBHHBH", disk, 11, SECTOR, 1, 1, 2, ROOT_ENTRIES, SECTORS, 0xF0, FAT_SECTORS)
    disk[38] = 0x29
    disk[43:54] = label.upper().ljust(11).encode()
    disk[54:62] = b"FAT12   "
    disk[510:512] = b"\x55\xaa"
    table = [0xFF0, 0xFFF]
    root = bytearray(_entry(label.ljust(11).encode()[:11], 0x08, 0, 0))
    data = bytearray()
    for number, (name, content) in enumerate(files.items()):
        clusters = max(1, -(-len(content) // SECTOR))
        first = len(table)
        table += [*range(first + 1, first + clusters), 0xFFF]
        data += content.ljust(clusters * SECTOR, b"\0")
        short = f"FILE~{number}  TXT".encode()[:11].ljust(11)
        root += _long_name(name, short) + _entry(short, 0x20, first, len(content))
    at = SECTOR
    for _ in range(2):
        packed = _twelve_bits(table)
        disk[at : at + len(packed)] = packed
        at += FAT_SECTORS * SECTOR
    disk[at : at + len(root)] = root
    at += ROOT_ENTRIES * 32
    disk[at : at + len(data)] = data
    return bytes(disk)


def _entry(name: bytes, attributes: int, cluster: int, size: int) -> bytes:
    return name + bytes([attributes]) + bytes(14) + struct.pack("<HI", cluster, size)


def _long_name(name: str, short: bytes) -> bytes:
    checksum = 0
    for byte in short:
        checksum = (((checksum & 1) << 7) + (checksum >> 1) + byte) & 0xFF
    parts = [name[at : at + 13] for at in range(0, len(name), 13)]
    entries = []
    for number, part in enumerate(parts, 1):
        text = (part + ("\0" if len(part) < 13 else "")).encode("utf-16-le").ljust(26, b"\xff")
        last = 0x40 if number == len(parts) else 0
        head = bytes([number | last]) + text[:10] + bytes([0x0F, 0, checksum])
        entries.append(head + text[10:22] + bytes(2) + text[22:26])
    return b"".join(reversed(entries))


def _twelve_bits(table: list[int]) -> bytes:
    packed = bytearray()
    for low, high in zip(table[::2], [*table[1::2], 0], strict=False):
        packed += (low | high << 12).to_bytes(3, "little")
    return bytes(packed)
