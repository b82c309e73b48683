"""When a host that failed is tried again.

The pause doubles with every failure, from a minute or two to a working day, with jitter so that a rack that failed together
does not come back together. It is a plan against one cause: as soon as what the attempt depended on changes (the host's spec,
a Secret it names), the plan is void and the next attempt is due at once.

Plans live in memory. After a restart of the operator every failed host is tried at once, which is what an operator who
restarts it wants to see.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ingot.api.meta import Key

LONGEST: Final = 9
"""Failures after which the pause does not grow any more: 2⁹ minutes."""

Grounds = tuple[str, ...]
"""What an attempt depended on, in a form that can be compared: generation, versions of Secrets."""


def pause(failures: int, chance: Callable[[], float] = random.random) -> float:
    """Seconds to wait after this many failures in a row: 2ⁿ minutes, less up to a half."""
    return 60.0 * (1 << min(failures, LONGEST)) * (1 - chance() / 2)


@dataclass(frozen=True, slots=True)
class Plan:
    due: float
    grounds: Grounds


class Retries:
    """The plans of all hosts that failed."""

    def __init__(self, clock: Callable[[], float], chance: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._chance = chance
        self._plans: dict[Key, Plan] = {}

    def failed(self, key: Key, *, failures: int, grounds: Grounds) -> float:
        """Plan the next attempt; how many seconds from now it is."""
        wait = pause(failures, self._chance)
        self._plans[key] = Plan(self._clock() + wait, grounds)
        return wait

    def remaining(self, key: Key, *, grounds: Grounds) -> float:
        """Seconds until the next attempt is due; 0 when it is due, or when what it depends on has changed."""
        plan = self._plans.get(key)
        if plan is None or plan.grounds != grounds:
            return 0.0
        return max(0.0, plan.due - self._clock())

    def forget(self, key: Key) -> None:
        self._plans.pop(key, None)
