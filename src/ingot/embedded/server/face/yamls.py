"""YAML as Kubernetes reads it: the words of YAML 1.1, and what is said twice is noticed.

A document is made from the parser's events, so that it costs no more than its size: aliases are counted with all that
they stand for, and nesting has a limit. Keys become text, because the result is JSON.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import yaml

_DEPTH_LIMIT: Final = 100
_ALIASED_LIMIT: Final = 100_000
_TRUE: Final = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE: Final = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER: Final = re.compile(r"[-+]?(0b[01]+|0x[0-9a-fA-F]+|0o[0-7]+|0[0-7]*|[1-9][0-9]*)")
# With a sign and a prefix, in base two.
_LONGEST_INTEGER: Final = 70
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBERS: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_TEXT_TAG: Final = "tag:yaml.org,2002:str"


class NotYaml(ValueError):
    """The bytes are not YAML that can be read as JSON; the message says where."""


@dataclass(frozen=True, slots=True)
class Read:
    value: Any
    # What was said twice: `line 3: key "data" already set in map`.
    repeated: list[str]


def read(body: bytes) -> Read:
    """The one document in these bytes. Raises NotYaml."""
    try:
        return _Reader(yaml.parse(body, Loader=yaml.CSafeLoader)).document()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise NotYaml(f"yaml: line {line}: {error.problem or 'cannot be read'}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise NotYaml("yaml: the bytes are no text") from None


def written(body: bytes) -> bytes:
    """A JSON document as YAML. One that is nested very deeply stays as it is: JSON is YAML too."""
    value = msgspec.json.decode(body)
    try:
        text: bytes = yaml.dump(value, Dumper=_Writer, encoding="utf-8", allow_unicode=True)
    except RecursionError:
        return body
    return text


class _Writer(yaml.CSafeDumper):
    """Quotes what a reader such as ours would take for something else than text: y, 08, 1e3."""


def _text_node(writer: _Writer, text: str) -> yaml.ScalarNode:
    style = '"' if _is_more_than_text(text) else None
    return writer.represent_scalar(_TEXT_TAG, text, style=style)


_Writer.add_representer(str, _text_node)


def _is_more_than_text(text: str) -> bool:
    return (
        text in _TRUE | _FALSE | _NULL
        or _NO_NUMBERS.fullmatch(text) is not None
        or _number(text.replace("_", "")) is not None
    )


@dataclass(slots=True)
class _Reader:
    events: Iterator[Any]
    repeated: list[str] = field(default_factory=list)
    # Values by anchor, with the number of nodes they consist of.
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    nodes: int = 0
    aliased: int = 0

    def document(self) -> Read:
        value: Any = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                value = self._node(next(self.events), 0)
                break
        return Read(value, self.repeated)

    def _node(self, event: Any, depth: int) -> Any:
        if depth > _DEPTH_LIMIT:
            raise NotYaml(f"yaml: line {event.start_mark.line + 1}: exceeded max depth of {_DEPTH_LIMIT}")
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event)
        before = self.nodes
        self.nodes += 1
        value: Any
        if isinstance(event, yaml.MappingStartEvent):
            value = self._mapping(depth)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = []
            while not isinstance(item := next(self.events), yaml.SequenceEndEvent):
                value.append(self._node(item, depth + 1))
        else:
            value = _scalar(event)
        if event.anchor:
            self.anchors[event.anchor] = (value, self.nodes - before)
        return value

    def _mapping(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        inherited: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            line = event.start_mark.line + 1
            key = self._node(event, depth + 1)
            value = self._node(next(self.events), depth + 1)
            if key == "<<" and not event.style:
                inherited |= _merged(value, line)
                continue
            name = _key(key, line)
            if name in made:
                self.repeated.append(f'line {line}: key "{name}" already set in map')
            made[name] = value
        return {**inherited, **made} if inherited else made

    def _aliased(self, event: Any) -> Any:
        found = self.anchors.get(event.anchor)
        if found is None:
            raise NotYaml(
                f"yaml: line {event.start_mark.line + 1}: unknown anchor '{event.anchor}' referenced"
            )
        value, size = found
        self.nodes += size
        self.aliased += size
        if self.aliased > _ALIASED_LIMIT:
            raise NotYaml("yaml: document contains excessive aliasing")
        return copy.deepcopy(value)


def _merged(value: Any, line: int) -> dict[str, Any]:
    parts = value if isinstance(value, list) else [value]
    made: dict[str, Any] = {}
    for part in reversed(parts):
        if not isinstance(part, dict):
            raise NotYaml(f"yaml: line {line}: map merge requires map or sequence of maps as the value")
        made |= part
    return made


def _key(key: Any, line: int) -> str:
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int() | float():
            return str(key)
        case None:
            return "null"
        case _:
            raise NotYaml(f"yaml: line {line}: a key of a map is not plain")


def _scalar(event: Any) -> Any:
    text: str = event.value
    # What is quoted is text unless it is said to be something else, and what is said to be text is text.
    is_text = event.tag in ("!", _TEXT_TAG) or (event.tag is None and event.style)
    return text if is_text else _plain(text, event)


def _plain(text: str, event: Any) -> Any:
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text[0] != "_" and (number := _number(text.replace("_", ""))) is not None:
        return number
    if _NO_NUMBERS.fullmatch(text):
        raise NotYaml(f"yaml: line {event.start_mark.line + 1}: {text} cannot be said in JSON")
    return text


def _number(text: str) -> int | float | None:
    """None for what is no number, or fits in none: that is text."""
    if (found := _INTEGER.fullmatch(text)) and len(text) < _LONGEST_INTEGER:
        digits = found[1]
        if digits.startswith("0") and digits[1:].isdigit():
            digits = f"0o{digits[1:]}"
        whole = -int(digits, 0) if text.startswith("-") else int(digits, 0)
        if -(2**63) <= whole < 2**64:
            return whole
    if not _FLOAT.fullmatch(text):
        return None
    # JSON numbers beyond 64 bits are floats to everybody who reads them.
    number = float(text)
    if math.isinf(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
