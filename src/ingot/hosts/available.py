"""Available: the host can be used. Its power is managed, and as soon as an image is wanted, provisioning begins."""

from __future__ import annotations

from ingot.api.baremetalhost import ErrorType, EventReason, State
from ingot.api.installed import needs_provisioning, wanted
from ingot.hosts.host_pass import Pass
from ingot.hosts.inspecting import inspection_is_asked_for
from ingot.hosts.outcome import Advance, Block, Outcome, Stay
from ingot.hosts.power import manage_power
from ingot.hosts.secrets import config_drive


async def available(p: Pass) -> Outcome:
    if p.host.spec.externally_provisioned:
        p.change_provisioning(root_device_hints=None)
        return Advance(State.EXTERNALLY_PROVISIONED)
    if inspection_is_asked_for(p.host):
        return Advance(State.INSPECTING)
    if p.host.spec.image != p.status.last_attempted_image:
        p.change(provisioning_fail_count=0)
    if needs_provisioning(p.current):
        return await _begin(p)
    return await manage_power(p) or Stay(_waits_for(p))


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
            "the Events of the host say why. Change spec.image to try again.",
        )
    image = p.host.spec.image
    if image is None or p.host.spec.custom_deploy is not None:
        return Block(
            ErrorType.PROVISIONING,
            "spec.customDeploy is set, and this version of Ingot installs images only. Set spec.image alone.",
        )
    if (why := p.tools.backend.cannot_deploy(image, None)) is not None:
        return Block(ErrorType.PROVISIONING, why)
    drive = await config_drive(p)
    if isinstance(drive, Block):
        return drive
    p.change(last_attempted_image=image)
    p.tell(EventReason.PROVISIONING_STARTED, "Image provisioning started")
    return Advance(State.PROVISIONING)
