"""Registering: make a record of the machine, and try the credentials.

Any credentials work, unless the script has it otherwise; those that were proven are told apart from others by their proof, so a
changed password is tried and an unchanged one costs nothing.
"""

from __future__ import annotations

import uuid

from ingot.provisioner import Access, Busy, Failed, HostRef, NotRegistered, Ready, Registered
from ingot.provisioner.demo.carrying_out import Order, carry_out
from ingot.provisioner.demo.hall import Hall, Known
from ingot.provisioner.demo.machine import Record, Registers
from ingot.provisioner.demo.script import Verb


async def register(
    hall: Hall, host: HostRef, access: Access, *, again: bool
) -> Ready[Registered] | Busy | Failed | NotRegistered:
    machine = hall.machine(host.key)
    proof = _proof(hall, access, machine.record)
    if not proof:
        return NotRegistered("the credentials have to be tried first")
    if machine.record is None:
        machine.record = Record(id=str(uuid.uuid4()), uid=host.uid)
    record = machine.record
    inspects = access.inspection != "disabled" and not access.runs_a_system
    told = (host.uid, access.boot_mac, access.disable_power_off, inspects)
    if told != (record.uid, record.boot_mac, record.disable_power_off, record.inspects):
        record.uid, record.boot_mac, record.disable_power_off, record.inspects = told
        hall.note(host.key)
        await hall.written()
    if record.proof == proof:
        if record.works.pop(Verb.REGISTER, None) is not None:
            hall.note(host.key)
        return Ready(Registered(record.id))
    order = Order(
        verb=Verb.REGISTER,
        effect=Registers(proof),
        doing="trying the credentials of the management controller",
        name=proof,
        beside=True,
    )
    answer = await carry_out(hall, Known(host.key, machine, record), order, again=again)
    match answer:
        case Busy() | Failed():
            return answer
        case NotRegistered(why):
            return Busy(why)
        case _:
            return Ready(Registered(record.id))


def _proof(hall: Hall, access: Access, record: Record | None) -> str:
    """Of the credentials that are to be tried, or were given before; "" where there are none."""
    if access.credentials is not None:
        return hall.proof(access.credentials.username, access.credentials.password.reveal())
    trying = record.works.get(Verb.REGISTER) if record is not None else None
    return trying.name if trying is not None else record.proof if record is not None else ""
