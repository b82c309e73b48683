"""Root device hints. Ironic reads each as an expression (`s== sda`, `<in> Dell`), so nothing that is an operator passes."""

from __future__ import annotations

import re
from typing import Final

from ingot.api.baremetalhost import RootDeviceHints
from ingot.api.inputs.text import is_one_line
from ingot.provisioner.ironic.firewall.paths import device
from ingot.provisioner.ironic.firewall.rejection import reject

_OPERATOR: Final = re.compile(r"<(?:in|or|all-in|range-in)>|s(?:==|!=|<|<=|>|>=)(?=\s)")
_LONGEST: Final = 256


def root_device_hints(field: str, found: RootDeviceHints | None) -> None:
    if found is None:
        return
    if found.device_name:
        device(f"{field}.deviceName", found.device_name)
    texts = {
        "hctl": found.hctl,
        "model": found.model,
        "vendor": found.vendor,
        "serialNumber": found.serial_number,
        "wwn": found.wwn,
        "wwnWithExtension": found.wwn_with_extension,
        "wwnVendorExtension": found.wwn_vendor_extension,
    }
    for name, text in texts.items():
        if not is_one_line(text) or len(text) > _LONGEST:
            raise reject(
                f"{field}.{name}", text, f"expected one line of at most {_LONGEST} printable characters"
            )
        if operator := _OPERATOR.search(text):
            raise reject(
                f"{field}.{name}",
                text,
                f"{operator[0]!r} is an operator of Ironic's, not part of what a disk reports",
            )
