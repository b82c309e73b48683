"""The firmware settings of a demo machine: a dozen, of every sort that there is, the same for all machines."""

from __future__ import annotations

from typing import Final

from ingot.api.firmwareschema import SettingSchema
from ingot.provisioner import FirmwareReport

VENDOR: Final = "Ingot Demo Works"
MODEL: Final = "Anvil 2U"
NOTHING: Final = FirmwareReport()


def _one_of(*values: str) -> SettingSchema:
    return SettingSchema(attribute_type="Enumeration", allowable_values=list(values), read_only=False)


_SWITCH: Final = _one_of("Enabled", "Disabled")

SCHEMA: Final = {
    "BootMode": _one_of("Uefi", "Bios"),
    "BootDelaySeconds": SettingSchema(
        attribute_type="Integer", lower_bound=0, upper_bound=60, read_only=False
    ),
    "AssetTag": SettingSchema(attribute_type="String", min_length=0, max_length=63, read_only=False),
    "LogicalProc": _SWITCH,
    "MemTest": _SWITCH,
    "NumLock": _one_of("On", "Off"),
    "ProcCStates": _SWITCH,
    "ProcTurboMode": _SWITCH,
    "ProcVirtualization": _SWITCH,
    "QuietBoot": SettingSchema(attribute_type="Boolean", read_only=False),
    "SriovGlobalEnable": _SWITCH,
    "SystemServiceTag": SettingSchema(attribute_type="String", read_only=True, unique=True),
    "WorkloadProfile": _one_of("Balanced", "HighPerformance", "LowPower", "Virtualization"),
}

SETTINGS: Final = {
    "BootMode": "Uefi",
    "BootDelaySeconds": "5",
    "AssetTag": "",
    "LogicalProc": "Enabled",
    "MemTest": "Disabled",
    "NumLock": "On",
    "ProcCStates": "Enabled",
    "ProcTurboMode": "Enabled",
    "ProcVirtualization": "Enabled",
    "QuietBoot": "true",
    "SriovGlobalEnable": "Disabled",
    "SystemServiceTag": "DEMO",
    "WorkloadProfile": "Balanced",
}
"""As the machine came with them."""
