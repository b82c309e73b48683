"""What a server must still know after the farm was killed: its record. The `ledger` keeps it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from ingot.lab.components import Components
from ingot.lab.faults import Faults, Plan

LOG_LINES = 200
POWER_ACTIONS = 500

PowerState = Literal["On", "Off"]
BootTarget = Literal["None", "Pxe", "Cd", "UsbCd", "Usb", "Hdd", "UefiHttp", "BiosSetup"]


class Override(msgspec.Struct, kw_only=True):
    """The boot source override, as Redfish has it."""

    target: BootTarget = "None"
    enabled: Literal["Disabled", "Once", "Continuous"] = "Disabled"
    mode: Literal["UEFI", "Legacy"] = "UEFI"
    http_boot_uri: str = ""
    """What UefiHttp boots."""


class Command(msgspec.Struct, kw_only=True):
    """A command that Ironic gave the agent, with its outcome."""

    id: str
    name: str
    params: dict[str, Any]
    status: Literal["RUNNING", "SUCCEEDED", "FAILED", "CLEAN_VERSION_MISMATCH"] = "RUNNING"
    error: dict[str, Any] | None = None
    result: Any = None


class CoreOs(msgspec.Struct, kw_only=True):
    """A CoreOS live system that was booted, and what Ignition made of it."""

    build: str
    """The volume id of an ISO image; of an initial RAM disk, what that says it is of."""
    how: Literal["iso", "pxe"]
    arguments: str
    """The kernel's."""
    root: str = ""
    """Where the root file system came from."""
    ignition_sha256: str = ""
    """Of the config that Ignition ran with; empty when it did not run."""
    ignition: str = ""
    """The config itself. Only views have it: it is kept in a file beside the record."""
    hostname: str = ""
    keyfiles: dict[str, str] = {}
    """NetworkManager's connections, by file name."""
    container_image: str = ""
    """What the agent runs in."""
    without_agent: str = ""
    """Why there is no agent."""


class Booted(msgspec.Struct, kw_only=True):
    """What was booted: where it came from, and the bytes as they arrived. A device of the server has no bytes here."""

    source: str
    """The boot target, or the device of a boot from a disk."""
    url: str = ""
    """Where the medium was fetched; over the network, the kernel."""
    sha256: str = ""
    """Empty for a medium of which only parts were read."""
    size: int = 0
    coreos: CoreOs | None = None
    network_data: dict[str, Any] | None = None
    """What the medium of a ramdisk says of the network, when it says something."""
    parameters: dict[str, str] = {}
    """What a ramdisk was told by its boot loader. An agent's token is there, and not shown."""
    ca_sha256: str = ""
    """Of the certificate that came with a ramdisk, whom its agent trusts; empty where none did."""


class Ramdisk(msgspec.Struct, kw_only=True):
    """A ramdisk that was booted: what its medium told it, and what its agent has agreed with Ironic since."""

    parameters: dict[str, str]
    ca: str
    insecure: bool = False
    """Its agent does not ask who vouches for whom it calls."""
    build: str = ""
    """Of the CoreOS that it is."""
    hostname: str = ""
    environment: dict[str, str] = {}
    """Of the agent's container."""
    keyfiles: dict[str, str] = {}
    """The network connections of the live system, by file name."""
    boot_mac: str = ""
    """The network card it was booted through; a medium has none."""
    gone: str = ""
    """Why there is no agent any more, though the ramdisk runs on."""
    port: int = 0
    token: str = ""
    node_uuid: str = ""
    inspected: bool = False
    heartbeat_timeout: float = 300.0
    md5_allowed: bool = False
    commands: list[Command] = []


class Instance(msgspec.Struct, kw_only=True):
    """An operating system that was booted from a disk or a live medium: what it found there and in its config drive.

    For a live medium the image is the medium itself.
    """

    image_sha256: str
    image_size: int
    hostname: str = ""
    user_data: str = ""
    meta_data: dict[str, Any] = {}
    network_data: dict[str, Any] | None = None
    coreos: str = ""
    """The build, of a CoreOS."""
    ignition: str = ""
    """The config that Ignition ran with."""
    arguments: list[str] = []
    """Kernel arguments that an installer added."""
    keyfiles: dict[str, str] = {}
    """Network connections that an installer put there, by file name."""
    ssh_keys: list[str] = []
    """Of the user core."""


class Written(msgspec.Struct, kw_only=True):
    """An image that was written to a device whole."""

    image: str
    """What Ironic calls it."""
    size: int
    """Of the disk that it describes."""
    sha256: str = ""
    """Of the image's file as it arrived."""
    files: dict[str, str] = {}
    """The sha256 of each file that was put into it afterwards, by path."""
    coreos: str = ""
    """The build, where an installer of CoreOS wrote it."""


class Array(msgspec.Struct, kw_only=True):
    """A software RAID array."""

    device: str
    level: str
    size: int
    members: list[str]
    volume_name: str | None = None


class PowerAction(msgspec.Struct, kw_only=True):
    at: datetime
    what: str


class LogLine(msgspec.Struct, kw_only=True):
    at: datetime
    text: str


class Record(msgspec.Struct, kw_only=True):
    power: PowerState = "Off"
    override: Override = msgspec.field(default_factory=Override)
    media: dict[str, str] = {}
    """URL of the medium in each virtual drive that has one."""
    booting: BootTarget = "None"
    """What a boot that has not come to its end yet boots from."""
    ramdisk: Ramdisk | None = None
    instance: Instance | None = None
    booted: Booted | None = None
    """What the last boot that came to its end booted."""
    written: dict[str, Written] = {}
    """The image on each device that has one, by the device's key; the one that was written last is at the end."""
    arrays: list[Array] = []
    secure_boot: bool = False
    components: Components = msgspec.field(default_factory=Components)
    """What the BMC keeps of the server's parts."""
    deployments: int = 0
    cleanings: int = 0
    boots: int = 0
    power_actions: list[PowerAction] = []
    log: list[LogLine] = []
    faults: Faults = msgspec.field(default_factory=Faults)
    """The steady ones; what holds now is `Chassis.faults`."""
    acted_out: dict[str, int] = {}
    """How often each fault was acted out, by name, in all the life of the server."""
    plan: Plan | None = None
    hold: str = ""
    """Where the server is to wait until it is released: "boot", "inspection", or the name of an agent's step."""

    @property
    def booted_into(self) -> Literal["ramdisk", "instance", "nothing"]:
        if self.ramdisk is not None:
            return "ramdisk"
        return "instance" if self.instance is not None else "nothing"

    def note(self, text: str) -> None:
        self.log.append(LogLine(at=datetime.now(UTC), text=text))
        del self.log[:-LOG_LINES]

    def note_fault(self, name: str) -> None:
        self.acted_out[name] = self.acted_out.get(name, 0) + 1

    def note_power(self, what: str) -> None:
        self.power_actions.append(PowerAction(at=datetime.now(UTC), what=what))
        del self.power_actions[:-POWER_ACTIONS]
