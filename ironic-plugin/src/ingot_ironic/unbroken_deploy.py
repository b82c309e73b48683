"""A deployment goes on after Ironic was killed, where its agent can tell how far it came.

When Ironic starts it moves every node in `deploying` to `deploy failed`, because it cannot know what became of the step that it
was at; deploying again writes the image a second time. The agent knows. So before Ironic does that, the nodes that were at a step
of the agent, or at `prepare_instance_boot`, are set aside (locked, which Ironic's own clean-up passes over), and their agents are
asked for the commands they were given:

    the step was never given to the agent          it is given now
    the agent is at it, or has finished it         the deployment waits for it, or goes on behind it
    prepare_instance_boot, and the image is written   it is done again, which changes nothing that it did before
    anything else, or an agent that does not answer   the node fails, in the words that Ironic has for it

An agent that was started anew has forgotten its commands; then nothing is known, and the node fails as well. The later steps are
left to the operator, which finishes them without the agent.
"""

from __future__ import annotations

import enum
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

LOG: Final = logging.getLogger(__name__)

_PREPARE: Final = "prepare_instance_boot"
# Steps of Ironic itself. The first boots the agent; the last ones end it.
_WITHOUT_AGENT: Final = frozenset({"deploy", "tear_down_agent", "switch_to_tenant_network", "boot_instance"})
_GIVEN: Final = "execute_deploy_step"
_BEGUN: Final = "get_deploy_steps"


class Next(enum.Enum):
    """What to do with a deployment that was cut off."""

    AGAIN = "the step is done again"
    LOOK = "the agent is at the step, or has finished it"
    FAIL = "nobody knows how far it came"


def may_go_on(step: Mapping[str, Any]) -> bool:
    """Whether it is worth asking the agent."""
    return bool(step) and step["interface"] == "deploy" and step["step"] not in _WITHOUT_AGENT


def decide(step: Mapping[str, Any], commands: Sequence[Mapping[str, Any]]) -> Next:
    """What follows from the commands of the agent, oldest first."""
    if not any(command.get("command_name") == _BEGUN for command in commands):
        return Next.FAIL
    last = commands[-1]
    running = any(command.get("command_status") == "RUNNING" for command in commands)
    if step.get("step") == _PREPARE:
        return Next.AGAIN if _written(commands) and not running else Next.FAIL
    given = [command for command in commands if _is_for(command, step)]
    if not given:
        return Next.FAIL if running else Next.AGAIN
    return Next.LOOK if last is given[-1] else Next.FAIL


def _written(commands: Sequence[Mapping[str, Any]]) -> bool:
    given = [command for command in commands if command.get("command_name") == _GIVEN]
    return bool(given) and all(command.get("command_status") == "SUCCEEDED" for command in given)


def _is_for(command: Mapping[str, Any], step: Mapping[str, Any]) -> bool:
    """Whether this is the order to do this step. A finished command names its step in the result, any in its parameters."""
    if command.get("command_name") != _GIVEN:
        return False
    for place, key in (("command_params", "step"), ("command_result", "deploy_step")):
        named = (command.get(place) or {}).get(key)
        if isinstance(named, Mapping):
            return named.get("step") == step.get("step") and named.get("interface") == step.get("interface")
    return True  # an order that says nothing of its step may be for this one


class Ironic:
    """What is needed of Ironic's own modules. Making one raises when this Ironic lacks something."""

    def __init__(self) -> None:
        from ironic.common import context, states
        from ironic.conductor import base_manager, deployments, task_manager, utils
        from ironic.drivers.modules import agent_base, agent_client

        self.manager_class: Any = base_manager.BaseConductorManager
        self.deploying: str = states.DEPLOYING
        self.transition: str = states.TRANSITION
        self.admin: Callable[[], Any] = context.get_admin_context
        self.acquire: Callable[..., Any] = task_manager.acquire
        self.record: Callable[..., Any] = utils.node_history_record
        self.client: Callable[..., Any] = agent_client.get_client
        self.continue_deploy: Callable[..., Any] = deployments.continue_node_deploy
        for owner, name in (
            (self.manager_class, "_correct_stuck_states"),
            (self.manager_class, "_spawn_worker"),
            (self.manager_class, "iter_nodes"),
            (agent_base.AgentBaseMixin, "process_next_step"),
            (agent_client.AgentClient, "get_commands_status"),
        ):
            if not callable(getattr(owner, name, None)):
                raise AttributeError(f"{owner.__name__} has no {name}")


def install() -> None:
    """Wrap how Ironic treats what it was interrupted at. Raises when this Ironic is made in another way."""
    hook(Ironic())


def hook(ironic: Any) -> None:
    original = ironic.manager_class._correct_stuck_states

    @functools.wraps(original)
    def _correct_stuck_states(self: Any) -> None:
        aside = list(_set_aside(self, ironic))
        original(self)
        for task in aside:
            try:
                self._spawn_worker(_go_on, self, task, ironic)
            except Exception as error:  # no worker is free: as if nothing could be known
                _fail(self, task, ironic, error)

    ironic.manager_class._correct_stuck_states = _correct_stuck_states


def _set_aside(manager: Any, ironic: Any) -> Iterator[Any]:
    """The nodes that may go on, each locked. What goes wrong here leaves a node to Ironic."""
    filters = {"reserved": False, "provision_state": ironic.deploying}
    try:
        found = [uuid for uuid, *_ in manager.iter_nodes(filters=filters)]
    except Exception as error:  # Ironic starts all the same, and does with them what it always does
        LOG.warning("Deployments that were cut off are left to Ironic (%s).", type(error).__name__)
        return
    for uuid in found:
        try:
            task = ironic.acquire(ironic.admin(), uuid, purpose="going on with a deployment")
        except Exception as error:  # one node must not keep the others from going on
            LOG.warning("The deployment of node %s is left to Ironic (%s).", uuid, type(error).__name__)
            continue
        if task.node.provision_state == ironic.deploying and may_go_on(task.node.deploy_step):
            yield task
        else:
            task.release_resources()


def _go_on(manager: Any, task: Any, ironic: Any) -> None:
    """In a worker: ask the agent, and act on what it says."""
    try:
        commands = ironic.client(task).get_commands_status(task.node, retry_connection=False)
        chosen = decide(task.node.deploy_step, commands)
        LOG.warning(
            "Node %s was cut off at the deploy step %s: %s.",
            task.node.uuid,
            task.node.deploy_step["step"],
            chosen.value,
        )
        if chosen is Next.FAIL:
            raise LookupError(chosen.value)
    except Exception as error:  # an agent may fail in any way, and then nothing can be known
        _fail(manager, task, ironic, error)
        return
    try:
        _resume(task, chosen, ironic)
    except Exception as error:  # the edge of a worker: whatever a step of Ironic raises ends here
        if task.node.provision_state == ironic.deploying:  # nothing else would ever look at it
            _fail(manager, task, ironic, error)
            return
        LOG.warning("Node %s went on, and then: %s.", task.node.uuid, type(error).__name__)
    task.release_resources()


def _resume(task: Any, chosen: Next, ironic: Any) -> None:
    """With the lock held all the time: a heartbeat in between would take the same step."""
    if chosen is Next.AGAIN:
        task.node.set_driver_internal_info("skip_current_deploy_step", False)
        task.node.save()
        ironic.continue_deploy(task)
    else:
        task.process_event("wait")
        # As at a heartbeat: it may be minutes until the next one.
        task.driver.deploy.process_next_step(task, "deploy")


def _fail(manager: Any, task: Any, ironic: Any, error: Exception) -> None:
    """What Ironic itself would have done with the node, in its words: the operator knows them for an interruption.

    Raises nothing: it may run while Ironic starts, and one node must not keep the others from being served.
    """
    LOG.warning("Node %s cannot go on (%s).", task.node.uuid, type(error).__name__)
    try:
        words = f"The {ironic.deploying} state can't be resumed by conductor {manager.host}. Moving to fail state."
        ironic.record(task.node, event=words, error=True, event_type=ironic.transition)
        task.process_event("fail")
    except Exception as trouble:  # see above: it raises nothing
        LOG.error("Node %s cannot be made to fail either (%s).", task.node.uuid, type(trouble).__name__)
    finally:
        task.release_resources()
