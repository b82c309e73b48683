"""What is left to do of a deployment that was cut off in its middle, and how it is finished without writing the image twice.

Ironic's steps for writing an image are deploy (100), write_image (80), prepare_instance_boot (60), tear_down_agent (40),
switch_to_tenant_network (30) and boot_instance (20), each noted in the node before it begins. So

- up to prepare_instance_boot, only Ironic can go on, and it begins anew;
- from tear_down_agent on the image and its config drive are written and the disk is what the machine boots from; the ramdisk
  may still run, and is asked to stop in the way that lets it write out what it holds; where it does not, all begins anew;
- after that step the ramdisk is gone, and all that may be missing is to switch the machine on. When we have stopped the ramdisk
  ourselves, that is noted with the node before the machine is switched on: who comes after us would ask the system to stop.

A failure clears the step and an interruption does not. The step of an earlier deployment can also stay behind, but then the
list of steps that it belongs to is gone: a step counts only where both agree.
"""

from __future__ import annotations

import enum
from typing import Final

from ingot.provisioner import Busy
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Scope
from ingot.provisioner.ironic.begun import moment
from ingot.provisioner.ironic.decisions import Done, Fail, Step
from ingot.provisioner.ironic.errors import BadRequest
from ingot.provisioner.ironic.interruptions import switching_was_interrupted
from ingot.provisioner.ironic.model import FullNode, add, step_name
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.rules import Fact, Switching, on

RAMDISK_STOPS_IN: Final = 60
_RAMDISK_GONE: Final = "ingot_ramdisk_gone"
"""In the node's `extra`: the state in which it is gone, and since when."""
_STOPS_THE_RAMDISK: Final = "tear_down_agent"
_AFTER_THE_RAMDISK: Final = frozenset({"switch_to_tenant_network", "boot_instance"})


class Left(enum.Enum):
    """What is left to do of a deployment."""

    EVERYTHING = "everything"
    RESTART = "restart"
    """To stop the ramdisk, and to start the machine from its disk."""
    START = "start"
    """To start the machine from its disk."""


def left_to_do(node: FullNode) -> Left:
    step = _agreed_step(node)
    if step in _AFTER_THE_RAMDISK:
        return Left.START
    # Where power must not be switched off the ramdisk cannot be asked to end.
    return Left.RESTART if step == _STOPS_THE_RAMDISK and not node.disable_power_off else Left.EVERYTHING


_CUT_OFF: Final = frozenset({Fact.OURS, Fact.INTERRUPTED})

UNFINISHED: Final = (
    on(states.DEPLOY_FAILED, when=_CUT_OFF, unless=Fact.WRITTEN, then=Step.DEPLOY),
    on(states.DEPLOY_FAILED, when={*_CUT_OFF, Fact.SWITCHING}, then=Switching()),
    on(states.DEPLOY_FAILED, when={*_CUT_OFF, Fact.ASKED_TO_START, Fact.IS_ON}, then=Done()),
    on(
        states.DEPLOY_FAILED,
        when={*_CUT_OFF, Fact.ASKED_TO_START},
        then=Fail("the image is on the disk, but the host cannot be switched on", undone_by="deprovision"),
    ),
    on(states.DEPLOY_FAILED, when={*_CUT_OFF, Fact.RAMDISK_GONE, Fact.NEVER_OFF}, then=Step.RESTART),
    on(states.DEPLOY_FAILED, when={*_CUT_OFF, Fact.RAMDISK_GONE}, then=Step.START),
    on(states.DEPLOY_FAILED, when=_CUT_OFF, unless=Fact.ASKED_TO_STOP, then=Step.STOP_RAMDISK),
    on(states.DEPLOY_FAILED, when={*_CUT_OFF, Fact.IS_OFF}, then=Step.START),
    on(states.DEPLOY_FAILED, when=_CUT_OFF, then=Step.DEPLOY),
)
"""The next step towards the end of a deployment of ours that was cut off.

The power state that Ironic shows is not believed before we asked for something: the ramdisk switches the machine off without
Ironic taking note.
"""


def facts_of_cut_off(node: FullNode, *, asked_to_stop: bool, asked_to_start: bool) -> dict[Fact, bool]:
    """What the rules ask; the rest of it only we know: what we asked of Ironic since the deployment was cut off."""
    left = left_to_do(node)
    return {
        Fact.WRITTEN: left is not Left.EVERYTHING,
        Fact.RAMDISK_GONE: left is Left.START or _is_noted(node),
        Fact.ASKED_TO_STOP: asked_to_stop,
        Fact.ASKED_TO_START: asked_to_start,
        Fact.IS_ON: node.power_state == states.POWER_ON,
        Fact.IS_OFF: node.power_state == states.POWER_OFF,
        Fact.NEVER_OFF: node.disable_power_off,
    }


def _is_noted(node: FullNode) -> bool:
    return node.extra.get(_RAMDISK_GONE) == moment(node)


def _agreed_step(node: FullNode) -> str | None:
    steps = node.driver_internal_info.get("deploy_steps")
    index = node.driver_internal_info.get("deploy_step_index")
    if not isinstance(steps, list) or not isinstance(index, int) or not 0 <= index < len(steps):
        return None
    name = step_name(node.deploy_step)
    return name if name == step_name(steps[index]) else None


class Finishing:
    """Does what is left, through Ironic, and knows what it asked for. Only memory: after a restart it is asked for again."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def facts(self, node: FullNode) -> dict[Fact, bool]:
        """What the rules ask of a deployment that was cut off."""
        # What Ironic was interrupted at does not count: it is asked for again.
        cut_off = switching_was_interrupted(node)
        was_started = self._nodes.attempts.was_started
        return facts_of_cut_off(
            node,
            asked_to_stop=was_started(node.uuid, Scope.STOP_RAMDISK) and not cut_off,
            asked_to_start=was_started(node.uuid, Scope.START) and not cut_off,
        )

    def over(self, node: FullNode) -> None:
        """It is finished, or begun anew."""
        for scope in (Scope.STOP_RAMDISK, Scope.START):
            self._nodes.attempts.done(node.uuid, scope)

    async def stop_ramdisk(self, node: FullNode) -> Busy | None:
        try:
            await self._nodes.ask_power(node, f"soft {states.POWER_OFF}", timeout=RAMDISK_STOPS_IN)
        except BadRequest:
            # The driver offers no soft power off; a hard one could cost what the ramdisk has not written yet.
            self._nodes.attempts.started(node.uuid, Scope.STOP_RAMDISK)
            return None
        self._nodes.attempts.started(node.uuid, Scope.STOP_RAMDISK)
        return Busy("the image is written; stopping the ramdisk")

    async def start(self, node: FullNode) -> Busy:
        """Ironic asks the BMC first, and does nothing to a machine that runs."""
        return await self._start(node, states.POWER_ON)

    async def restart(self, node: FullNode) -> Busy:
        """One that must not be switched off was not."""
        return await self._start(node, "rebooting")

    async def _start(self, node: FullNode, how: str) -> Busy:
        if left_to_do(node) is not Left.START and not _is_noted(node):
            node = await self._nodes.patch(node, [add(f"/extra/{_RAMDISK_GONE}", moment(node))])
        await self._nodes.ask_power(node, how)
        self._nodes.attempts.started(node.uuid, Scope.START)
        return Busy("the image is written; starting the host from its disk")
