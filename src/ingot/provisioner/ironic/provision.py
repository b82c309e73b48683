"""Provisioning: put the image on the disk and start it.

The way is manageable → (cleaning) → available → deploying → active. Each of the two steps that can destroy asks the permit
first. A deployment that failed is not repeated here: the host is deprovisioned first, which is what leaves its disks in a
known state. A deployment that did not fail, but was cut off because Ironic died, goes on from where it was. One whose ramdisk
does not come up is taken back when somebody asks for that, and begins anew.

A machine that runs something else is left alone. The host is emptied before it is provisioned, so what runs there was not put
there by this order or an earlier one of it: host and Ironic know different things (one of them was restored from a backup, or
somebody used Ironic past Ingot), and a person has to say which of them is right.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ingot.provisioner import (
    BEGIN_ANEW,
    Act,
    Busy,
    Deployment,
    Failed,
    HostRef,
    NotRegistered,
    Permit,
    Ready,
    Sight,
)
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Retry
from ingot.provisioner.ironic.carrying_out import carry_out
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, busy
from ingot.provisioner.ironic.deployed_for import noted
from ingot.provisioner.ironic.instance import (
    UnusableOrder,
    check_order,
    deploy_steps,
    drive_for,
    found_on,
    instance_differences,
    is_of_the_same_node,
    is_ours,
    what,
    without_another,
)
from ingot.provisioner.ironic.model import FullNode, Json, Node
from ingot.provisioner.ironic.nodes import Nodes, sight
from ingot.provisioner.ironic.reasons import shorten
from ingot.provisioner.ironic.rules import (
    HINDRANCES,
    Fact,
    Verb,
    after_failed_cleaning,
    elsewhere,
    facts_of,
    on,
)
from ingot.provisioner.ironic.settings import PersistentBoot
from ingot.provisioner.ironic.transitions import clear_maintenance, manage, provide
from ingot.provisioner.ironic.unfinished import UNFINISHED, Finishing

PROVISION: Final = Verb(
    name="provision",
    acts={
        Step.PROVIDE: Act.CLEAN,
        Step.DEPLOY: Act.DEPLOY,
        Step.UNDEPLOY: Act.UNDEPLOY,
        Step.STOP_RAMDISK: Act.POWER_OFF,
        # A machine that must not be switched off is rebooted, and that stops whatever runs there.
        Step.RESTART: Act.POWER_OFF,
    },
    rules=(
        on(states.ACTIVE, when=Fact.OURS, then=Done()),
        on(states.DEPLOY_WAIT, when=Fact.RESTART, then=Step.UNDEPLOY),
        *HINDRANCES,
        on(states.MANAGEABLE, then=Step.PROVIDE),
        on(states.AVAILABLE, then=Step.DEPLOY),
        *UNFINISHED,
        on(states.DEPLOY_FAILED, then=Fail("{named} cannot be deployed", undone_by="deprovision")),
        *after_failed_cleaning(),
        on(states.ERROR, then=Fail("removing what was deployed failed", undone_by="deprovision")),
        on(states.INSPECT_FAILED, then=Step.MANAGE),
        elsewhere(
            then=Fail(
                "{named} is not installed: Ironic has the host as {state} with {found}, which this provisioning did not put "
                "there. It may be in use and is left alone",
                ask_why=False,
                remedy=BEGIN_ANEW,
            )
        ),
    ),
)


async def provision(
    nodes: Nodes,
    host: HostRef,
    wanted: Deployment,
    *,
    persistent_boot: PersistentBoot,
    permit: Permit,
    again: bool,
) -> Ready[None] | Busy | Failed | NotRegistered:
    try:
        check_order(wanted.image, wanted.custom_deploy)
        drive = drive_for(host, wanted)
    except UnusableOrder as problem:
        return Failed(str(problem))

    def runs_since_before(node: FullNode) -> bool:
        return node.provision_state == states.ACTIVE and is_of_the_same_node(node, host, wanted)

    def decide(node: FullNode, retry: Retry) -> Decision:
        order = finishing.facts(node) | {
            Fact.OURS: is_ours(node, host, wanted) or runs_since_before(node),
            Fact.INTERRUPTED: retry is Retry.INTERRUPTED,
            Fact.TOLD: retry.allowed,
            Fact.RESTART: wanted.restart,
        }
        named = what(wanted.image, wanted.custom_deploy)
        facts = facts_of(node, nodes.now(), order)
        return PROVISION.decide(node, facts, named=named, found=found_on(node))

    def see(node: FullNode) -> Sight:
        # It was decided that what a failed deployment of ours left behind is unfinished, or there would be no such deed.
        return sight(node, unfinished=node.provision_state == states.DEPLOY_FAILED)

    def under_way(node: Node, now: datetime) -> Decision | None:
        return None if wanted.restart and node.provision_state == states.DEPLOY_WAIT else busy(node, now)

    async def deploy(node: FullNode) -> Busy | Failed:
        finishing.over(node)
        node = await nodes.patch(node, without_another(node, host))
        patch = instance_differences(node, host, wanted, persistent_boot)
        return await _deploy(nodes, await nodes.patch(node, patch), wanted, drive)

    async def take_back(node: FullNode) -> Busy:
        await nodes.ask_state(node, "deleted")
        return Busy("the ramdisk does not come up: the deployment is taken back and begins anew")

    finishing = Finishing(nodes)
    outcome = await carry_out(
        nodes,
        host,
        PROVISION,
        decide,
        {
            Step.PROVIDE: provide(nodes),
            Step.DEPLOY: deploy,
            Step.UNDEPLOY: take_back,
            Step.STOP_RAMDISK: finishing.stop_ramdisk,
            Step.START: finishing.start,
            Step.RESTART: finishing.restart,
            Step.MANAGE: manage(nodes),
            Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
        },
        again=again,
        permit=permit,
        under_way=under_way,
        see=see,
    )
    if not isinstance(outcome, FullNode):
        return outcome
    finishing.over(outcome)
    # What was found done counts as done by this provisioning, also where an earlier one had begun it.
    instance = outcome.instance_uuid or host.uid
    await nodes.patch(outcome, noted(outcome, name=wanted.name, instance=instance))
    return Ready(None)


async def _deploy(nodes: Nodes, node: FullNode, wanted: Deployment, drive: Json) -> Busy | Failed:
    named = what(wanted.image, wanted.custom_deploy)
    checks = await nodes.client.validate(node.uuid)
    for part in ("boot", "deploy"):
        if (check := checks.get(part)) is not None and check.result is False:
            return Failed(f"Ironic cannot deploy {named}: {shorten(check.reason or 'no reason given')}")
    await nodes.ask_state(node, "active", configdrive=drive, deploy_steps=deploy_steps(wanted))
    return Busy(f"deploying {named}")
