"""What runs after a boot from the disk: an operating system that reads its config drive.

Everything reported is read back here and now: the image's digest from the disk, host name and user data from the config
drive. A disk without a boot signature, or that nothing was written to, does not boot.
"""

from __future__ import annotations

import io
import json
from typing import Any, Final

from ingot.formats import FormatError
from ingot.formats.iso9660 import Iso
from ingot.lab.disk import Check, Disk
from ingot.lab.errors import BootFailure
from ingot.lab.record import Instance

_LABEL: Final = "config-2"
_LATEST: Final = "/openstack/latest/"


def boot_from_disk(disk: Disk, image_size: int | None, check: Check) -> Instance:
    """Boot what is on the disk. Blocks: it reads the whole image."""
    if image_size is None or not disk.bootable():
        raise BootFailure("the disk is not bootable: it has no boot signature in its first sector")
    instance = Instance(image_sha256=disk.sha256(image_size, check), image_size=image_size)
    content = disk.config_drive
    if content is not None:
        _read_config_drive(content, instance)
    return instance


def _read_config_drive(content: bytes, instance: Instance) -> None:
    try:
        iso = Iso(io.BytesIO(content))
    except FormatError:
        return  # an operating system that cannot read the drive comes up without it
    if iso.label.lower() != _LABEL:
        return
    instance.meta_data = _json(iso, "meta_data.json") or {}
    instance.network_data = _json(iso, "network_data.json")
    instance.user_data = (_file(iso, "user_data") or b"").decode("utf-8", "replace")
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
