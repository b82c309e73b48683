"""How the control face shows servers: the structs that client and server share."""

from __future__ import annotations

from typing import Literal

import msgspec

from ingot.lab.chassis import Chassis
from ingot.lab.faults import Faults
from ingot.lab.record import Instance, LogLine, PowerAction


class ServerView(msgspec.Struct, kw_only=True):
    """A server as a person standing in front of it would see it. The BMC's password is not shown."""

    name: str
    bmc_address: str
    username: str
    mac: str
    macs: list[str]
    power: Literal["On", "Off"]
    booted_into: Literal["ramdisk", "instance", "nothing"]
    running: Instance | None
    media: dict[str, str]
    deployments: int
    cleanings: int
    boots: int
    power_actions: list[PowerAction]
    faults: Faults
    log: list[LogLine]


class AddedImage(msgspec.Struct, kw_only=True):
    url: str
    sha256: str
    size: int


class NewPassword(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    password: str


def view(chassis: Chassis) -> ServerView:
    plate, record = chassis.plate, chassis.record
    return ServerView(
        name=plate.name,
        bmc_address=plate.bmc_address,
        username=plate.username,
        mac=plate.macs[0],
        macs=plate.macs,
        power=record.power,
        booted_into=record.booted_into,
        running=record.instance,
        media=record.media,
        deployments=record.deployments,
        cleanings=record.cleanings,
        boots=record.boots,
        power_actions=record.power_actions,
        faults=record.faults,
        log=record.log[-50:],
    )
