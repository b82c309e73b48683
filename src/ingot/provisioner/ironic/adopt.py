"""Adopting: take over a host that runs already, without touching it.

After Ironic's database is lost a provisioned host is registered anew and ends up `manageable`; Ironic is then told what is
installed and takes it as it is. No power action and no deployment comes of it. What is installed has to be told before,
because a later undeploy looks at it.

A deployment that was cut off at its very end was finished without Ironic (see `unfinished`): the host runs, and Ironic still
calls it a failed deployment. No verb of Ironic leads from there to `active` without a second deployment, so its record is
dropped and the host is registered and taken over like one that Ironic never knew. So it is where somebody has asked Ironic for
something past Ingot; but that is told first.
"""

from __future__ import annotations

from typing import Final

from ingot.api.baremetalhost import CustomDeploy, Image
from ingot.provisioner import Act, Busy, Failed, HostRef, NotRegistered, Permit, Ready
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Retry, Scope
from ingot.provisioner.ironic.carrying_out import carry_out
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, busy
from ingot.provisioner.ironic.deployed_for import is_noted, noted
from ingot.provisioner.ironic.instance import adoption_differences, without_another
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.rules import HINDRANCES, Fact, Verb, after_failed_cleaning, facts_of, on
from ingot.provisioner.ironic.transitions import clear_maintenance, drop_record, manage
from ingot.provisioner.ironic.unfinished import Left, left_to_do

_PAST_INGOT: Final = (
    states.DEPLOY_FAILED,
    states.ERROR,
    states.RESCUE,
    states.RESCUE_FAILED,
    states.UNRESCUE_FAILED,
)

ADOPT: Final = Verb(
    name="adopt",
    acts={Step.FORGET: Act.FORGET},
    rules=(
        # It is adopted; that its BMC is away right now is told by the vitals.
        on(states.ACTIVE, when=Fact.POWER_FAULT, then=Done()),
        # Only a host that is managed so comes there, and what becomes of it is for `service` to tell.
        on(states.IN_SERVICE, then=Done()),
        *HINDRANCES,
        on(states.ACTIVE, then=Done()),
        on(states.MANAGEABLE, then=Step.ADOPT),
        on(states.ADOPT_FAILED, when=Fact.TOLD, then=Step.ADOPT),
        on(states.ADOPT_FAILED, then=Fail("Ironic cannot take over the running host")),
        on(states.INSPECT_FAILED, then=Step.MANAGE),
        on(states.DEPLOY_FAILED, when=(Fact.OURS, Fact.WRITTEN), then=Step.FORGET),
        *after_failed_cleaning(),
        on(states.AVAILABLE, when=Fact.TOLD, then=Step.MANAGE),
        on(
            states.AVAILABLE,
            then=Fail(
                "Ironic has the host as available: somebody has removed what was deployed, past Ingot. Its disks may be empty",
                ask_why=False,
            ),
        ),
        on(_PAST_INGOT, when=Fact.TOLD, then=Step.FORGET),
        on(
            _PAST_INGOT,
            then=Fail(
                "Ironic has the running host as {state}: somebody asked for something else, past Ingot. Its record is made anew, "
                "and the host is taken over as it is"
            ),
        ),
    ),
)


async def adopt(
    nodes: Nodes,
    host: HostRef,
    installed: Image | None,
    custom_deploy: CustomDeploy | None,
    *,
    permit: Permit,
    again: bool,
    provisioning: str,
) -> Ready[None] | Busy | Failed | NotRegistered:
    def decide(node: FullNode, retry: Retry) -> Decision:
        told = retry.allowed
        if node.provision_state in _PAST_INGOT:
            # Ironic may have been interrupted at it, and it has to be told all the same.
            told = nodes.attempts.may_retry(node.uuid, Scope.STATE, again=again)
        order = {
            Fact.OURS: node.instance_uuid == host.uid,
            Fact.WRITTEN: left_to_do(node) is not Left.EVERYTHING,
            Fact.TOLD: told,
        }
        return ADOPT.decide(node, facts_of(node, nodes.now(), order))

    async def forget(node: FullNode) -> NotRegistered:
        await drop_record(nodes, node, "The host runs; Ingot registers it anew and takes it over.")
        nodes.look_again(host, 0)
        return NotRegistered(
            f"Ironic had the running host as {node.provision_state!r}; it is registered anew and taken over as it is"
        )

    async def take_over(node: FullNode) -> Busy:
        node = await nodes.patch(node, without_another(node, host))
        told = adoption_differences(node, host, installed, custom_deploy, provisioning=provisioning)
        node = await nodes.patch(node, told)
        await nodes.ask_state(node, "adopt")
        return Busy(states.sentence(states.ADOPTING))

    outcome = await carry_out(
        nodes,
        host,
        ADOPT,
        decide,
        {
            Step.ADOPT: take_over,
            Step.FORGET: forget,
            Step.MANAGE: manage(nodes),
            Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
        },
        again=again,
        permit=permit,
        under_way=lambda node, now: None if node.provision_state in states.IN_SERVICE else busy(node, now),
    )
    if not isinstance(outcome, FullNode):
        return outcome
    if outcome.provision_state == states.ACTIVE and not is_noted(outcome):
        # It was deployed past us, or before we noted such things; the host says that it is its own.
        instance = outcome.instance_uuid or host.uid
        await nodes.patch(outcome, noted(outcome, name=provisioning, instance=instance))
    return Ready(None)
