"""Deleting: switch the machine off, make the back end forget it, and let the objects go.

The finalizer of the host comes off last: while it is on, there is something left to do, and after a crash it is done again.

Two hosts leave another way. One that is detached is unknown to the back end already, and goes as it is. One whose annotation
`baremetalhost.metal3.io/force-delete` says so goes at once, without the back end: what it leaves behind is noted, and told.
"""

from __future__ import annotations

from ingot.api.baremetalhost import FINALIZER, Annotation, ErrorType, EventReason, State
from ingot.api.detachment import detachment, may_be_let_go
from ingot.api.meta import Key, Object
from ingot.api.preprovisioningimage import HOST_FINALIZER, PREPROVISIONING_IMAGES
from ingot.hosts.beside.data_image import let_go as let_data_image_go
from ingot.hosts.beside.data_image import release_data_image
from ingot.hosts.beside.hardware import release_hardware_data
from ingot.hosts.finalizers import release, without
from ingot.hosts.host_pass import Pass, Tools
from ingot.hosts.leaving.leftovers import left_behind, note_leftover
from ingot.hosts.metrics import METRICS
from ingot.hosts.outcome import SOON, Advance, Fail, Gone, Outcome, Stay, Wait
from ingot.hosts.secrets.marks import release_secrets
from ingot.hosts.states.deprovisioning import GIVE_UP_AFTER
from ingot.hosts.states.power import look_at_vitals
from ingot.provisioner import Busy, Failed, NotRegistered, Power, PowerOffMode, Ready

ON_ITS_WAY = frozenset({State.DEPROVISIONING, State.POWERING_OFF_BEFORE_DELETE, State.DELETING})
BY_FORCE = (
    "to let the host go without the back end, run `ingot host delete --force` or set the annotation "
    f"{Annotation.FORCE_DELETE}"
)

WITHOUT_BACKEND = "the deletion waits for the back end, which does not answer"

DELAYED = (
    f"the deletion waits until the host is attached again, as its annotation {Annotation.DETACHED} asks for: remove "
    "that annotation to have it deprovisioned and deleted, or its deleteAction to have it deleted as it is"
)


async def powering_off(p: Pass) -> Outcome:
    if p.host.spec.disable_power_off:
        return Advance(State.DELETING)
    if not await look_at_vitals(p):
        return _not_known(p, "the back end does not know the host; it is registered again")
    match await p.tools.backend.set_power(
        p.ref,
        Power.OFF,
        mode=PowerOffMode.HARD,
        permit=p.permit,
        again=p.failed_with(ErrorType.POWER_MANAGEMENT),
    ):
        case Busy(why, detail):
            return Wait(why, detail)
        case Ready():
            p.change(powered_on=False)
            return Advance(State.DELETING)
        case NotRegistered(why):
            return _not_known(p, why)
        case Failed(message):
            if p.status.error_count > GIVE_UP_AFTER:
                METRICS.count("delete_without_powering_off")
                return Advance(State.DELETING)
            return Fail(ErrorType.POWER_MANAGEMENT, message)


def _not_known(p: Pass, why: str) -> Outcome:
    if not p.unmanageable:
        return Wait(why, look_again=SOON)
    METRICS.count("delete_without_powering_off")
    return Advance(State.DELETING)


async def deleting(p: Pass) -> Outcome:
    if not p.detached:
        match await p.tools.backend.delete(p.ref, permit=p.permit):
            case Busy(why, detail):
                return Wait(why, detail)
            case Failed(message):
                told = message.rstrip(".")
                return Fail(
                    ErrorType.REGISTRATION,
                    f"the back end cannot forget the host: {told}. {BY_FORCE.capitalize()}",
                )
            case Ready():
                pass
    return await _let_go(p)


def waits_for_backend(why: str) -> str:
    """What a user reads who deletes a host while nobody answers."""
    return f"{WITHOUT_BACKEND}: {why.rstrip('.')}; {BY_FORCE}"


async def leave_by_force(p: Pass) -> Outcome | None:
    """Let a host go without the back end, before anything else could hold it up; None when nobody asked for that."""
    if not p.deleting or Annotation.FORCE_DELETE not in p.host.metadata.annotations:
        return None
    left = left_behind(p.current, noted=await note_leftover(p))
    p.tell(EventReason.FORCE_DELETED, f"Deleted by force, without the back end. {left}", "Warning")
    return await _let_go(p)


def leave_as_detached(p: Pass) -> Outcome | None:
    """For a host that is being deleted: where it goes because it is detached, or is to be; None when that says nothing."""
    asked = detachment(p.host)
    if asked is None or p.state is State.DELETING:
        return None
    if not asked.delays_deletion:
        return Advance(State.DELETING)
    if p.detached:
        if p.told_last() != DELAYED:
            METRICS.count("delete_delayed_for_detached")
        return Stay(DELAYED)
    if p.state in ON_ITS_WAY or may_be_let_go(p.current):
        return None
    return Stay(
        f"the deletion waits until the host has been detached, as its annotation {Annotation.DETACHED} asks for, and that cannot "
        f'be done while it is {p.state or "new"}: remove that annotation, or add "force": true to it'
    )


async def _let_go(p: Pass) -> Outcome:
    """Everything of ours comes off, the host's own finalizer last."""
    await release_hardware_data(p.tools, p.key)
    await release(p.tools.client, PREPROVISIONING_IMAGES, p.key, HOST_FINALIZER)
    if (image := p.tools.companions.data_images.get(p.key)) is not None:
        await let_data_image_go(p.tools, image)
    await release_secrets(p)
    await p.patch_host({"metadata": {"finalizers": without(p.host.metadata.finalizers, FINALIZER)}})
    return Gone()


async def let_companions_go(tools: Tools, key: Key) -> None:
    """The host is gone, by us or by somebody who took our finalizer off it: what is to go after it can go."""
    companions = tools.companions
    if _is_going(companions.hardware.get(key)):
        await release_hardware_data(tools, key)
    if _is_going(companions.ramdisks.get(key)):
        await release(tools.client, PREPROVISIONING_IMAGES, key, HOST_FINALIZER)
    await release_data_image(tools, key)


def _is_going(companion: Object | None) -> bool:
    return companion is not None and companion.metadata.deletion_timestamp is not None
