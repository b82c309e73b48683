"""A CoreOS live ISO image as a machine reads it when it boots: the kernel's arguments, what is embedded, what there is to load.

Owns telling such an image from another one. Of kernel, initial RAM disk and root file system only the first and the last byte are
read here: enough to know that they are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.boot_parameters import kernel_parameters
from ingot.formats.coreos import LiveIso
from ingot.formats.iso9660 import Entry, Iso

_BOOT_FILES: Final = "IMAGES/PXEBOOT"
_MENUS: Final = ("/GRUB.CFG", "/ISOLINUX.CFG")
_LARGEST_MENU: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LiveMedium:
    label: str
    """The volume id, by which the live system looks for its medium."""
    arguments: str
    members: Mapping[str, bytes] = field(default_factory=dict)
    """What the Ignition area holds."""
    reads_network: bool = False
    """Its initial RAM disk heeds network settings that are embedded."""
    files: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Offset and length of kernel, initial RAM disk and root file system, by name."""


def live_medium(file: BinaryIO) -> LiveMedium | None:
    """What the image boots with; None for an image that is not one of CoreOS. Raises `FormatError` for one that is damaged."""
    try:
        iso = Iso(file, plain_names=True)
    except FormatError:
        return None
    try:
        boot_files = [entry for entry in iso.children(_BOOT_FILES) if not entry.directory]
        live = LiveIso(file)
    except (KeyError, UnsupportedFormat):
        return None
    for entry in boot_files:
        _touch(iso, entry)
    return LiveMedium(
        label=iso.label,
        arguments=live.arguments if live.argument_areas is not None else _in_menu(iso),
        members=live.embedded,
        reads_network=live.features.live_initrd_network,
        files={entry.path.rpartition("/")[2].lower(): (entry.offset, entry.size) for entry in boot_files},
    )


def _touch(iso: Iso, entry: Entry) -> None:
    if entry.size:
        iso.bytes_at(entry.offset, 1)
        iso.bytes_at(entry.end - 1, 1)


def _in_menu(iso: Iso) -> str:
    """An image from before there were areas for the arguments."""
    path = next((path for path, _ in iso.files() if path.upper().endswith(_MENUS)), None)
    if path is None:
        return ""
    found = kernel_parameters(iso.read(path, limit=_LARGEST_MENU).decode("utf-8", "replace"))
    return " ".join(f"{name}={value}" if value else name for name, value in found.items())
