"""Inspecting: the ramdisk of the machine comes up, looks around and reports. The machine is on afterwards."""

from __future__ import annotations

from ingot.provisioner import Act, Busy, Failed, Findings, HostRef, Inspection, NotRegistered, Permit, Ready
from ingot.provisioner.demo.carrying_out import Done, Order, carry_out
from ingot.provisioner.demo.hall import Hall, Known
from ingot.provisioner.demo.hardware import hardware_of, scaled_down
from ingot.provisioner.demo.machine import Inspects
from ingot.provisioner.demo.script import Verb


async def inspect(
    hall: Hall, host: HostRef, wanted: Inspection, *, permit: Permit, again: bool
) -> Ready[Findings] | Busy | Failed | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    record = known.record
    found = record.inspected and wanted.renewal in ("", record.begun.get(Verb.INSPECT))
    if found and Verb.INSPECT not in record.works:
        return await _told(hall, host, known)
    if record.instance:
        return Failed("the machine runs an operating system: it is not inspected")
    work = record.works.get(Verb.INSPECT)
    order = Order(
        verb=Verb.INSPECT,
        effect=Inspects(),
        doing="the ramdisk is looking at the hardware",
        # Any look that is under way will do, where none is asked for by name.
        name=wanted.renewal or (work.name if work is not None else ""),
        once=True,
        act=Act.POWER_OFF,
    )
    answer = await carry_out(hall, known, order, permit=permit, again=again, restart=wanted.restart)
    return await _told(hall, host, known) if isinstance(answer, Done) else answer


async def _told(hall: Hall, host: HostRef, known: Known) -> Ready[Findings]:
    if hall.plan.of(host.key).reads_late and not known.record.reported:
        known.record.reported = True
        hall.note(host.key)
        await hall.written()
    whole = hardware_of(host.key, known.record.boot_mac)
    small = hall.plan.of(host.key).inventory != "server"
    return Ready(Findings(hardware=scaled_down(whole) if small else whole))
