"""What Ironic can drive: hardware types, and the interfaces that each of them may use.

Pure. Ironic's worker does not start when a hardware type is left without one usable interface of some kind, when an interface
is enabled whose program is missing, or when a default is not usable by every type. So the lists are written from one table, a
type whose program is not there is left out as a whole, and only kinds that have an interface in common get a default.

Ironic 38 and 39 have no other types worth having: iLO and iRMC machines are driven over Redfish.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ingot.services.option import Option

_ALIKE: Final = {
    "console": ("no-console",),
    # The last is for hosts whose image is a container that boots; autodetect chooses among the others by the image.
    "deploy": ("direct", "ramdisk", "custom-agent", "bootc", "autodetect"),
    "network": ("noop",),
    "rescue": ("no-rescue",),
    "storage": ("noop",),
}
_OVER_THE_NETWORK: Final = ("ipxe", "http-ipxe", "pxe", "http")


@dataclass(frozen=True, slots=True)
class HardwareType:
    """One of Ironic's drivers: its interfaces by kind, and the program it cannot do without."""

    name: str
    interfaces: Mapping[str, tuple[str, ...]]
    program: str = ""


TYPES: Final = (
    HardwareType(
        "redfish",
        {
            **_ALIKE,
            "bios": ("redfish", "no-bios"),
            "boot": ("redfish-virtual-media", "redfish-https", *_OVER_THE_NETWORK),
            "firmware": ("redfish", "no-firmware"),
            "inspect": ("agent", "redfish", "no-inspect"),
            "management": ("redfish",),
            "power": ("redfish",),
            "raid": ("redfish", "agent", "no-raid"),
            "vendor": ("redfish", "no-vendor"),
        },
    ),
    HardwareType(
        "idrac",
        {
            **_ALIKE,
            "bios": ("idrac-redfish", "redfish", "no-bios"),
            "boot": ("idrac-redfish-virtual-media", "redfish-https", *_OVER_THE_NETWORK),
            # There is none of its own; enabling one by that name stops Ironic.
            "firmware": ("redfish", "no-firmware"),
            "inspect": ("agent", "idrac-redfish", "no-inspect"),
            "management": ("idrac-redfish",),
            "power": ("idrac-redfish", "redfish"),
            "raid": ("idrac-redfish", "agent", "no-raid"),
            "vendor": ("idrac-redfish", "redfish", "no-vendor"),
        },
    ),
    HardwareType(
        "ipmi",
        {
            **_ALIKE,
            "bios": ("no-bios",),
            "boot": _OVER_THE_NETWORK,
            "firmware": ("no-firmware",),
            "inspect": ("agent", "no-inspect"),
            "management": ("ipmitool", "noop"),
            "power": ("ipmitool",),
            "raid": ("agent", "no-raid"),
            "vendor": ("ipmitool", "no-vendor"),
        },
        program="ipmitool",
    ),
)
ALL: Final = tuple(hardware.name for hardware in TYPES)
_DEFAULTS: Final = {
    "deploy": ("direct", "The agent downloads and writes the image itself."),
    "inspect": ("agent", "Only the agent sees disks and NICs as the host will."),
    "network": ("noop", "There is no Neutron."),
}


def programs() -> Mapping[str, str]:
    """The programs that hardware types need: by type, the program."""
    return {hardware.name: hardware.program for hardware in TYPES if hardware.program}


def hardware_options(enabled: tuple[str, ...]) -> Iterator[Option]:
    """The options for these types, in the order of the table."""
    chosen = [hardware for hardware in TYPES if hardware.name in enabled]
    left_out = [hardware for hardware in TYPES if hardware.name not in enabled]
    reason = "What drives hosts." + "".join(
        f" Without {hardware.name}: the program {hardware.program} is not on PATH." for hardware in left_out
    )
    yield Option("DEFAULT", "enabled_hardware_types", ",".join(hardware.name for hardware in chosen), reason)
    for kind in sorted(chosen[0].interfaces):
        names = dict.fromkeys(name for hardware in chosen for name in hardware.interfaces[kind])
        yield Option(
            "DEFAULT",
            f"enabled_{kind}_interfaces",
            ",".join(names),
            f"The {kind} interfaces that hosts may use.",
        )
    for kind, (name, why) in _DEFAULTS.items():
        yield Option("DEFAULT", f"default_{kind}_interface", name, why)
