"""Reading boot media: what is on an ISO image, a virtual stick or in a ramdisk that matters for a boot.

Pure, apart from reading the file. An ISO image gives the kernel's parameters, the CA certificate and the network data that
Ironic puts on it; a stick gives parameters or a config drive. Media with the same digest are read once.
"""

from __future__ import annotations

import io
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from ingot.formats import FormatError
from ingot.formats.boot_parameters import kernel_parameters
from ingot.formats.fat import looks_like_fat, read_fat
from ingot.formats.initrd import read_members
from ingot.formats.iso9660 import Iso

CA_IN_RAMDISK: Final = "/etc/ironic-python-agent/ironic.crt"
BOOT_CONFIGS: Final = ("/boot/grub/grub.cfg", "/EFI/BOOT/grub.cfg", "/isolinux/isolinux.cfg", "/isolinux.cfg")
CONFIG_DRIVE: Final = "config-2"
_NETWORK_DATA: Final = "/openstack/latest/network_data.json"
_PARAMETERS: Final = "parameters.txt"
_BOOT_RECORD: Final = 0
_EL_TORITO: Final = b"EL TORITO SPECIFICATION"
_REMEMBERED: Final = 64
_SMALL: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Medium:
    label: str = ""
    bootable: bool = False
    """There is a boot loader, or at least its configuration."""
    parameters: dict[str, str] = field(default_factory=dict)
    ca: str = ""
    network_data: dict[str, Any] | None = None
    config_drive: bytes | None = None
    """The medium itself, when it is a config drive."""

    @property
    def for_agent(self) -> bool:
        """Whether an agent finds in it whom to call."""
        return any(name in self.parameters for name in ("ipa-api-url", "ipa-inspection-callback-url"))


class Library:
    """Media that were read before, by their digest."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Medium] = OrderedDict()

    def known(self, sha256: str) -> Medium | None:
        found = self._known.get(sha256)
        if found is not None:
            self._known.move_to_end(sha256)
        return found

    def keep(self, sha256: str, medium: Medium) -> None:
        self._known[sha256] = medium
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def read_medium(file: BinaryIO) -> Medium:
    """What is on a CD or a stick. Blocks for as long as reading a few sectors takes."""
    file.seek(0)
    if looks_like_fat(file.read(512)):
        return _stick(file)
    return _iso(file)


def ca_in_initrd(file: BinaryIO) -> str:
    """The CA certificate that was put into a ramdisk; "" when there is none, or when it is no ramdisk at all."""
    wanted = CA_IN_RAMDISK.lstrip("/")
    try:
        file.seek(0)
        members = read_members(file, lambda name: name == wanted, limit=_SMALL)
    except FormatError:
        return ""
    return members.get(wanted, b"").decode("ascii", "replace")


def _stick(file: BinaryIO) -> Medium:
    volume = read_fat(file)
    text = volume.files.get(_PARAMETERS, b"").decode("utf-8", "replace")
    lines = (line.strip().partition("=") for line in text.splitlines() if line.strip())
    return Medium(label=volume.label, parameters={name.strip(): value.strip() for name, _, value in lines})


def _iso(file: BinaryIO) -> Medium:
    iso = Iso(file)
    config = _boot_config(iso)
    bootable = config is not None or _has_boot_record(iso)
    # A boot medium with network data has the label of a config drive: that is how its ramdisk finds them.
    if iso.label.lower() == CONFIG_DRIVE and not bootable:
        return Medium(label=iso.label, config_drive=iso.bytes_at(0, iso.size))
    return Medium(
        label=iso.label,
        bootable=bootable,
        parameters=_parameters(config),
        ca=_ca(iso),
        network_data=_json(iso, _NETWORK_DATA),
    )


def _boot_config(iso: Iso) -> str | None:
    """The boot loader's configuration: where it usually is, or wherever a file has its name."""
    named = next((name for name in BOOT_CONFIGS if name in iso), None)
    if named is None:
        endings = ("/grub.cfg", "/isolinux.cfg")
        named = next((path for path, _ in iso.files() if path.lower().endswith(endings)), None)
    return None if named is None else iso.read(named, limit=_SMALL).decode("utf-8", "replace")


def _parameters(config: str | None) -> dict[str, str]:
    try:
        return {} if config is None else kernel_parameters(config)
    except FormatError:
        return {}  # a menu without a kernel: some other operating system's


def _has_boot_record(iso: Iso) -> bool:
    return any(one.kind == _BOOT_RECORD and one.sector[7:30] == _EL_TORITO for one in iso.descriptors)


def _ca(iso: Iso) -> str:
    if CA_IN_RAMDISK in iso:
        return iso.read(CA_IN_RAMDISK, limit=_SMALL).decode("ascii", "replace")
    if "/initrd" in iso:
        entry = iso.entry("/initrd")
        if entry.size <= 64 * _SMALL:
            return ca_in_initrd(io.BytesIO(iso.bytes_at(entry.offset, entry.size)))
    return ""


def _json(iso: Iso, path: str) -> dict[str, Any] | None:
    try:
        value = json.loads(iso.read(path, limit=_SMALL))
    except (KeyError, ValueError):
        return None
    return value if isinstance(value, dict) else None
