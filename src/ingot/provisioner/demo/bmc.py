"""What the management controller does by itself, whatever the machine is at: virtual media and subscriptions to its events."""

from __future__ import annotations

from ingot.provisioner import Busy, Failed, HostRef, NotRegistered, Ready, Subscription
from ingot.provisioner.demo.carrying_out import Done, Order, carry_out
from ingot.provisioner.demo.hall import Hall
from ingot.provisioner.demo.machine import Attaches, Machine, Subscribed, Subscribes, Unsubscribes
from ingot.provisioner.demo.script import Verb
from ingot.trust import redact


async def set_data_image(
    hall: Hall, host: HostRef, url: str, *, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    work = known.record.works.get(Verb.DATA_IMAGE)
    if known.machine.drive == url and (work is None or not work.under_way):
        if known.record.works.pop(Verb.DATA_IMAGE, None) is not None:
            hall.note(host.key)
        return Ready(None)
    order = Order(
        verb=Verb.DATA_IMAGE,
        effect=Attaches(url),
        doing=f"attaching {redact(url)}" if url else "emptying the virtual drive",
        name=url,
        beside=True,
    )
    answer = await carry_out(hall, known, order, again=again)
    return Ready(None) if isinstance(answer, Done) else answer


async def subscribe(
    hall: Hall, host: HostRef, wanted: Subscription, *, again: bool
) -> Ready[str] | Busy | Failed | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    if (there := _found(known.machine, wanted)) is not None:
        return Ready(there)
    order = Order(
        verb=Verb.SUBSCRIBE,
        effect=Subscribes(wanted.destination, wanted.context),
        doing="subscribing to events",
        slot=f"{Verb.SUBSCRIBE} {wanted.destination} {wanted.context}",
        beside=True,
    )
    answer = await carry_out(hall, known, order, again=again)
    if isinstance(answer, Done):
        there = _found(known.machine, wanted)
        assert there is not None
        return Ready(there)
    return answer


async def unsubscribe(
    hall: Hall, host: HostRef, subscription_id: str, *, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    known = hall.known(host)
    if known is None:
        return hall.not_registered(host)
    if subscription_id not in known.machine.subscriptions:
        return Ready(None)
    order = Order(
        verb=Verb.UNSUBSCRIBE,
        effect=Unsubscribes(subscription_id),
        doing="ending the subscription",
        slot=f"{Verb.UNSUBSCRIBE} {subscription_id}",
        beside=True,
    )
    answer = await carry_out(hall, known, order, again=again)
    return Ready(None) if isinstance(answer, Done) else answer


def _found(machine: Machine, wanted: Subscription) -> str | None:
    """As a management controller tells them: it never tells the headers."""
    looked_for = Subscribed(wanted.destination, wanted.context)
    return next((name for name, there in machine.subscriptions.items() if there == looked_for), None)
