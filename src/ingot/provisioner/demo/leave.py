"""Deleting and detaching: the record goes, the machine stays as it is."""

from __future__ import annotations

from ingot.provisioner import Act, Busy, Failed, HostRef, Permit, Ready
from ingot.provisioner.demo.carrying_out import Order, carry_out
from ingot.provisioner.demo.hall import Hall, Known
from ingot.provisioner.demo.machine import Leaves
from ingot.provisioner.demo.script import Verb


async def delete(hall: Hall, host: HostRef, *, permit: Permit) -> Ready[None] | Busy | Failed:
    """Whatever is under way is given up: nobody will ask for its outcome."""
    return await _leave(hall, host, Verb.DELETE, "forgetting the machine", Act.DELETE, permit, gives_up=True)


async def detach(hall: Hall, host: HostRef, *, force: bool, permit: Permit) -> Ready[None] | Busy | Failed:
    return await _leave(
        hall, host, Verb.DETACH, "letting go of the machine", Act.DETACH, permit, gives_up=force
    )


async def _leave(
    hall: Hall, host: HostRef, verb: Verb, doing: str, act: Act, permit: Permit, *, gives_up: bool
) -> Ready[None] | Busy | Failed:
    machine = hall.machines.get(host.key)
    if machine is None or machine.record is None:
        return Ready(None)
    others = [slot for slot in machine.record.works if slot != verb]
    order = Order(verb=verb, effect=Leaves(), doing=doing, act=act, interrupts=others if gives_up else ())
    known = Known(host.key, machine, machine.record)
    answer = await carry_out(hall, known, order, permit=permit, again=True)
    return answer if isinstance(answer, Busy | Failed) else Ready(None)
