"""What is wrong with the rules of a definition: found when the definition is written, not when the first object is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ingot.embedded.server.documents import encode
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.cel.expressions import InvalidExpression
from ingot.embedded.server.kinds.cel.rules import REASONS, WORD, Rule
from ingot.embedded.server.kinds.cel.values import Schema, is_map

# The order in which Kubernetes shows a rule that it refuses, and what stands for what is absent.
_SHOWN: Final = {
    "rule": "",
    "message": "",
    "messageExpression": "",
    "reason": None,
    "fieldPath": "",
    "optionalOldSelf": None,
}
_STEP: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_.-]*?)(?=\.|\[|$)|\['([^']+)'\]")
_LONGEST_MESSAGE: Final = 2048


def problems(schema: Schema, where: str, *, root: bool = True) -> Iterator[Cause]:
    """What is wrong with the rules of a schema and of all inside it."""
    for index, written in enumerate(schema.get(WORD) or ()):
        yield from _rule(written, schema, f"{where}.{WORD}[{index}]", root=root)
    for name, child in (schema.get("properties") or {}).items():
        yield from problems(child, f"{where}.properties[{name}]", root=False)
    if isinstance(schema.get("items"), Mapping):
        yield from problems(schema["items"], f"{where}.items", root=False)
    if is_map(schema):
        yield from problems(schema["additionalProperties"], f"{where}.additionalProperties", root=False)


def _rule(written: Mapping[str, Any], schema: Schema, where: str, *, root: bool) -> Iterator[Cause]:
    if not str(written.get("rule") or "").strip():
        yield cause("Required", f"{where}.rule", "rule is not specified")
        return
    message = written.get("message") or ""
    if "\n" in message.strip() or "\r" in message.strip():
        yield cause("Invalid", f"{where}.message", "must not contain line breaks", shown=_json(message))
    elif message and not message.strip():
        words = "message must be non-empty if specified"
        yield cause("Invalid", f"{where}.message", words, shown=_json(message))
    elif len(message) > _LONGEST_MESSAGE:
        yield Cause(
            f"{where}.message",
            "FieldValueTooLong",
            f"Too long: may not be more than {_LONGEST_MESSAGE} bytes",
        )
    if (reason := written.get("reason")) is not None and reason not in REASONS:
        supported = ", ".join(_json(known) for known in REASONS)
        yield cause("NotSupported", f"{where}.reason", f"supported values: {supported}", shown=_json(reason))
    if (path := written.get("fieldPath")) and not _leads_somewhere(path, schema):
        yield cause("Invalid", f"{where}.fieldPath", "must be a valid path", shown=_json(path))
    yield from _expressions(written, schema, where, root=root)


def _expressions(written: Mapping[str, Any], schema: Schema, where: str, *, root: bool) -> Iterator[Cause]:
    rule = Rule(written, schema, root=root)
    shown = _json({name[0].upper() + name[1:]: written.get(name, absent) for name, absent in _SHOWN.items()})
    try:
        if rule.expression.type not in ("bool", "dyn"):
            words = "cel expression must evaluate to a bool"
            yield cause("Invalid", f"{where}.rule", words, shown=shown)
    except InvalidExpression as error:
        yield cause("Invalid", f"{where}.rule", str(error), shown=shown)
    else:
        if rule.is_optional and not rule.compares:
            words = "may not be set if oldSelf is not used in rule"
            yield cause("Invalid", f"{where}.optionalOldSelf", words, shown="true")
    try:
        made = rule.message_expression
        if made is not None and made.type not in ("string", "dyn"):
            words = "messageExpression must evaluate to a string"
            yield cause("Invalid", f"{where}.messageExpression", words, shown=shown)
    except InvalidExpression as error:
        yield cause("Invalid", f"{where}.messageExpression", f"messageExpression {error}", shown=shown)


def _leads_somewhere(path: str, schema: Schema) -> bool:
    """Whether the fields that a path names are in the schema. Elements of lists cannot be named."""
    at, found = 0, schema
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return False
        name = step[1] or step[2]
        properties = found.get("properties") or {}
        if name in properties:
            found = properties[name]
        elif is_map(found):
            found = found["additionalProperties"]
        else:
            return False
        at = step.end()
    return True


def _json(value: Any) -> str:
    return encode(value).decode()
