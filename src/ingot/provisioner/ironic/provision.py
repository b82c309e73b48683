"""Provisioning: put the image on the disk and start it.

The way is manageable → (cleaning) → available → deploying → active. Each of the two steps that can destroy asks the permit
first. A deployment that failed is not repeated here: the host is deprovisioned first, which is what leaves its disks in a
known state. A deployment that did not fail, but was cut off because Ironic died, goes on from where it was. One whose ramdisk
does not come up is taken back when somebody asks for that, and begins anew.
"""

from __future__ import annotations

from datetime import datetime

from ingot.provisioner import (
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
from ingot.provisioner.ironic.decisions import (
    Decision,
    Done,
    Fail,
    Step,
    after_failed_cleaning,
    busy,
    hindrance,
)
from ingot.provisioner.ironic.guarded import guarded
from ingot.provisioner.ironic.instance import (
    UnusableOrder,
    check_order,
    deploy_steps,
    drive_for,
    instance_differences,
    is_ours,
    what,
)
from ingot.provisioner.ironic.model import FullNode, Json, Node
from ingot.provisioner.ironic.nodes import Nodes, sight
from ingot.provisioner.ironic.reasons import shorten
from ingot.provisioner.ironic.settings import PersistentBoot
from ingot.provisioner.ironic.transitions import clear_maintenance, manage, provide
from ingot.provisioner.ironic.unfinished import Asked, Finishing, decide_unfinished


def decide_provision(
    node: FullNode,
    now: datetime,
    *,
    ours: bool,
    named: str,
    retry: Retry,
    asked: Asked,
    restart: bool = False,
) -> Decision:
    """`ours`: the node already has this deployment. `named`: what is deployed, for people."""
    if node.provision_state == states.ACTIVE and ours:
        return Done()
    if restart and node.provision_state == states.DEPLOY_WAIT:
        return Step.UNDEPLOY
    if answer := hindrance(node, now):
        return answer
    match node.provision_state:
        case states.MANAGEABLE:
            return Step.PROVIDE
        case states.AVAILABLE:
            return Step.DEPLOY
        case states.DEPLOY_FAILED if ours and retry is Retry.INTERRUPTED:
            return decide_unfinished(node, asked)
        case states.DEPLOY_FAILED:
            return Fail(f"{named} cannot be deployed")
        case states.CLEAN_FAILED:
            return after_failed_cleaning(node, again=retry.allowed)
        case states.INSPECT_FAILED | states.ADOPT_FAILED:
            return Step.MANAGE
        case states.ACTIVE:
            return Fail(
                "Ironic has another operating system on this host; it has to be deprovisioned first",
                ask_why=False,
            )
    return Fail(f"the host cannot be provisioned while Ironic has it as {node.provision_state!r}")


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

    def decide(node: FullNode, retry: Retry) -> Decision:
        return decide_provision(
            node,
            nodes.now(),
            ours=is_ours(node, host, wanted),
            named=what(wanted.image, wanted.custom_deploy),
            retry=retry,
            asked=finishing.asked(node),
            restart=wanted.restart,
        )

    def see(node: FullNode) -> Sight:
        # It was decided that what a failed deployment of ours left behind is unfinished, or there would be no such deed.
        return sight(node, unfinished=node.provision_state == states.DEPLOY_FAILED)

    def under_way(node: Node, now: datetime) -> Decision | None:
        return None if wanted.restart and node.provision_state == states.DEPLOY_WAIT else busy(node, now)

    async def deploy(node: FullNode) -> Busy | Failed:
        finishing.over(node)
        patch = instance_differences(node, host, wanted, persistent_boot)
        return await _deploy(nodes, await nodes.patch(node, patch), wanted, drive)

    async def take_back(node: FullNode) -> Busy:
        await nodes.ask_state(node, "deleted")
        return Busy("the ramdisk does not come up: the deployment is taken back and begins anew")

    async def start(node: FullNode) -> Busy | Failed | NotRegistered | None:
        # A machine that must not be switched off is rebooted, and that stops whatever runs there.
        reboots = guarded(Act.POWER_OFF, permit, finishing.start, see=see)
        return await (reboots(node) if node.disable_power_off else finishing.start(node))

    finishing = Finishing(nodes)
    outcome = await carry_out(
        nodes,
        host,
        decide,
        {
            Step.PROVIDE: guarded(Act.CLEAN, permit, provide(nodes)),
            Step.DEPLOY: guarded(Act.DEPLOY, permit, deploy, see=see),
            Step.UNDEPLOY: guarded(Act.UNDEPLOY, permit, take_back),
            Step.STOP_RAMDISK: guarded(Act.POWER_OFF, permit, finishing.stop_ramdisk, see=see),
            Step.START: start,
            Step.MANAGE: manage(nodes),
            Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
        },
        again=again,
        under_way=under_way,
    )
    if not isinstance(outcome, FullNode):
        return outcome
    finishing.over(outcome)
    return Ready(None)


async def _deploy(nodes: Nodes, node: FullNode, wanted: Deployment, drive: Json) -> Busy | Failed:
    named = what(wanted.image, wanted.custom_deploy)
    checks = await nodes.client.validate(node.uuid)
    for part in ("boot", "deploy"):
        if (check := checks.get(part)) is not None and check.result is False:
            return Failed(f"Ironic cannot deploy {named}: {shorten(check.reason or 'no reason given')}")
    await nodes.ask_state(node, "active", configdrive=drive, deploy_steps=deploy_steps(wanted))
    return Busy(f"deploying {named}")
