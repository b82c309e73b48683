"""Work in steps, a cleaning or a deployment, as `cut_off` has it go on.

When all steps are done, and that was noted (`over`), it is ended. At a step of the agent, the agent is asked how far it came
(`agent_record`). Behind a step of a BMC that was noted to be over (`unbroken_updates`), it goes on. Anything else is left to
Ironic.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from ingot_ironic import over, unbroken_updates
from ingot_ironic.agent_record import Commands, Next, decide, is_at, resume

LOG: Final = logging.getLogger(__name__)


class Steps:
    """A `cut_off.Flow`."""

    def __init__(
        self,
        kind: str,
        state: str,
        agents: Any,
        *,
        noted_as: str,
        go_on: Callable[[Any], None],
        end: Callable[[Any, Mapping[str, Any]], None],
        without_agent: frozenset[str] = frozenset(),
        choose: Callable[[Mapping[str, Any], Commands], Next] | None = None,
    ) -> None:
        """`noted_as`: where it is noted that all is over, and `end` is told the note. `without_agent`: steps that the agent knows
        nothing of. `choose`: what its commands mean for a step."""
        self.state = state
        self._kind, self._agents, self._noted_as = kind, agents, noted_as
        self._continue, self._end = go_on, end
        self._without_agent = without_agent
        self._choose = choose or functools.partial(decide, kind)

    def may_go_on(self, node: Any) -> bool:
        step = self._step(node)
        known = is_at(self._kind, node, step) and step["step"] not in self._without_agent
        return known or self._over(node) is not None or self._is_behind(node)

    def go_on(self, task: Any) -> None:
        node = task.node
        if (noted := self._over(node)) is not None:
            LOG.warning(
                "Node %s was cut off when all its %s steps were done: that is ended now.",
                node.uuid,
                self._kind,
            )
            self._end(task, noted)
            return
        if self._is_behind(node):
            LOG.warning(
                "Node %s was cut off behind a %s step: it goes on with the next.", node.uuid, self._kind
            )
            self._continue(task)
            return
        step = self._step(node)
        resume(self._kind, task, step, self._choose(step, self._agents.commands(task)), self._continue)

    def _step(self, node: Any) -> Mapping[str, Any]:
        step: Mapping[str, Any] = getattr(node, f"{self._kind}_step")
        return step

    def _is_behind(self, node: Any) -> bool:
        return bool(self._step(node)) and unbroken_updates.is_over(node, self._kind)

    def _over(self, node: Any) -> Mapping[str, Any] | None:
        return over.noted(node, self._noted_as, self._step(node))
