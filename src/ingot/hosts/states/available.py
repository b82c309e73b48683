"""Available: the host can be used. Its power is managed, and as soon as an image is wanted, provisioning begins."""

from __future__ import annotations

from ingot.api.baremetalhost import ErrorType, EventReason, State
from ingot.api.inputs.weaknesses import weaknesses
from ingot.api.installed import needs_provisioning, wanted
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import Advance, Block, Outcome
from ingot.hosts.states.inspecting import inspection_is_asked_for
from ingot.hosts.states.objections import objection
from ingot.hosts.states.power import at_rest, manage_power
from ingot.hosts.states.preparing import is_unprepared
from ingot.hosts.states.profiles import root_device


async def available(p: Pass) -> Outcome:
    if p.host.spec.externally_provisioned:
        p.change_provisioning(root_device_hints=None)
        return Advance(State.EXTERNALLY_PROVISIONED)
    if inspection_is_asked_for(p.host):
        return Advance(State.INSPECTING)
    if is_unprepared(p):
        return Advance(State.PREPARING)
    if p.host.spec.image != p.status.last_attempted_image or wanted(p.host.spec) is None:
        p.change(provisioning_fail_count=0)
    if needs_provisioning(p.current):
        return await _begin(p)
    return await manage_power(p) or at_rest(p, _waits_for(p))


def _waits_for(p: Pass) -> str:
    if wanted(p.host.spec) is not None and not p.host.spec.online:
        return "an image is set, and the host is to be off: it is provisioned once spec.online is true"
    return "waiting for an image to be set"


async def _begin(p: Pass) -> Outcome:
    """Everything that can be found wrong before the machine is touched is found here."""
    if 0 < p.tools.settings.most_attempts <= p.status.provisioning_fail_count:
        return Block(
            ErrorType.PROVISIONING,
            f"gave up after {p.status.provisioning_fail_count} failed attempts to provision this image; "
            "the Events of the host say why. Change spec.image to try again, or run `ingot host retry`.",
        )
    if (found := await objection(p)) is not None:
        return found
    image, custom_deploy = p.host.spec.image, p.host.spec.custom_deploy
    for weak in weaknesses(image):
        p.tell(EventReason.WEAK_IMAGE, f"{weak.field}: {weak.sentence}", "Warning")
    # What is begun is noted together with the state, before anything is done; see `ingot.api.installed`.
    p.change(last_attempted_image=image)
    # Hints that changed since the host was prepared count as well.
    p.change_provisioning(custom_deploy=custom_deploy, root_device_hints=root_device(p.host.spec))
    p.tell(EventReason.PROVISIONING_STARTED, "Image provisioning started")
    return Advance(State.PROVISIONING)
