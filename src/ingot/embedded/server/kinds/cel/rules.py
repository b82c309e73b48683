"""Rules in a schema (`x-kubernetes-validations`), put to objects.

A rule holds for every place its schema describes and where something is; null is nothing. A rule about `oldSelf` is asked
only where something was before, found by the same path, by the same key of a map, or by the keys of a list of type map. A rule
that was broken before is not held against who leaves that place as it was. What all rules of one write cost is limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.cel.costs import Budget, weight
from ingot.embedded.server.kinds.cel.expressions import (
    EvaluationFailed,
    Expression,
    InvalidExpression,
    compiled,
)
from ingot.embedded.server.kinds.cel.syntax import Typed
from ingot.embedded.server.kinds.cel.values import EITHER, Schema, is_map, seen

WORD: Final = "x-kubernetes-validations"
ROOT: Final = "<nil>"
REASONS: Final = {
    "FieldValueDuplicate": "Duplicate",
    "FieldValueForbidden": "Forbidden",
    "FieldValueInvalid": "Invalid",
    "FieldValueRequired": "Required",
}
_BLOCKING: Final = frozenset(
    {"FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
_NOT_CHECKED: Final = cause(
    "Invalid",
    ROOT,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
    shown="null",
)
_NO_FURTHER: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_NOBODY: Final = b""
_LONGEST_MESSAGE: Final = 5 * 1024
# Wraps a rule for which the value before may be missing: to the rule it is an optional, to us a list of one or none.
_OPTIONAL: Final = (
    "cel.bind(oldSelf, size(__old) == 0 ? optional.none() : optional.of(__old[0]), (\n{rule}\n))"
)


class _Exhausted(Exception):
    def __init__(self, told: Cause) -> None:
        super().__init__(told.message)
        self.told = told


class Rule:
    """One rule, at one place of a schema."""

    def __init__(self, written: Mapping[str, Any], schema: Schema, *, root: bool) -> None:
        self.text = str(written.get("rule", ""))
        self.is_optional = bool(written.get("optionalOldSelf"))
        self._written = written
        self._types = {"self": Typed(schema, root), "oldSelf": Typed(schema, root)}

    @cached_property
    def expression(self) -> Expression:
        """Raises `InvalidExpression`."""
        plain = self._compiled(self.text)
        if not self.is_optional or not self.compares:
            return plain
        # What is inside an optional is not looked into.
        return compiled(_OPTIONAL.format(rule=self.text), ("self", "__old"))

    @cached_property
    def compares(self) -> bool:
        """Whether it is about a change: it names `oldSelf`."""
        try:
            compiled(self.text, ("self",))
        except InvalidExpression:
            return True
        return False

    @cached_property
    def message_expression(self) -> Expression | None:
        text = self._written.get("messageExpression")
        return self._compiled(text) if text else None

    def _compiled(self, text: str) -> Expression:
        optional_old = {"self": self._types["self"]} if self.is_optional else self._types
        return compiled(text, ("self", "oldSelf"), optional_old)

    def problem(self, value: Any, before: Sequence[Any], *, type_: str, path: str) -> Cause | None:
        """What is wrong. `before` is a list of one, or of none where nothing was."""
        if self.compares and not self.is_optional and not before:
            return None
        data = {"self": value, "oldSelf": before[0] if before else None, "__old": list(before)}
        try:
            if self.expression.evaluate(self._named(data)) is True:
                return None
            message = self._message(data)
        except (EvaluationFailed, InvalidExpression) as error:
            message = f"{error} evaluating rule: {self.text}"
            return cause("Invalid", path, message, shown=f'"{type_}"')
        kind = REASONS.get(self._written.get("reason") or "", "Invalid")
        where = path + str(self._written.get("fieldPath") or "")
        # Kubernetes says of a duplicate only that it is one.
        return cause(kind, where, "" if kind == "Duplicate" else message, shown=f'"{type_}"')

    def _named(self, data: Mapping[str, Any]) -> dict[str, Any]:
        wrapped = self.is_optional and self.compares
        return {name: data[name] for name in (("self", "__old") if wrapped else ("self", "oldSelf"))}

    def _message(self, data: Mapping[str, Any]) -> str:
        fallback = self._written.get("message") or f"failed rule: {' '.join(self.text.split())}"
        try:
            made = self.message_expression
            told = made.evaluate({name: data[name] for name in ("self", "oldSelf")}) if made else ""
        except (EvaluationFailed, InvalidExpression):
            return fallback
        usable = isinstance(told, str) and told.strip() and "\n" not in told and len(told) <= _LONGEST_MESSAGE
        return str(told) if usable else fallback


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a schema that has rules, or has places with rules inside."""

    schema: Schema
    rules: tuple[Rule, ...]
    properties: Mapping[str, Place]
    items: Place | None
    extra: Place | None
    keys: tuple[str, ...]
    root: bool

    def problems(self, value: Any, before: Sequence[Any], path: str, budget: Budget) -> Iterator[Cause]:
        """What is wrong. Raises `_Exhausted` with the last of it when the budget is spent."""
        if value is None:
            return
        old = [found for found in before if found is not None]
        if self.rules:
            yield from self._own(value, old, path or ROOT, budget)
        if isinstance(value, dict):
            for name, place, step in self._fields(value):
                there = [found[name] for found in old if isinstance(found, dict) and name in found]
                deeper = f"{path}{step}" if path else step.lstrip(".")
                yield from place.problems(value[name], there, deeper, budget)
        elif isinstance(value, list) and self.items is not None:
            earlier = self._by_identity(old)
            for index, item in enumerate(value):
                same = earlier.get(self._identity(item), [])
                yield from self.items.problems(item, same, f"{path}[{index}]", budget)

    def _own(self, value: Any, old: Sequence[Any], path: str, budget: Budget) -> Iterator[Cause]:
        unchanged = bool(old) and value == old[0]
        asked = [rule for rule in self.rules if rule.compares or not unchanged]
        if not asked:
            return
        type_ = str(self.schema.get("type") or ("" if not self.schema.get(EITHER) else "integer or string"))
        shown = seen(value, self.schema, root=self.root)
        if not budget.allows(len(asked), weight(shown)):
            raise _Exhausted(cause("Invalid", path, _NO_FURTHER, shown=f'"{type_}"'))
        shown_before = [seen(found, self.schema, root=self.root) for found in old]
        for rule in asked:
            if problem := rule.problem(shown, shown_before, type_=type_, path=path):
                yield problem

    def _fields(self, value: Document) -> Iterator[tuple[str, Place, str]]:
        for name in value:
            if (place := self.properties.get(name)) is not None:
                yield name, place, f".{name}"
            elif self.extra is not None:
                yield name, self.extra, f"[{name}]"

    def _by_identity(self, old: Sequence[Any]) -> Mapping[bytes, list[Any]]:
        """The elements of the list before, by their keys. Elements of other lists have no identity."""
        found: dict[bytes, list[Any]] = {}
        for elements in old if self.keys else ():
            for item in elements if isinstance(elements, list) else ():
                found.setdefault(self._identity(item), [item])
        found.pop(_NOBODY, None)
        return found

    def _identity(self, item: Any) -> bytes:
        if not self.keys or not isinstance(item, dict):
            return _NOBODY
        return encode([item.get(key) for key in self.keys])


def place_of(schema: Schema, *, root: bool = False) -> Place | None:
    """The rules of a schema; None if there are none in it."""
    properties = {
        name: place
        for name, child in (schema.get("properties") or {}).items()
        if (place := place_of(child)) is not None
    }
    items = place_of(schema["items"]) if isinstance(schema.get("items"), Mapping) else None
    extra = place_of(schema["additionalProperties"]) if is_map(schema) else None
    written = schema.get(WORD) or ()
    if not (written or properties or items or extra):
        return None
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    return Place(
        schema=schema,
        rules=tuple(Rule(rule, schema, root=root) for rule in written),
        properties=properties,
        items=items,
        extra=extra,
        keys=tuple(keys) if schema.get("x-kubernetes-list-type") == "map" else (),
        root=root,
    )


def broken(place: Place, new: Document, old: Document | None, known: Sequence[Cause]) -> list[Cause]:
    """The rules that an object breaks. `known` is what is wrong with it already: rules are not asked about nonsense."""
    if any(found.reason in _BLOCKING for found in known):
        return [_NOT_CHECKED]
    found: list[Cause] = []
    try:
        # What was found until the budget was spent is told, too.
        found.extend(place.problems(new, [] if old is None else [old], "", Budget()))
    except _Exhausted as end:
        found.append(end.told)
    return found
