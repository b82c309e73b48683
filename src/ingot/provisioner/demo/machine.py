"""A machine, and the back end's record of it, as they are kept in the file.

The two are apart: a record is what the back end knows and can lose; the machine stands in its rack, with its disk, its power,
its firmware and what its management controller remembers, whether anybody knows of it or not.
"""

from __future__ import annotations

from typing import dataclass_transform

import msgspec
from msgspec import Struct

from ingot.api.baremetalhost import RAID
from ingot.api.hostfirmwarecomponents import FirmwareUpdate


class System(Struct, frozen=True, omit_defaults=True):
    """What is on a disk."""

    image: str = ""
    method: str = ""


# What comes of an order once its time is over. Kept with it: after a restart it is still known what was under way.


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Effect(Struct, frozen=True, omit_defaults=True, tag=True):
    """Base of the effects below."""


class Registers(Effect):
    proof: str


class Adopts(Effect):
    provisioning: str = ""


class Inspects(Effect):
    pass


class ReadsFirmware(Effect):
    pass


class Configures(Effect):
    raid: RAID | None = None
    settings: dict[str, str] = {}
    updates: list[FirmwareUpdate] = []
    in_use: bool = False
    """The system of the machine is stopped for it, and started again."""


class Deploys(Effect):
    system: System
    provisioning: str = ""


class Undeploys(Effect):
    cleans: bool = True


class Switches(Effect):
    on: bool
    deed: str


class Reboots(Effect):
    """In place of a power off."""


class Attaches(Effect):
    url: str


class Subscribes(Effect):
    destination: str
    context: str = ""


class Unsubscribes(Effect):
    subscription: str


class Leaves(Effect):
    """The record is dropped."""


AnyEffect = (
    Registers
    | Adopts
    | Inspects
    | ReadsFirmware
    | Configures
    | Deploys
    | Undeploys
    | Switches
    | Reboots
    | Attaches
    | Subscribes
    | Unsubscribes
    | Leaves
)


class Work(Struct, omit_defaults=True):
    """One attempt at an order: under way, or ended and not done with."""

    doing: str
    """The sentence while it is under way."""
    effect: AnyEffect
    until: float | None
    """When it ends; None: never, by itself."""
    name: str = ""
    failure: str = ""
    """How it fails; decided when it begins, so that a restart changes nothing."""
    refused_credentials: bool = False
    beside: bool = False
    """It goes on beside whatever else is done to the machine."""
    ended: bool = False
    told: bool = False
    """Its failure was told."""

    @property
    def under_way(self) -> bool:
        return not self.ended

    @property
    def stuck(self) -> bool:
        return not self.ended and self.until is None

    @property
    def untold(self) -> bool:
        """It failed, and nobody has heard of that."""
        return self.ended and bool(self.failure) and not self.told

    @property
    def hopeless(self) -> bool:
        """Nothing will come of it any more: it failed, as was told, or waits for something that does not come."""
        return (self.ended and not self.untold) or self.stuck


class Record(Struct, omit_defaults=True):
    """What the back end knows of a machine."""

    id: str
    uid: str
    boot_mac: str = ""
    disable_power_off: bool = False
    proof: str = ""
    """Of the credentials that worked; "" before any did."""
    inspects: bool = True
    """The machine is to be inspected: its ramdisk runs before anything else does."""
    inspected: bool = False
    reported: bool = False
    """What the inspection found was told, where somebody has to wait for the firmware after that."""
    firmware_read: bool = False
    instance: bool = False
    """A system was deployed or adopted here and has not been removed."""
    deployed_for: str = ""
    """The name of the provisioning that put it there; "" where it is not known."""
    emptied: bool = False
    """Nothing was put on the disk since it was last emptied; a record that is new cannot know."""
    rebooted: float | None = None
    """When it was rebooted in place of a power off, until that was told."""
    works: dict[str, Work] = msgspec.field(default_factory=dict)
    begun: dict[str, str] = msgspec.field(default_factory=dict)
    """The name of the order that was last begun, by verb."""

    def busy_with(self) -> Work | None:
        """What keeps the machine occupied right now."""
        for work in self.works.values():
            if work.under_way and not work.beside:
                return work
        return None


class Subscribed(Struct, frozen=True, omit_defaults=True):
    destination: str
    context: str = ""


class Machine(Struct, omit_defaults=True):
    """What stands in the rack."""

    powered_on: bool = False
    disk: System | None = None
    raid: RAID | None = None
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    """Firmware settings that are not as the machine came with."""
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    """Firmware that was flashed, by component."""
    drive: str = ""
    """The image in the virtual CD drive."""
    subscriptions: dict[str, Subscribed] = msgspec.field(default_factory=dict)
    attempts: dict[str, int] = msgspec.field(default_factory=dict)
    """How often each verb was tried here, ever."""
    done: dict[str, int] = msgspec.field(default_factory=dict)
    """What really happened to the machine, and how often."""
    record: Record | None = None
