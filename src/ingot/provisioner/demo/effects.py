"""What an order does to the machine, when it begins and when it ends well. Pure changes of a machine and its record."""

from __future__ import annotations

from msgspec.structs import replace

from ingot.api.baremetalhost import RAID
from ingot.provisioner.demo.machine import (
    Adopts,
    AnyEffect,
    Attaches,
    Configures,
    Deploys,
    Inspects,
    Leaves,
    Machine,
    ReadsFirmware,
    Reboots,
    Record,
    Registers,
    Subscribed,
    Subscribes,
    Switches,
    Undeploys,
    Unsubscribes,
)


def begin(machine: Machine, record: Record, effect: AnyEffect) -> None:
    """The machine as it is from the first moment on, however it ends."""
    match effect:
        case Inspects():
            # Its ramdisk runs.
            machine.powered_on = True
        case Deploys():
            machine.disk = None
            machine.powered_on = True
            record.emptied = False
        case Adopts():
            record.emptied = False
        case _:
            pass


def end(machine: Machine, record: Record, effect: AnyEffect, *, at: float) -> None:
    """The machine as it is when all went well."""
    match effect:
        case Registers(proof):
            record.proof = proof
        case Adopts(provisioning):
            record.instance = True
            record.deployed_for = provisioning
            _count(machine, "adopt")
        case Inspects():
            record.inspected = True
            _count(machine, "inspect")
        case ReadsFirmware():
            record.firmware_read = True
        case Configures():
            _configure(machine, effect)
        case Deploys(system, provisioning):
            machine.disk = system
            record.deployed_for = provisioning
            record.instance = True
            _count(machine, "deploy")
        case Undeploys(cleans):
            if cleans:
                machine.disk = None
            record.instance = False
            record.emptied = True
            machine.powered_on = False
            _count(machine, "undeploy")
        case Switches(on, deed):
            machine.powered_on = on
            _count(machine, deed)
        case Reboots():
            machine.powered_on = True
            record.rebooted = at
            _count(machine, "reboot")
        case Attaches(url):
            machine.drive = url
            _count(machine, "attach" if url else "eject")
        case Subscribes(destination, context):
            _count(machine, "subscribe")
            machine.subscriptions[str(machine.done["subscribe"])] = Subscribed(destination, context)
        case Unsubscribes(subscription):
            machine.subscriptions.pop(subscription, None)
        case Leaves():
            machine.record = None


def _configure(machine: Machine, effect: Configures) -> None:
    if effect.raid is not None:
        machine.raid = _with_volumes(machine.raid or RAID(), effect.raid)
        _count(machine, "make volumes")
    machine.settings.update(effect.settings)
    for name, value in effect.settings.items():
        _count(machine, f"set {name} to {value}")
    for update in effect.updates:
        version = machine.versions[update.component] = version_in(update.url)
        _count(machine, f"flash {update.component} {version}")
    if effect.in_use:
        machine.powered_on = True
    _count(machine, "service" if effect.in_use else "prepare")


def _with_volumes(there: RAID, wanted: RAID) -> RAID:
    """A sort of volume of which nothing is said is left alone."""
    if wanted.hardware_raid_volumes is not None:
        there = replace(there, hardware_raid_volumes=wanted.hardware_raid_volumes)
    if wanted.software_raid_volumes is not None:
        there = replace(there, software_raid_volumes=wanted.software_raid_volumes)
    return there


def version_in(url: str) -> str:
    """What a demo machine takes for the version of the firmware at a URL: the file's name."""
    return url.partition("?")[0].rstrip("/").rpartition("/")[2]


def _count(machine: Machine, deed: str) -> None:
    machine.done[deed] = machine.done.get(deed, 0) + 1
