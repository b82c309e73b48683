"""A deployment goes on after Ironic was killed, where its agent can tell how far it came (`unbroken_steps`).

`prepare_instance_boot` is Ironic's own step: when the image is written, it is done again, which changes nothing that it did
before. The later steps are left to the operator, which finishes them without the agent. When all steps are done, Ironic forgets
them, and is done a moment later; that it is over is noted with them (`over`), and it is ended after the start.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

from ingot_ironic import cut_off, over
from ingot_ironic.agent_record import (
    Agents,
    Commands,
    Next,
    decide,
    has_done_all,
    is_busy,
    was_begun,
)
from ingot_ironic.selfcheck import takes
from ingot_ironic.unbroken_steps import Steps

_KIND: Final = "deploy"
_PREPARE: Final = "prepare_instance_boot"
# Steps of Ironic itself. The first boots the agent; the last ones end it.
_WITHOUT_AGENT: Final = frozenset({"deploy", "tear_down_agent", "switch_to_tenant_network", "boot_instance"})


def install() -> None:
    """Have deployments go on. Raises when this Ironic is made in another way."""
    from ironic.common import states
    from ironic.conductor import deployments, utils

    ironic, agents = cut_off.Ironic(), Agents()
    note_the_end(utils, states.DEPLOYING)
    work = flow(
        agents,
        states.DEPLOYING,
        go_on=deployments.continue_node_deploy,
        finish=deployments.do_next_deploy_step,
    )
    cut_off.hook(ironic, work)


def note_the_end(utils: Any, state: str) -> None:
    """`utils`: the module of Ironic that forgets what belongs to a deployment: before it, after it, and when it fails."""
    original = utils.wipe_deploy_internal_info
    takes(original, "task")

    @functools.wraps(original)
    def wipe_deploy_internal_info(task: Any) -> None:
        is_over = task.node.provision_state == state and _has_done_all(task.node)
        original(task)
        if is_over:
            over.note(task.node, over.DEPLOYMENT)

    utils.wipe_deploy_internal_info = wipe_deploy_internal_info


def _has_done_all(node: Any) -> bool:
    """Whether the last step is behind it. One that failed has an error, one that begins has no steps (`fresh_steps`)."""
    steps = node.driver_internal_info.get("deploy_steps")
    at = node.driver_internal_info.get("deploy_step_index")
    return bool(steps) and at == len(steps) - 1 and not node.deploy_step and not node.last_error


def flow(agents: Any, state: str, *, go_on: Callable[[Any], None], finish: Callable[..., None]) -> Steps:
    return Steps(
        _KIND,
        state,
        agents,
        noted_as=over.DEPLOYMENT,
        go_on=go_on,
        end=lambda task, _: finish(task, None),
        without_agent=_WITHOUT_AGENT,
        choose=_choose,
    )


def _choose(step: Mapping[str, Any], commands: Commands) -> Next:
    return _prepare(commands) if step["step"] == _PREPARE else decide(_KIND, step, commands)


def _prepare(commands: Commands) -> Next:
    written = was_begun(_KIND, commands) and has_done_all(_KIND, commands)
    return Next.AGAIN if written and not is_busy(commands) else Next.FAIL
