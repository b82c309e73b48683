"""Root device hints: which disk is meant. A back end reads each as an expression, so nothing that is an operator to it passes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from ingot.api.baremetalhost import RootDeviceHints
from ingot.api.inputs.text import is_one_line

_DEVICE: Final = re.compile(r"/dev/(?:disk/by-path/)?(?P<name>[A-Za-z0-9_.:,@+=-]+)")
_OPERATOR: Final = re.compile(r"<(?:in|or|all-in|range-in)>|s(?:==|!=|<|<=|>|>=)(?=\s)")
_LONGEST: Final = 256


class Problem(NamedTuple):
    field: str
    found: str
    sentence: str


def problems_with(hints: RootDeviceHints | None) -> Iterator[Problem]:
    if hints is None:
        return
    if hints.device_name and not is_device(hints.device_name):
        yield Problem(
            "deviceName",
            hints.device_name,
            "write /dev/NAME or /dev/disk/by-path/NAME; other links do not exist in the ramdisk. "
            "For a disk known by its ID use the hints serialNumber or wwn.",
        )
    texts = {
        "hctl": hints.hctl,
        "model": hints.model,
        "vendor": hints.vendor,
        "serialNumber": hints.serial_number,
        "wwn": hints.wwn,
        "wwnWithExtension": hints.wwn_with_extension,
        "wwnVendorExtension": hints.wwn_vendor_extension,
    }
    for field, text in texts.items():
        if not is_one_line(text) or len(text) > _LONGEST:
            yield Problem(field, text, f"expected one line of at most {_LONGEST} printable characters.")
        elif operator := _OPERATOR.search(text):
            yield Problem(
                field, text, f"{operator[0]!r} is an operator of Ironic's, not part of what a disk reports."
            )


def is_device(path: str) -> bool:
    found = _DEVICE.fullmatch(path)
    return found is not None and found["name"] not in (".", "..")
