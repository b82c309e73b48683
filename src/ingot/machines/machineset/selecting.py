"""The selector of a MachineSet: which machines are meant, as a rule and as text. Pure.

An empty selector would mean every machine of the namespace. Nobody means that, so it is refused, as it is where MachineSets come
from.
"""

from __future__ import annotations

from typing import Final

from ingot.api.hostselector import HostSelector, HostSelectorRequirement
from ingot.api.machine import LabelSelector, MachineSet
from ingot.machines.demands import Demands, UnusableSelector, demands_of

_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def members_of(machine_set: MachineSet) -> Demands:
    """What makes a machine one of the set; raises `UnusableSelector` where that cannot be told, or the template does not fit."""
    selector = machine_set.spec.selector
    fits = selection(selector, path="spec.selector")
    if not fits(machine_set.spec.template.metadata.labels):
        raise UnusableSelector(
            f"spec.selector ({text_of(selector)}) does not fit the labels in spec.template.metadata.labels: the machines of "
            "this set would not belong to it. Make one of the two like the other."
        )
    return fits


def selection(selector: LabelSelector, *, path: str) -> Demands:
    """The rule that a selector is; raises `UnusableSelector` for one that is empty or cannot be understood."""
    if is_empty(selector):
        raise UnusableSelector(
            f"{path} is empty, which would mean every machine in the namespace. Name a label there that the template sets."
        )
    for index, requirement in enumerate(selector.match_expressions):
        if requirement.operator not in _OPERATORS:
            raise UnusableSelector(
                f"{path}.matchExpressions[{index}].operator: {requirement.operator!r} is none of {', '.join(_OPERATORS)}."
            )
    return demands_of(
        HostSelector(
            match_labels=selector.match_labels,
            match_expressions=[
                HostSelectorRequirement(key=one.key, operator=_OPERATORS[one.operator], values=one.values)
                for one in selector.match_expressions
            ],
        ),
        path=path,
    )


def is_empty(selector: LabelSelector) -> bool:
    return not selector.match_labels and not selector.match_expressions


def text_of(selector: LabelSelector) -> str:
    """The selector in the words of `kubectl get -l`, for autoscalers, which count by it."""
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    for one in selector.match_expressions:
        values = ",".join(sorted(one.values))
        parts.append(
            {
                "In": f"{one.key} in ({values})",
                "NotIn": f"{one.key} notin ({values})",
                "Exists": one.key,
                "DoesNotExist": f"!{one.key}",
            }.get(one.operator, "")
        )
    return ",".join(part for part in parts if part)
