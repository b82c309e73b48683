"""How the control face shows servers, and what it takes: the structs that client and server share."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from ingot.lab.chassis import Chassis
from ingot.lab.components import Components
from ingot.lab.faults import Faults, Planned
from ingot.lab.record import Array, Booted, Instance, LogLine, PowerAction, Written
from ingot.trust import HIDDEN

Runs = Literal["ramdisk", "instance", "nothing"]


class ServerView(msgspec.Struct, kw_only=True):
    """A server as a person standing in front of it would see it. The BMC's password is not shown, nor what its events carry."""

    name: str
    bmc_address: str
    username: str
    mac: str
    macs: list[str]
    profile: str
    power: Literal["On", "Off"]
    booted_into: Runs
    booted: Booted | None
    """What the last boot came from."""
    boot_mode: Literal["UEFI", "Legacy"]
    secure_boot: bool
    """Whether the next boot is a secure one."""
    running: Instance | None
    written: dict[str, Written]
    """The image on each device that has one."""
    arrays: list[Array]
    components: Components
    """What the BMC has configured: BIOS, volumes, firmware, tasks, subscriptions."""
    media: dict[str, str]
    deployments: int
    cleanings: int
    boots: int
    faults: Faults
    """The steady ones."""
    faults_now: Faults
    """What holds at this moment: the steady ones and the plan's."""
    acted_out: dict[str, int]
    """How often each fault was acted out, by name. One that only holds, and that nobody came across, is not there."""
    plan: list[Planned]
    hold: str
    held_at: str
    """Where the server waits now, because it is held there."""
    power_actions: list[PowerAction]
    log: list[LogLine]


class Change(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What servers are to be like from now on; what is not given stays."""

    faults: Faults | None = None
    plan: list[Planned] | None = None
    hold: str | None = None


class Changed(msgspec.Struct, kw_only=True):
    names: list[str]


class Hold(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    place: str = ""


class BmcReset(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    seconds: float = 5.0
    """How long the BMC is away."""


class AddedImage(msgspec.Struct, kw_only=True):
    url: str
    sha256: str
    size: int


class NewPassword(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    password: str


def view(chassis: Chassis, *, history: bool = True) -> ServerView:
    """Without its history the view of a server is small, also late in its life."""
    plate, record = chassis.plate, chassis.record
    return ServerView(
        name=plate.name,
        bmc_address=plate.bmc_address,
        username=plate.username,
        mac=plate.macs[0],
        macs=plate.macs,
        profile=plate.profile,
        power=record.power,
        booted_into=record.booted_into,
        booted=_with_config(chassis) if history else record.booted,
        boot_mode=record.override.mode,
        secure_boot=record.secure_boot,
        running=record.instance,
        written=record.written,
        arrays=record.arrays,
        components=_without_headers(record.components),
        media=record.media,
        deployments=record.deployments,
        cleanings=record.cleanings,
        boots=record.boots,
        faults=record.faults,
        faults_now=chassis.faults,
        acted_out=record.acted_out,
        plan=record.plan.steps if record.plan is not None else [],
        hold=record.hold,
        held_at=chassis.held_at,
        power_actions=record.power_actions if history else [],
        log=record.log[-50:] if history else [],
    )


def _with_config(chassis: Chassis) -> Booted | None:
    booted = chassis.record.booted
    if booted is None or booted.coreos is None or not booted.coreos.ignition_sha256:
        return booted
    try:
        config = chassis.booted_ignition.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:  # the farm was killed while the next boot began
        return booted
    return replace(booted, coreos=replace(booted.coreos, ignition=config))


def _without_headers(parts: Components) -> Components:
    """The headers of a subscription are how its receiver knows that an event is meant for it."""
    shown = [replace(one, headers=dict.fromkeys(one.headers, HIDDEN)) for one in parts.subscriptions]
    return replace(parts, subscriptions=shown)
