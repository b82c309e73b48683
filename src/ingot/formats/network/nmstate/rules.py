"""The routing rules of a desired state.

A rule without a priority gets the next one that is free behind all that are given, from 30000 on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.model import HIGHEST, MAIN_TABLE, Rule
from ingot.formats.network.reading import Fields
from ingot.formats.network.values import Network, ip_network

_FIRST_PRIORITY: Final = 30000
_UNSET: Final = -1
_STATES: Final = {"absent": "absent"}
_FAMILIES: Final = {"ipv4": "4", "ipv6": "6"}
_ACTIONS: Final = {word: word for word in ("blackhole", "unreachable", "prohibit")}


def read_rules(config: Iterable[Fields]) -> tuple[Rule, ...]:
    rules = [rule for fields in config if (rule := _rule(fields))]
    highest = max([_FIRST_PRIORITY - 1, *(rule.priority for rule in rules)])
    numbered: list[Rule] = []
    for rule in rules:
        if rule.priority == _UNSET:
            highest += 1
        numbered.append(replace(rule, priority=highest) if rule.priority == _UNSET else rule)
    if highest > HIGHEST:
        raise FormatError("route-rules.config: there is no priority behind the highest one that is given")
    return tuple(numbered)


def _rule(fields: Fields) -> Rule | None:
    if fields.choice("state", _STATES):
        return None
    source, target = _network(fields, "ip-from"), _network(fields, "ip-to")
    family = fields.choice("family", _FAMILIES)
    versions = {int(family)} if family else set[int]()
    versions |= {network.version for network in (source, target) if network}
    if len(versions) != 1:
        raise FormatError(
            f"{fields.path}: ip-from, ip-to or family has to say which one address family the rule is for"
        )
    mark, mask = fields.number("fwmark", 0, HIGHEST), fields.number("fwmask", 0, HIGHEST)
    if mask is not None and mark is None:
        raise FormatError(f"{fields.at('fwmask')}: needs a fwmark")
    priority = fields.number("priority", _UNSET, HIGHEST)
    rule = Rule(
        path=fields.path,
        version=versions.pop(),
        priority=_UNSET if priority is None else priority,
        source=source,
        target=target,
        table=fields.number("route-table", 0, HIGHEST) or MAIN_TABLE,
        interface=fields.text("iif"),
        suppress=_suppressed(fields),
        action=fields.choice("action", _ACTIONS),
        mark=mark,
        mask=mask,
    )
    fields.done()
    return rule


def _suppressed(fields: Fields) -> int | None:
    names = [name for name in ("suppress-prefix-length", "suppress_prefixlength") if name in fields]
    if len(names) > 1:
        raise FormatError(f"{fields.at(names[1])}: is another name of {names[0]}, which is there too")
    return fields.number(names[0], 0, 128) if names else None


def _network(fields: Fields, key: str) -> Network | None:
    text = fields.text(key)
    return ip_network(text, fields.at(key)) if text else None
