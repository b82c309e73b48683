"""Adopting: take a running machine as it is. Nothing is done to it.

What was begun with the machine and not brought to its end (an inspection, a deployment that failed) does not fit a machine that
runs: that record is dropped and made anew.
"""

from __future__ import annotations

from typing import Final

from ingot.provisioner import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready
from ingot.provisioner.demo.carrying_out import Done, Order, carry_out, sight
from ingot.provisioner.demo.hall import Hall
from ingot.provisioner.demo.machine import Adopts
from ingot.provisioner.demo.script import Verb

IN_THE_WAY: Final = (Verb.INSPECT, Verb.PREPARE, Verb.PROVISION, Verb.DEPROVISION)


async def adopt(
    hall: Hall, host: HostRef, *, permit: Permit, again: bool, provisioning: str = ""
) -> Ready[None] | Busy | Failed | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    if any(slot in known.record.works for slot in IN_THE_WAY):
        refusal = await permit(Act.FORGET, sight(known.machine, known.record))
        if refusal is not None:
            return Busy(refusal.why)
        known.machine.record = None
        hall.note(host.key)
        await hall.written()
        hall.changes.announce(host.key)
        return NotRegistered("something was left unfinished at the running machine; it is registered anew")
    if known.record.instance:
        return Ready(None)
    order = Order(verb=Verb.ADOPT, effect=Adopts(provisioning), doing="taking over the running machine")
    answer = await carry_out(hall, known, order, again=again)
    return Ready(None) if isinstance(answer, Done) else answer
