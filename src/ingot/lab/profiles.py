"""Vendors: how a server is labelled, and where its BMC deviates from the plain one.

Owns the facts, a plain value per vendor; the BMC acts them out. A server's plate names its profile. The deviations are those
that real BMCs show to Ironic; a client that handles the profiles handles the machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ingot.lab.errors import LabError


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A virtual drive: `drive` is what the firmware knows it by, `id` and `types` what the BMC says of it."""

    id: str
    drive: str
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    name: str
    vendor: str
    manufacturer: str
    model: str
    bios_version: str
    bmc_model: str
    bmc_version: str
    nic_version: str = "1.0.0"
    manager: str = "1"
    chassis: str = "1"
    slots: tuple[Slot, ...] = (
        Slot(id="Cd", drive="Cd", types=("CD", "DVD")),
        Slot(id="Usb", drive="Usb", types=("USBStick",)),
    )
    media_of_system: bool = False
    """Virtual media are a part of the System; the Manager has none."""
    media_by_patch: bool = False
    """A medium is inserted and ejected by PATCH of its slot; there are no actions."""
    insert_needs: tuple[str, ...] = ()
    """What InsertMedia insists on besides the image."""
    insert_refuses: tuple[str, ...] = ()
    """What InsertMedia does not know, though the standard does."""
    insert_once: bool = False
    """A medium that is in the slot must be ejected before the next one."""
    eject_needs_body: bool = False
    """EjectMedia wants at least {}."""
    usb_cd: bool = False
    """The virtual CD is called UsbCd as a boot source."""
    whole_override: bool = False
    """A PATCH of the boot target also says for how long and in which mode, or is refused."""
    busy_in_post: bool = False
    """The boot source cannot be changed while the server starts."""
    enabled_with_target: bool = False
    """A PATCH of the boot target that does not say for how long is refused."""
    bios_by_task: bool = False
    """BIOS settings are a job in the queue until they are applied."""
    volumes_by_task: bool = False
    """Volumes are made and removed by a task rather than at once."""
    volumes_at_boot: bool = False
    """Volumes are made and removed at the next boot only."""
    dell: bool = False
    """Dell's own resources and actions are there."""
    task_prefix: str = ""


GENERIC: Final = Profile(
    name="generic",
    vendor="Ingot",
    manufacturer="Ingot",
    model="Practice Server",
    bios_version="1.0.0",
    bmc_model="Practice BMC",
    bmc_version="1.0.0",
)

DELL: Final = Profile(
    name="dell",
    vendor="Dell",
    manufacturer="Dell Inc.",
    model="PowerEdge R660",
    bios_version="2.1.5",
    bmc_model="16G Monolithic",
    bmc_version="7.10.30.00",
    nic_version="22.31.6",
    manager="iDRAC.Embedded.1",
    chassis="System.Embedded.1",
    slots=(
        Slot(id="CD", drive="Cd", types=("CD", "DVD")),
        Slot(id="RemovableDisk", drive="Usb", types=("USBStick",)),
    ),
    insert_once=True,
    bios_by_task=True,
    volumes_by_task=True,
    dell=True,
    task_prefix="JID_",
)

HPE: Final = Profile(
    name="hpe",
    vendor="HPE",
    manufacturer="HPE",
    model="ProLiant DL360 Gen11",
    bios_version="U54 v2.12",
    bmc_model="iLO 6",
    bmc_version="iLO 6 v1.55",
    slots=(
        Slot(id="1", drive="Usb", types=("Floppy", "USBStick")),
        Slot(id="2", drive="Cd", types=("CD", "DVD")),
    ),
    eject_needs_body=True,
    busy_in_post=True,
    volumes_at_boot=True,
)

SUPERMICRO: Final = Profile(
    name="supermicro",
    vendor="Supermicro",
    manufacturer="Supermicro",
    model="SYS-120U-TNR",
    bios_version="1.4b",
    bmc_model="ASPEED",
    bmc_version="01.02.03",
    slots=(
        Slot(id="VirtualMedia1", drive="Cd", types=("CD", "DVD")),
        Slot(id="VirtualMedia2", drive="Usb", types=("USBStick",)),
    ),
    insert_refuses=("Inserted", "WriteProtected"),
    usb_cd=True,
    enabled_with_target=True,
)

LENOVO: Final = Profile(
    name="lenovo",
    vendor="Lenovo",
    manufacturer="Lenovo",
    model="ThinkSystem SR630 V3",
    bios_version="3.20",
    bmc_model="Lenovo XClarity Controller",
    bmc_version="4.71",
    slots=(
        Slot(id="EXT1", drive="Cd", types=("CD", "DVD")),
        Slot(id="EXT2", drive="Usb", types=("USBStick",)),
    ),
    media_by_patch=True,
    volumes_by_task=True,
)

AMI: Final = Profile(
    name="ami",
    vendor="AMI",
    manufacturer="ASRockRack",
    model="1U12LW-C242",
    bios_version="P3.10",
    bmc_model="MegaRAC SP-X",
    bmc_version="13.1.0",
    media_of_system=True,
    insert_needs=("TransferProtocolType", "TransferMethod"),
    whole_override=True,
)

PROFILES: Final = {profile.name: profile for profile in (GENERIC, DELL, HPE, SUPERMICRO, LENOVO, AMI)}


def profile(name: str) -> Profile:
    try:
        return PROFILES[name]
    except KeyError:
        raise LabError(f"the lab knows no vendor profile {name!r}; it has {', '.join(PROFILES)}") from None
