"""What the handlers of one BMC work on: the server, its profile, its log-ins and its tasks.

Cheap to make and with no task of its own: a farm has a thousand of them, and most are idle.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from ingot.lab.chassis import Chassis
from ingot.lab.components import Components
from ingot.lab.faults import Faults
from ingot.lab.labfile import Plate
from ingot.lab.machine import Machine, ResetType
from ingot.lab.profiles import Profile, profile
from ingot.lab.record import Record
from ingot.lab.redfish.login import Logins
from ingot.lab.redfish.workshop import Restart, Workshop

BASE: Final = "/redfish/v1"

Shown = Literal["On", "Off", "PoweringOn", "PoweringOff"]


class Server:
    __slots__ = ("_moving", "_moving_until", "chassis", "logins", "machine", "profile", "workshop")

    def __init__(self, machine: Machine, restart: Restart) -> None:
        self.machine: Final = machine
        self.chassis: Final[Chassis] = machine.chassis
        self.profile: Final[Profile] = profile(machine.chassis.plate.profile)
        self.logins: Final = Logins(machine.chassis)
        self.workshop: Final = Workshop(machine, restart)
        self._moving: Literal["PoweringOn", "PoweringOff"] = "PoweringOn"
        self._moving_until = 0.0

    @property
    def plate(self) -> Plate:
        return self.chassis.plate

    @property
    def record(self) -> Record:
        return self.chassis.record

    @property
    def parts(self) -> Components:
        return self.chassis.record.components

    @property
    def faults(self) -> Faults:
        return self.chassis.faults

    @property
    def system(self) -> str:
        return f"{BASE}/Systems/{self.plate.system_id}"

    @property
    def manager(self) -> str:
        return f"{BASE}/Managers/{self.profile.manager}"

    @property
    def enclosure(self) -> str:
        return f"{BASE}/Chassis/{self.profile.chassis}"

    def owns(self, kind: str, identity: str) -> bool:
        """Whether a part of a path names this server's system, manager or chassis; other parts are for the handlers."""
        match kind:
            case "system":
                return identity == self.plate.system_id
            case "manager":
                return identity == self.profile.manager
            case "chassis":
                return identity == self.profile.chassis
        return True

    async def save(self) -> None:
        await self.chassis.save()

    def power(self) -> Shown:
        """The power as the BMC shows it."""
        if lie := self.faults.power_lie:
            if lie != self.record.power:
                self.chassis.acts("power_lie")
            return lie
        if asyncio.get_running_loop().time() < self._moving_until:
            return self._moving
        return self.record.power

    def health(self) -> str:
        """The server's health as the BMC tells it."""
        return self.faults.health if self.chassis.acts("health") else "OK"

    async def reset(self, kind: ResetType) -> None:
        """Do what the power control was told. The power changes at once; for a while it is shown as changing."""
        before = self.record.power
        await self.machine.reset(kind)
        if self.record.power != before or kind in ("ForceRestart", "PowerCycle"):
            self._moving = "PoweringOn" if self.record.power == "On" else "PoweringOff"
            self._moving_until = asyncio.get_running_loop().time() + self.machine.timings.power
