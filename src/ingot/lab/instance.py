"""What runs after a boot from a disk or a live medium: an operating system that reads its config drive.

Everything reported is read back here and now: the image's digest from the disk, host name and user data from the config
drive, or from what an installer left for the first boot. A disk without a boot signature does not boot.
"""

from __future__ import annotations

import io
import json
from typing import Any, Final

import msgspec

from ingot.formats import FormatError
from ingot.formats.iso9660 import Iso
from ingot.lab.coreos import Left, first_boot
from ingot.lab.disk import Check, Disk
from ingot.lab.errors import BootFailure
from ingot.lab.medium import CONFIG_DRIVE
from ingot.lab.record import Instance, Written

_LATEST: Final = "/openstack/latest/"


def boot_from_disk(disk: Disk, written: Written, check: Check) -> Instance:
    """Boot what is on the disk. Blocks: it reads the whole image."""
    if not disk.bootable():
        raise BootFailure("the disk is not bootable: it has no boot signature in its first sector")
    instance = Instance(image_sha256=disk.sha256(written.size, check), image_size=written.size)
    if (left := disk.ignition) is not None:
        first_boot(msgspec.json.decode(left, type=Left), instance)
        if not instance.hostname:
            _name(instance)
    read_config_drive(disk.config_drive, instance)
    return instance


def read_config_drive(content: bytes | None, instance: Instance) -> None:
    """Let the instance read the drive. One that it cannot read is as if it were not there."""
    if content is None:
        return
    try:
        iso = Iso(io.BytesIO(content))
    except FormatError:
        return
    if iso.label.lower() != CONFIG_DRIVE:
        return
    instance.meta_data = _json(iso, "meta_data.json") or {}
    instance.network_data = _json(iso, "network_data.json")
    instance.user_data = (_file(iso, "user_data") or b"").decode("utf-8", "replace")
    _name(instance)


def _name(instance: Instance) -> None:
    for key in ("local-hostname", "hostname", "name"):
        if isinstance(name := instance.meta_data.get(key), str) and name:
            instance.hostname = name
            break


def _json(iso: Iso, name: str) -> dict[str, Any] | None:
    try:
        value = json.loads(_file(iso, name) or b"null")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _file(iso: Iso, name: str) -> bytes | None:
    try:
        return iso.read(_LATEST + name)
    except (KeyError, FormatError):
        return None
