"""Which ramdisk a host boots while Ironic works on it, and how.

Pure. A host has an image of its own, or boots the one that the operator is configured with: as an ISO where its BMC can be told
to boot one, and otherwise as kernel and initramfs, which also need the network to come from.

With fast track Ironic goes on with an agent that is still running, whatever it was booted from. So where a host is to boot
another ramdisk than before, it is switched off for this node, until an operating system was installed: then no agent runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ingot.api import bmc
from ingot.api.preprovisioningimage import ImageFormat
from ingot.provisioner import OwnRamdisk
from ingot.provisioner.ironic.model import Json
from ingot.provisioner.ironic.site import Ramdisk

KEYS: Final = ("deploy_iso", "deploy_kernel", "deploy_ramdisk", "kernel_append_params")
"""What of a node's `driver_info` says this."""


REUSE: Final = "fast_track"
"""What of it says whether an agent that runs is used again; without it, what Ironic is configured to do."""
NEVER: Final = "no"
"""Our own word for it, which tells it from what somebody else has written there."""


class UnusableRamdisk(ValueError):
    """The host cannot boot what it is given; the sentence says why."""


def ramdisk_formats(address: str) -> tuple[ImageFormat, ...]:
    try:
        scheme = bmc.parse(address).scheme
    except bmc.InvalidAddress:
        return ()
    return ("iso", "initrd") if scheme.boots_from_iso else ("initrd",)


def boots_over_network(address: str) -> bool:
    try:
        return bmc.parse(address).scheme.needs_provisioning_network
    except bmc.InvalidAddress:
        return False


def driver_info(scheme: bmc.Scheme, own: OwnRamdisk | None, usual: Ramdisk) -> dict[str, Json]:
    """What Ironic is told of it; nothing where its own default is meant."""
    if own is not None:
        return _own(scheme, own, usual)
    if usual.iso and scheme.boots_from_iso:
        return {"deploy_iso": usual.iso}
    if usual.kernel:
        return {"deploy_kernel": usual.kernel, "deploy_ramdisk": usual.initramfs}
    return {}


def chosen(told: Mapping[str, Json]) -> dict[str, Json]:
    """Which ramdisk a node is told to boot."""
    return {key: told[key] for key in KEYS if key in told}


def _own(scheme: bmc.Scheme, own: OwnRamdisk, usual: Ramdisk) -> dict[str, Json]:
    if own.format == "iso":
        if not scheme.boots_from_iso:
            raise UnusableRamdisk(
                f"the PreprovisioningImage is an ISO, and hosts with a BMC address of the scheme {scheme.name} boot "
                "over the network: an initrd is needed"
            )
        return {"deploy_iso": own.url}
    kernel = own.kernel_url or usual.kernel
    if not kernel:
        raise UnusableRamdisk(
            "the PreprovisioningImage is an initrd and names no kernel for it; set DEPLOY_KERNEL_URL and "
            "DEPLOY_RAMDISK_URL, or have its builder set status.kernelUrl"
        )
    told: dict[str, Json] = {"deploy_kernel": kernel, "deploy_ramdisk": own.url}
    if own.kernel_params:
        told["kernel_append_params"] = f"%default% {own.kernel_params}"
    return told
