"""A deployment goes on after Ironic was killed, where its agent can tell how far it came (`agent_record`).

`prepare_instance_boot` is Ironic's own step: when the image is written, it is done again, which changes nothing that it did
before. The later steps are left to the operator, which finishes them without the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ingot_ironic import cut_off
from ingot_ironic.agent_record import (
    Agents,
    Commands,
    Next,
    decide,
    has_done_all,
    is_at,
    is_busy,
    resume,
    was_begun,
)

_KIND: Final = "deploy"
_PREPARE: Final = "prepare_instance_boot"
# Steps of Ironic itself. The first boots the agent; the last ones end it.
_WITHOUT_AGENT: Final = frozenset({"deploy", "tear_down_agent", "switch_to_tenant_network", "boot_instance"})


def install() -> None:
    """Have deployments go on. Raises when this Ironic is made in another way."""
    from ironic.common import states
    from ironic.conductor import deployments

    cut_off.hook(
        cut_off.Ironic(), Deploying(Agents(), states.DEPLOYING, go_on=deployments.continue_node_deploy)
    )


class Deploying:
    def __init__(self, agents: Any, state: str, *, go_on: Callable[[Any], None]) -> None:
        self._agents = agents
        self.state = state
        self._continue = go_on

    def may_go_on(self, node: Any) -> bool:
        step: Mapping[str, Any] = node.deploy_step
        return is_at(_KIND, node, step) and step["step"] not in _WITHOUT_AGENT

    def go_on(self, task: Any) -> None:
        step = task.node.deploy_step
        commands = self._agents.commands(task)
        chosen = _prepare(commands) if step["step"] == _PREPARE else decide(_KIND, step, commands)
        resume(_KIND, task, step, chosen, self._continue)


def _prepare(commands: Commands) -> Next:
    written = was_begun(_KIND, commands) and has_done_all(_KIND, commands)
    return Next.AGAIN if written and not is_busy(commands) else Next.FAIL
