"""Label and field selectors: which objects a list or a watch is about.

Owns the grammar (`a=b`, `a!=b`, `a in (x,y)`, `a notin (x)`, `a`, `!a`, `a>1`, `a<1` for labels; `=`, `==`, `!=` for
fields) and the decision. Like Kubernetes, a negative requirement also selects objects that lack the label.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ingot.embedded.server.errors import bad_request
from ingot.embedded.server.kinds.names import label_key_problem, label_value_problem


class Selectable(NamedTuple):
    """What a selector can see of an object."""

    labels: Mapping[str, str]
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, found: Mapping[str, str]) -> bool:
        value = found.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        if value is None or not re.fullmatch(r"-?\d+", value):
            return False
        (bound,) = self.values
        return int(value) > int(bound) if self.operator == ">" else int(value) < int(bound)


@dataclass(frozen=True, slots=True)
class Selector:
    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    @property
    def everything(self) -> bool:
        return not self.labels and not self.fields

    def matches(self, found: Selectable) -> bool:
        return all(requirement.holds(found.labels) for requirement in self.labels) and all(
            requirement.holds(found.fields) for requirement in self.fields
        )

    def name(self) -> str | None:
        """The one name this selector asks for, if it asks for one."""
        for requirement in self.fields:
            if requirement.key == "metadata.name" and requirement.operator == "in":
                (name,) = requirement.values
                return name
        return None


EVERYTHING: Final = Selector()


def parse(labels: str, fields: str, *, known_fields: frozenset[str]) -> Selector:
    return Selector(
        tuple(_label(term) for term in _terms(labels)),
        tuple(_field(term, known_fields) for term in _terms(fields) if term),
    )


_SET: Final = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_BINARY: Final = re.compile(r"(?P<key>[^\s=!<>()]+)\s*(?P<operator>==|!=|=|>|<)\s*(?P<value>[^\s=!<>()]*)")
_PRESENCE: Final = re.compile(r"(?P<absent>!?)\s*(?P<key>[^\s=!<>()]+)")


def _terms(text: str) -> list[str]:
    """The parts between commas that stand outside parentheses."""
    terms, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
        elif character == "," and depth == 0:
            terms.append(text[start:position])
            start = position + 1
    terms.append(text[start:])
    return [term.strip() for term in terms] if text.strip() else []


def _label(term: str) -> Requirement:
    if found := _SET.fullmatch(term):
        values = frozenset(value.strip() for value in found["values"].split(","))
        requirement = Requirement(found["key"], found["operator"], values)
    elif found := _BINARY.fullmatch(term):
        requirement = _compared(found["key"], found["operator"], found["value"])
    elif found := _PRESENCE.fullmatch(term):
        requirement = Requirement(found["key"], "absent" if found["absent"] else "exists")
    else:
        raise bad_request(f'unable to parse requirement: "{term}" is not a label selector')
    problem = label_key_problem(requirement.key) or next(
        (problem for value in requirement.values if (problem := label_value_problem(value))), ""
    )
    if problem:
        raise bad_request(f'unable to parse requirement: "{term}": {problem}')
    if requirement.operator in ("<", ">") and not re.fullmatch(r"-?\d+", next(iter(requirement.values))):
        raise bad_request(
            f'unable to parse requirement: "{term}": the value to compare with must be an integer'
        )
    return requirement


def _compared(key: str, operator: str, value: str) -> Requirement:
    words = {"=": "in", "==": "in", "!=": "notin"}
    return Requirement(key, words.get(operator, operator), frozenset({value}))


def _field(term: str, known: frozenset[str]) -> Requirement:
    key, operator, value = _split_field(term)
    if not operator:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    if key not in known:
        raise bad_request(
            f'field label not supported: "{key}" (this kind can be selected by {", ".join(sorted(known))})'
        )
    return Requirement(key, "notin" if operator == "!=" else "in", frozenset({value}))


def _split_field(term: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"(?P<key>[^=!]+)(?P<operator>!=|==|=)(?P<value>(?:[^\\=]|\\.)*)", term)
    if not found:
        return term, "", ""
    return found["key"].strip(), found["operator"], re.sub(r"\\(.)", r"\1", found["value"].strip())
