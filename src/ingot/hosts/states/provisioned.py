"""Provisioned: what was asked for runs on the machine. It is adopted where the back end forgot it, and its power is managed.

Nothing here touches what is installed: a back end without a memory is told about the machine, never told to install it again.
A back end may have to drop its record of the machine first and make it anew; that is asked of the guard, which goes by what is
written, so what this pass has decided is written before.

Something else that is wanted instead means that what is installed goes. Whatever can be found wrong with it is told first: until
that is mended, the host runs on as it is.
"""

from __future__ import annotations

from msgspec.structs import replace

from ingot.api.baremetalhost import ErrorType, State
from ingot.api.installed import must_deprovision, provisioning_name, wanted
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import SOON, Advance, Block, Fail, Outcome, Wait
from ingot.hosts.rules import broken_rules
from ingot.hosts.states.objections import objection
from ingot.hosts.states.power import at_rest, manage_power
from ingot.provisioner import Act, Busy, Failed, NotRegistered, Ready, Refusal, Sight


async def provisioned(p: Pass) -> Outcome:
    if must_deprovision(p.current):
        kept_by = await _kept_by(p)
        if kept_by is None:
            return Advance(State.DEPROVISIONING)
        return await _adopt(p) or await manage_power(p) or kept_by
    return await _adopt(p) or await manage_power(p) or at_rest(p, "the wanted image is installed")


async def externally_provisioned(p: Pass) -> Outcome:
    spec = p.host.spec
    if not spec.externally_provisioned:
        # What is installed becomes ours as it is: the image that the user names now counts as the one that is there.
        p.change(
            provisioning=replace(p.status.provisioning, image=spec.image, custom_deploy=spec.custom_deploy)
        )
        return Advance(State.PROVISIONED)
    return (
        await _adopt(p)
        or await manage_power(p)
        or at_rest(p, "somebody else installed this host; only its power is managed")
    )


async def _kept_by(p: Pass) -> Block | None:
    """Why what is wanted instead cannot be installed; None where nothing is known against it, or nothing is wanted."""
    if wanted(p.host.spec) is None:
        return None
    errors = broken_rules(p.host)
    found = Block(ErrorType.PROVISIONING, errors) if errors else await objection(p)
    if found is None:
        return None
    why = found.message.rstrip(". ")
    return Block(found.kind, f"{why}. What is installed stays until this is mended.", found.event)


async def _adopt(p: Pass) -> Outcome | None:
    async def permit(act: Act, sight: Sight) -> Refusal | None:
        await p.save("the back end's record of the running host is made anew")
        return await p.permit(act, sight)

    match await p.tools.backend.adopt(
        p.ref,
        p.status.provisioning.image,
        custom_deploy=p.status.provisioning.custom_deploy,
        permit=permit,
        again=p.failed_with(ErrorType.PROVISIONED_REGISTRATION),
        provisioning=provisioning_name(p.status),
    ):
        case Busy(why, detail):
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message):
            return Fail(ErrorType.PROVISIONED_REGISTRATION, message)
        case Ready():
            return None
