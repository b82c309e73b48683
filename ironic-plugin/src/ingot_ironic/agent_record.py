"""What an agent knows of a step that Ironic was killed at: the commands that it was given.

    the step was never given to the agent       it is given now
    the agent is at it, or has finished it      Ironic waits for it, or goes on behind it
    anything else                               nobody knows

An agent that was started anew has forgotten its commands; then nothing is known.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ingot_ironic.selfcheck import needs

LOG: Final = logging.getLogger(__name__)

Commands = Sequence[Mapping[str, Any]]


class Next(enum.Enum):
    """What to do with a step that was cut off."""

    AGAIN = "the step is done again"
    LOOK = "the agent is at the step, or has finished it"
    FAIL = "nobody knows how far it came"


class Agents:
    """What is needed of Ironic's own modules. Making one raises when this Ironic lacks something."""

    def __init__(self) -> None:
        from ironic.drivers.modules import agent_base, agent_client

        needs(agent_base.AgentBaseMixin, "process_next_step")
        needs(agent_client.AgentClient, "get_commands_status")
        self._client: Callable[..., Any] = agent_client.get_client

    def commands(self, task: Any) -> Commands:
        """Those of the node's agent, oldest first."""
        found: Commands = self._client(task).get_commands_status(task.node, retry_connection=False)
        return found


def is_at(kind: str, node: Any, step: Mapping[str, Any]) -> bool:
    """Whether the node is at this step, and it is one of the agent. A step without its number is one of earlier work."""
    numbered = node.driver_internal_info.get(f"{kind}_step_index") is not None
    return numbered and bool(step) and _is_of_agent(node, step)


def _is_of_agent(node: Any, step: Mapping[str, Any]) -> bool:
    """Volumes are made by the agent, or by the BMC."""
    interface: str = step["interface"]
    return interface == "deploy" or (interface == "raid" and bool(node.raid_interface == "agent"))


def decide(kind: str, step: Mapping[str, Any], commands: Commands) -> Next:
    """What follows from the commands for a step of this kind of work, `deploy` or `clean`."""
    if not was_begun(kind, commands):
        return Next.FAIL
    given = [command for command in commands if _is_for(kind, command, step)]
    if not given:
        return Next.FAIL if is_busy(commands) else Next.AGAIN
    return Next.LOOK if commands[-1] is given[-1] else Next.FAIL


def was_begun(kind: str, commands: Commands) -> bool:
    """Whether the agent is the one that this work was begun with."""
    return any(command.get("command_name") == f"get_{kind}_steps" for command in commands)


def is_busy(commands: Commands) -> bool:
    return any(command.get("command_status") == "RUNNING" for command in commands)


def has_done_all(kind: str, commands: Commands) -> bool:
    """Whether there were steps, and all went well."""
    given = [command for command in commands if command.get("command_name") == _given(kind)]
    return bool(given) and all(command.get("command_status") == "SUCCEEDED" for command in given)


def resume(
    kind: str, task: Any, step: Mapping[str, Any], chosen: Next, continue_steps: Callable[[Any], None]
) -> None:
    """Act on what was decided. Raises when nobody knows how far the step came."""
    LOG.warning(
        "Node %s was cut off at the %s step %s: %s.", task.node.uuid, kind, step["step"], chosen.value
    )
    match chosen:
        case Next.FAIL:
            raise LookupError(chosen.value)
        case Next.AGAIN:
            task.node.set_driver_internal_info(f"skip_current_{kind}_step", False)
            task.node.save()
            continue_steps(task)
        case Next.LOOK:
            # Where the work ends is told anew: of a cleaning by hand it is not where one of Ironic's own ends.
            task.process_event("wait", target_state=task.node.target_provision_state)
            # As at a heartbeat: it may be minutes until the next one.
            task.driver.deploy.process_next_step(task, kind)


def _is_for(kind: str, command: Mapping[str, Any], step: Mapping[str, Any]) -> bool:
    """Whether this is the order to do this step. A finished command names its step in the result, any in its parameters."""
    if command.get("command_name") != _given(kind):
        return False
    for place, key in (("command_params", "step"), ("command_result", f"{kind}_step")):
        named = (command.get(place) or {}).get(key)
        if isinstance(named, Mapping):
            return named.get("step") == step.get("step") and named.get("interface") == step.get("interface")
    return True  # an order that says nothing of its step may be for this one


def _given(kind: str) -> str:
    return f"execute_{kind}_step"
