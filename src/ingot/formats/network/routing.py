"""Routes and rules as a keyfile has them.

Owns their text and, because they are numbered, their order: that of nmstate for routes, the given one for rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import Route, Rule
from ingot.formats.network.values import written, written_network

_USUAL_METRIC: Final = {4: 0, 6: 1024}
_ANYWHERE: Final = {4: "0.0.0.0/0", 6: "::/0"}
_KINDS: Final = {"blackhole": 6, "unreachable": 7, "prohibit": 8}
"""The kernel's numbers of the kinds of routes, by which they are sorted."""


def route_settings(routes: Iterable[Route]) -> dict[str, Setting]:
    """The settings of routes of one address family; what was said twice is there once."""
    once = {_order(route): route for route in routes}
    made: dict[str, Setting] = {}
    for number, key in enumerate(sorted(once)):
        made[f"route{number}"], made[f"route{number}_options"] = _route(once[key])
    return made


def rule_settings(rules: Iterable[Rule]) -> dict[str, Setting]:
    return {f"routing-rule{number}": _rule(rule) for number, rule in enumerate(rules)}


def _order(route: Route) -> tuple[object, ...]:
    """What nmstate sorts by, and the metric last."""
    options, gateway = route.options, route.gateway
    words = (written_network(route.destination), written(gateway) if gateway else "", options.get("src", ""))
    numbers = (options.get(name, 0) for name in ("cwnd", "initcwnd", "initrwnd", "mtu", "weight"))
    kind = options.get("type")
    number = _KINDS[kind] if isinstance(kind, str) else 0
    last = (number, options.get("advmss", 0), _metric(route))
    return (options.get("quickack", False), *words, route.table, *numbers, *last)


def _metric(route: Route) -> int:
    return _USUAL_METRIC[route.destination.version] if route.metric is None else route.metric


def _route(route: Route) -> tuple[str, str]:
    hop = written(route.gateway) if route.gateway else ""
    options = {"table": route.table, **route.options}
    text = ",".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in options.items()
    )
    return f"{written_network(route.destination)},{hop},{_metric(route)}", text


def _rule(rule: Rule) -> str:
    words = [f"priority {rule.priority}"]
    if rule.target:
        words.append(f"to {written_network(rule.target)}")
    if rule.source:
        words.append(f"from {written_network(rule.source)}")
    elif not rule.target:
        words.append(f"from {_ANYWHERE[rule.version]}")
    if rule.interface:
        words.append(f"iif {rule.interface}")
    if rule.suppress is not None:
        words.append(f"suppress_prefixlength {rule.suppress}")
    if rule.action:
        words.append(f"type {rule.action}")
    words.append(f"table {rule.table}")
    if rule.mark is not None:
        words.append(f"fwmark {rule.mark}" + (f"/{rule.mask}" if rule.mask is not None else ""))
    return " ".join(words)
