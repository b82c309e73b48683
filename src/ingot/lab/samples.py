"""What the lab brings to practise with: a ramdisk as ISO image and as kernel and initrd, a live ISO image, and a small disk
image as raw and as qcow2.

All are deterministic, so they keep their digests. The disk image has a boot signature and a marker, and nothing that runs:
the simulated servers read it, they do not execute it.
"""

from __future__ import annotations

import hashlib
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ingot.formats.boot_parameters import grub_config
from ingot.formats.initrd import pack
from ingot.formats.iso9660 import build_iso
from ingot.formats.qcow2 import write_qcow2
from ingot.lab.medium import BOOT_CONFIGS, CA_IN_RAMDISK

SAMPLE_SIZE: Final = 16 << 20
_MARKER: Final = b"Ingot sample image: a disk to practise on.\n"
_KERNEL: Final = 960 << 10
_MADE_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


def ramdisk_iso(*, agent_api: str, ca: bytes) -> bytes:
    """A boot medium that tells the agent which Ironic to call and whom to trust."""
    base = agent_api.rstrip("/")
    config = grub_config(
        kernel="/vmlinuz",
        initrd="/initrd",
        values={
            "ipa-api-url": base,
            "ipa-inspection-callback-url": f"{base}/v1/continue_inspection",
            "boot_method": "vmedia",
        },
    ).encode()
    files = {"/vmlinuz": kernel(), "/initrd": initrd(ca=ca)}
    files |= dict.fromkeys(BOOT_CONFIGS[:2], config)
    return build_iso(files, label="INGOT_RAMDISK", made_at=_MADE_AT)


def kernel() -> bytes:
    """What stands where a kernel would be: large enough that fetching it is work."""
    return b"Not a kernel: the simulated servers run a simulated agent.\n" + hashlib.shake_256(
        b"kernel"
    ).digest(_KERNEL)


def initrd(*, ca: bytes) -> bytes:
    """A ramdisk with nothing in it but whom its agent trusts."""
    return pack({CA_IN_RAMDISK.lstrip("/"): ca})


def live_iso() -> bytes:
    """An operating system that runs from its medium: it boots, and knows of no agent."""
    config = grub_config(kernel="/vmlinuz", initrd="/initrd", values={"root": "live", "quiet": ""}).encode()
    files = {"/vmlinuz": kernel(), "/initrd": pack({"etc/os-release": b"NAME=Practice\n"})}
    files |= dict.fromkeys(BOOT_CONFIGS[:2], config)
    return build_iso(files, label="INGOT_LIVE", made_at=_MADE_AT)


def sample_disk() -> bytes:
    """A disk of 16 MiB: boot signature, a marker, and a block of bytes in its middle and at its end."""
    disk = bytearray(SAMPLE_SIZE)
    disk[: len(_MARKER)] = _MARKER
    disk[510:512] = b"\x55\xaa"
    for at in (1 << 20, SAMPLE_SIZE // 2 + 4096, SAMPLE_SIZE - 4096):
        block = b"".join(hashlib.sha256(f"{at} {number}".encode()).digest() for number in range(128))
        disk[at : at + len(block)] = block
    return bytes(disk)


def as_qcow2(disk: bytes) -> bytes:
    out = io.BytesIO()
    write_qcow2(io.BytesIO(disk), out)
    return out.getvalue()


def bundle(*files: Path) -> bytes:
    """The certificates of several files in one, each once."""
    seen: dict[bytes, None] = {}
    for file in files:
        seen[file.read_bytes().strip() + b"\n"] = None
    return b"".join(seen)
