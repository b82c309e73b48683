"""Preparing and servicing: change RAID volumes and firmware, of an idle machine or of one in use; and telling how it is."""

from __future__ import annotations

from ingot.provisioner import (
    Act,
    Busy,
    Component,
    Failed,
    FirmwareReport,
    HostRef,
    NotRegistered,
    Permit,
    Preparation,
    Ready,
    Service,
)
from ingot.provisioner.demo.carrying_out import Done, Order, carry_out, sight
from ingot.provisioner.demo.firmware import MODEL, NOTHING, SCHEMA, SETTINGS, VENDOR
from ingot.provisioner.demo.hall import Hall, Known
from ingot.provisioner.demo.machine import Configures, ReadsFirmware
from ingot.provisioner.demo.script import Verb


async def prepare(
    hall: Hall, host: HostRef, wanted: Preparation, *, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    record = known.record
    acted_out = wanted or hall.plan.of(host.key).course(Verb.PREPARE).also_without_a_change
    if Verb.PREPARE not in record.works and (
        not acted_out or record.begun.get(Verb.PREPARE) == _name(wanted.name)
    ):
        occupied = record.busy_with()
        return Ready(None) if occupied is None else Busy(occupied.doing)
    if not acted_out and record.works[Verb.PREPARE].hopeless:
        return await _give_up(hall, known, Verb.PREPARE)
    order = Order(
        verb=Verb.PREPARE,
        effect=Configures(
            raid=wanted.raid,
            settings=dict(wanted.firmware.settings),
            updates=list(wanted.firmware.updates),
        ),
        doing="changing RAID volumes and firmware",
        name=_name(wanted.name),
        once=True,
        act=Act.CLEAN if wanted else None,
    )
    answer = await carry_out(hall, known, order, permit=permit, again=again)
    return Ready(None) if isinstance(answer, Done) else answer


async def service(
    hall: Hall, host: HostRef, wanted: Service, *, permit: Permit, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    record = known.record
    work = record.works.get(Verb.SERVICE)
    if work is None and (not wanted or record.begun.get(Verb.SERVICE) == wanted.name):
        return Ready(None)
    if not wanted and work is not None and work.hopeless:
        # The machine is started again for it, whatever runs there.
        refusal = await permit(Act.SERVICE, sight(known.machine, record))
        if refusal is not None:
            return Busy(refusal.why)
        known.machine.powered_on = True
        return await _give_up(hall, known, Verb.SERVICE)
    order = Order(
        verb=Verb.SERVICE,
        effect=Configures(
            settings=dict(wanted.firmware.settings), updates=list(wanted.firmware.updates), in_use=True
        ),
        doing="changing the firmware of the machine in use",
        name=wanted.name,
        once=True,
        act=Act.SERVICE,
    )
    answer = await carry_out(hall, known, order, permit=permit, again=again)
    return Ready(None) if isinstance(answer, Done) else answer


async def _give_up(hall: Hall, known: Known, verb: Verb) -> Ready[None]:
    """What was begun is not wanted any more. It was not done, so the same order can be begun another time."""
    known.record.works.pop(verb, None)
    known.record.begun.pop(verb, None)
    hall.note(known.key)
    await hall.written()
    return Ready(None)


def _name(name: str) -> str:
    """An order has to have a name to be begun once; one that has none is as good as any other without."""
    return name or "unnamed"


async def firmware_settings(hall: Hall, host: HostRef) -> Ready[FirmwareReport] | Busy | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    if not known.record.firmware_read and (not_yet := await _read_firmware(hall, known)) is not None:
        return not_yet
    if not hall.plan.of(host.key).tells_settings:
        return Ready(NOTHING)
    settings = {**SETTINGS, **known.machine.settings}
    return Ready(FirmwareReport(settings=settings, schema=SCHEMA, vendor=VENDOR, model=MODEL))


async def _read_firmware(hall: Hall, known: Known) -> Busy | NotRegistered | None:
    """The settings of most machines are known at once; of others only a while after it was told what their ramdisk found."""
    if not hall.plan.of(known.key).reads_late:
        return None
    if known.record.inspects and not known.record.reported:
        return Busy("the firmware settings are read when the machine was inspected")
    order = Order(
        verb=Verb.READ_FIRMWARE, effect=ReadsFirmware(), doing="reading the firmware settings", beside=True
    )
    answer = await carry_out(hall, known, order, again=True)
    match answer:
        case Failed(message):
            return Busy(message)
        case Done():
            return None
        case _:
            return answer


def firmware_components(hall: Hall, host: HostRef) -> Ready[tuple[Component, ...]] | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    flashed = known.machine.versions
    return Ready(
        tuple(
            Component(
                name=name,
                initial_version=version,
                current_version=flashed.get(name, version),
                last_version_flashed=flashed.get(name, ""),
            )
            for name, version in hall.plan.of(host.key).components.items()
        )
    )
