"""Carrying out an order: begun once, waited for, its failure told once, and asked about before it destroys.

Every verb that takes time goes this way. How long it takes and how it ends is decided when it begins, from the script, and
kept with it: so a back end that is killed in the middle goes on with it, and comes to the same end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ingot.provisioner import Act, Busy, Failed, NotRegistered, Permit, Sight, answer_to
from ingot.provisioner.demo import effects
from ingot.provisioner.demo.hall import Hall, Known
from ingot.provisioner.demo.machine import AnyEffect, Machine, Record, Work
from ingot.provisioner.demo.script import FOREVER, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    verb: Verb
    effect: AnyEffect
    doing: str
    """The sentence while it is under way."""
    slot: str = ""
    """Orders of one slot replace each other; by default those of one verb."""
    name: str = ""
    """An order of another name is another order."""
    once: bool = False
    """The name stays on record when the order is fulfilled: it is never begun again."""
    act: Act | None = None
    """What has to be permitted before it begins."""
    beside: bool = False
    """It goes on beside whatever else is done to the machine."""
    interrupts: Iterable[str] = ()
    """Slots whose work is given up for it; by default others are waited for."""

    @property
    def kept_as(self) -> str:
        return self.slot or self.verb.value


class Done:
    """The order is fulfilled, as of now."""


DONE = Done()


async def carry_out(
    hall: Hall,
    known: Known,
    order: Order,
    *,
    permit: Permit | None = None,
    again: bool,
    restart: bool = False,
) -> Done | Busy | Failed | NotRegistered:
    """Bring the order one step on. Whether it is fulfilled already is for the verb to see before."""
    answer = _standing(hall, known, order, again=again, restart=restart)
    if isinstance(answer, Failed):
        # That it was told must not be forgotten: it would be told for ever, and never tried anew.
        await hall.written()
    if answer is not None:
        return answer
    if order.act is not None and permit is not None:
        refusal = await permit(order.act, sight(known.machine, known.record))
        if refusal is not None:
            return answer_to(refusal)
        if known.machine.record is not known.record:
            return NotRegistered("the demo back end has lost its record of the host meanwhile")
    return await _begin(hall, known, order)


def _standing(hall: Hall, known: Known, order: Order, *, again: bool, restart: bool) -> Busy | Failed | None:
    """How it stands with the order; None when it has to be begun."""
    work = known.record.works.get(order.kept_as)
    if work is not None and work.under_way:
        replaced = work.stuck and (restart or work.name != order.name)
        return None if replaced else Busy(work.doing, begun=work.name == order.name)
    # An order that must not be repeated may have been noted as begun: that it failed is told whoever asks, and for whatever.
    overdue = work is not None and order.once and work.untold
    if (
        work is not None
        and work.failure
        and (overdue or (work.name == order.name and not (work.told and again)))
    ):
        work.told = True
        hall.note(known.key)
        return Failed(work.failure, refused_credentials=work.refused_credentials)
    occupied = None if order.beside else known.record.busy_with()
    if occupied is not None and not any(
        known.record.works.get(slot) is occupied for slot in order.interrupts
    ):
        return Busy(occupied.doing)
    return None


async def _begin(hall: Hall, known: Known, order: Order) -> Done | Busy | Failed:
    key, machine, record = known
    course = hall.plan.of(key).course(order.verb)
    attempt = machine.attempts[order.verb] = machine.attempts.get(order.verb, 0) + 1
    lasts = course.lasts(attempt)
    failure = course.failure(attempt)
    for slot in order.interrupts:
        record.works.pop(slot, None)
    work = record.works[order.kept_as] = Work(
        doing=order.doing,
        effect=order.effect,
        until=None if lasts == FOREVER else hall.clock() + lasts,
        name=order.name,
        failure=failure,
        refused_credentials=bool(failure) and course.refuses_credentials,
        beside=order.beside,
    )
    if order.once:
        record.begun[order.verb] = order.name
    effects.begin(machine, record, order.effect)
    if lasts == 0:
        hall.settle(known, order.kept_as, work)
        work.told = True
    else:
        hall.schedule(key, order.kept_as, work)
    hall.note(key)
    await hall.written()
    if lasts != 0:
        return Busy(order.doing, begun=True)
    return Failed(failure, refused_credentials=work.refused_credentials) if failure else DONE


def sight(machine: Machine, record: Record) -> Sight:
    """What there is to lose at the machine, as far as the back end knows."""
    work = record.busy_with()
    return Sight(
        backend_id=record.id,
        state=work.doing if work is not None else ("in use" if record.instance else "idle"),
        holds_instance=record.instance,
        powered_on=machine.powered_on,
        deployed_for=record.deployed_for or None,
    )
