"""Hardware profiles: where to install when the user gave no hints. Pure."""

from __future__ import annotations

from typing import Final

from ingot.api.baremetalhost import BareMetalHostSpec, RootDeviceHints
from ingot.api.meta import Malformed
from ingot.hosts.states.raid import has_software_volumes

UNKNOWN: Final = "unknown"
PROFILES: Final[dict[str, RootDeviceHints | None]] = {
    UNKNOWN: RootDeviceHints(device_name="/dev/sda"),
    "libvirt": RootDeviceHints(device_name="/dev/vda"),
    "dell": RootDeviceHints(hctl="0:0:0:0"),
    "dell-raid": RootDeviceHints(hctl="0:2:0:0"),
    "openstack": RootDeviceHints(device_name="/dev/vdb"),
    "empty": None,
}


def profile_name(spec: BareMetalHostSpec) -> str:
    """The profile in use: the one that was asked for, else the one that fits the address."""
    name = spec.hardware_profile or ("libvirt" if spec.bmc.address.startswith("libvirt") else UNKNOWN)
    if name not in PROFILES:
        raise Malformed(
            f"spec.hardwareProfile is {name!r}, which is no profile. Use one of {', '.join(PROFILES)}, or leave it out."
        )
    return name


def root_device(spec: BareMetalHostSpec) -> RootDeviceHints | None:
    """Which disk to install on: as the user says, else as the profile says.

    A profile guesses one of the disks, and with software RAID that would be a part of a volume: it is left to the volumes then.
    """
    if spec.root_device_hints is None and has_software_volumes(spec):
        return None
    return spec.root_device_hints or PROFILES[profile_name(spec)]
