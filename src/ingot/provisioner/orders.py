"""What a back end is told: which host is meant, and what is wanted of it.

Orders are facts about what should be, never commands in disguise: told twice they mean the same. Where doing a thing twice would
do harm (firmware is flashed, a disk is inspected anew) the order has a name, and whoever has begun the order of that name does
not begin it a second time.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from ingot.api.baremetalhost import RAID, BootMode, CustomDeploy, HardwareDetails, Image, RootDeviceHints
from ingot.api.firmwareschema import SettingSchema
from ingot.api.hostfirmwarecomponents import FirmwareUpdate
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import ImageFormat
from ingot.trust import Secret


@dataclass(frozen=True, slots=True)
class HostRef:
    """Which host is meant."""

    key: Key
    uid: str
    backend_id: str = ""
    """What the back end called the host when it was registered; "" before."""


# Registering


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    username: str
    password: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRamdisk:
    """An image that was built for this host to be booted for inspection, cleaning and installation."""

    url: str
    format: ImageFormat
    kernel_url: str = ""
    """For an initrd: its kernel; the usual one when empty."""
    kernel_params: str = ""
    """For an initrd: kernel arguments beside the usual ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """All that a back end needs to take a host under management."""

    address: str
    credentials: Credentials | None
    """None: those that the back end was last given for this host still hold. One that cannot go on without them says so."""
    verify_certificate: bool = True
    boot_mac: str = ""
    boot_mode: BootMode = "UEFI"
    architecture: str = ""
    automated_cleaning: bool = True
    disable_power_off: bool = False
    inspection: str = "agent"
    """agent, fast, or disabled."""
    nic_macs: tuple[str, ...] = ()
    runs_a_system: bool = False
    """What runs on the machine belongs to this host and is to stay."""
    ramdisk: OwnRamdisk | None = None
    """The host's own; None: the one that the back end is configured with."""
    ramdisk_network: Secret = field(default_factory=lambda: Secret(""))
    """Network configuration of the ramdisk, JSON or YAML, where the ramdisk is not the host's own; empty: DHCP."""


@dataclass(frozen=True, slots=True)
class Registered:
    backend_id: str
    remark: str = ""
    """What was asked for and can have no effect on this host, and what to do about it, as sentences; "" where all has."""


# Inspecting


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    renewal: str = ""
    """The name of a request to look anew: what was found before it does not count. Begun once for each name. "": whatever
    was ever found will do."""
    restart: bool = False
    """The ramdisk does not come up: boot it once more. For a machine that is not waiting for its ramdisk it means nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What an inspection brought."""

    hardware: HardwareDetails
    ramdisk: str = ""
    """The build of the ramdisk that looked, as it says itself; "" where it says nothing."""


# Preparing and servicing


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareChange:
    """What is to be changed of the firmware; only what differs from how it is."""

    settings: Mapping[str, str] = field(default_factory=dict)
    updates: tuple[FirmwareUpdate, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.settings or self.updates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What a machine without a system is to be changed to."""

    name: str
    """Begun once for each name, unless it failed and is called with `again`; the order of another name is another order."""
    raid: RAID | None = None
    """Volumes to make, in place of those that are there. An empty list: remove all of that sort. None: leave them alone."""
    root_device: RootDeviceHints | None = None
    firmware: FirmwareChange = field(default_factory=FirmwareChange)

    def __bool__(self) -> bool:
        return self.raid is not None or bool(self.firmware)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What is to be changed of a machine in use. Without a change: what was begun and waits is ended, the machine goes on."""

    name: str
    """As in `Preparation`."""
    firmware: FirmwareChange = field(default_factory=FirmwareChange)

    def __bool__(self) -> bool:
        return bool(self.firmware)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareReport:
    """Firmware settings as the machine reports them."""

    settings: Mapping[str, str] = field(default_factory=dict)
    schema: Mapping[str, SettingSchema] = field(default_factory=dict)
    vendor: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A part that has firmware, and the version it reports."""

    name: str
    """bmc, bios, or nic: and the name of a network adapter."""
    initial_version: str
    current_version: str = ""
    last_version_flashed: str = ""


# Provisioning


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDrive:
    """What a new operating system is told at its first boot. All of it is secret."""

    user_data: Secret = field(default_factory=lambda: Secret(""))
    network_data: Secret = field(default_factory=lambda: Secret(""))
    """JSON or YAML text, as the user wrote it."""
    meta_data: Mapping[str, object] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What is to be on the host's disk. At least one of image and custom_deploy is set."""

    name: str = ""
    """Of the provisioning that it is for: whoever finds the system later can tell by it whose it is. "": nobody will ask."""
    image: Image | None = None
    custom_deploy: CustomDeploy | None = None
    config_drive: ConfigDrive
    root_device: RootDeviceHints | None = None
    boot_mode: BootMode = "UEFI"
    pull_secret: Secret = field(default_factory=lambda: Secret(""))
    """user:password for the registry of an oci:// image."""
    restart: bool = False
    """As in `Inspection`."""


# Power, virtual media, events


class Power(enum.Enum):
    ON = "on"
    OFF = "off"


class PowerOffMode(enum.Enum):
    SOFT = "soft"
    HARD = "hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What can be told of a host without asking it."""

    powered_on: bool | None
    """None: not known."""
    power_failure: bool = False
    """The back end cannot reach the power controls."""
    health: str = ""
    """OK, Warning, Critical, or "" where the back end does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Events of the management controller, posted to somebody's URL."""

    destination: str
    context: str = ""
    headers: Mapping[str, Secret] = field(default_factory=dict)
