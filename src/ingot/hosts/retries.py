"""When a host that failed is tried again.

The pause doubles with every failure, from a minute or two to a working day, with jitter so that a rack that failed together
does not come back together. It is a plan against one cause: as soon as what the attempt depended on changes (the host's
spec, an annotation that it obeys, a Secret that it names, a companion), the plan is void, the next attempt is due at once,
and the pauses begin anew from the shortest. A host that is being deleted meanwhile is tried at once, but its failures go on
counting: after some of them it is let go.

Plans live in memory; the time of the next attempt is also in the host's status, for people. After a restart of the operator
every failed host is tried at once, which is what whoever restarts it wants to see.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.meta import Key, ObjectMeta, PartialObjectMetadata
from ingot.hosts.beside.companions import Companions
from ingot.hosts.secrets.marks import secret_keys
from ingot.kube import Informer

LONGEST: Final = 9
"""Failures after which the pause does not grow any more: 2⁹ minutes."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What an attempt depended on, in a form that can be compared."""

    causes: tuple[str, ...]
    deleting: bool = False


def grounds(host: BareMetalHost, secrets: Informer[PartialObjectMetadata], companions: Companions) -> Grounds:
    meta = host.metadata
    causes = [str(meta.generation)]
    causes += [f"{key}={value}" for key, value in sorted(meta.annotations.items()) if _is_obeyed(key)]
    for key in secret_keys(host):
        found = secrets.get(key)
        causes.append(f"{key}@{found.metadata.resource_version if found is not None else 'absent'}")
    for informer in companions.written_by_users():
        beside = informer.get(host.key)
        causes.append(
            f"{informer.name}@{_what_was_asked(beside.metadata) if beside is not None else 'absent'}"
        )
    return Grounds(tuple(causes), deleting=meta.deletion_timestamp is not None)


def _what_was_asked(meta: ObjectMeta) -> str:
    return f"{meta.uid}/{meta.generation}{'/going' if meta.deletion_timestamp is not None else ''}"


def _is_obeyed(annotation: str) -> bool:
    domain = annotation.partition("/")[0]
    return domain == "metal3.io" or domain.endswith(".metal3.io")


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

    def pause(self, failures: int) -> float:
        return pause(failures, self._chance)

    def failed(self, key: Key, wait: float, *, grounds: Grounds) -> None:
        """Plan the next attempt, so many seconds from now."""
        self._plans[key] = Plan(self._clock() + wait, grounds)

    def remaining(self, key: Key, *, grounds: Grounds) -> float:
        """Seconds until the next attempt is due; 0 when it is due, or when what it depends on has changed."""
        plan = self._plans.get(key)
        if plan is None or plan.grounds != grounds:
            return 0.0
        return max(0.0, plan.due - self._clock())

    def starts_over(self, key: Key, *, grounds: Grounds) -> bool:
        """Whether the earlier failures have nothing to say about the next attempt."""
        plan = self._plans.get(key)
        if plan is None or plan.grounds.deleting != grounds.deleting:
            return False
        return plan.grounds.causes != grounds.causes

    def overtaken(self, key: Key) -> None:
        """Something changed while the attempt was under way, and it may not have seen that: its plan is void."""
        if (plan := self._plans.get(key)) is not None:
            self._plans[key] = replace(plan, grounds=replace(plan.grounds, causes=()))

    def forget(self, key: Key) -> None:
        self._plans.pop(key, None)
