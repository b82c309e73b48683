"""Paths that users write: devices of a machine. No other path of theirs reaches Ironic."""

from __future__ import annotations

import re
from typing import Final

from ingot.provisioner.ironic.firewall.rejection import reject

_DEVICE: Final = re.compile(r"/dev/(?:disk/by-path/)?(?P<name>[A-Za-z0-9_.:,@+=-]+)")


def device(field: str, found: str) -> None:
    path = _DEVICE.fullmatch(found)
    if path is None or path["name"] in (".", ".."):
        raise reject(field, found, "expected /dev/NAME or /dev/disk/by-path/NAME")
