"""Text to plain values: YAML 1.2 as nmstate reads it, and with it JSON.

Owns what a scalar is (the core schema: a MAC address made of digits is text, `yes` is text) and how much a text may mean: its
size, its depth, the number of its values with every alias written out. Values are made from events, without recursion.
Leaves the meaning of the values to others.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import yaml

from ingot.formats.errors import FormatError, UnsupportedFormat
from ingot.formats.network.telling import shown

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"

LARGEST: Final = 1 << 20
"""No Secret can hold more."""
DEEPEST: Final = 32
MOST: Final = 20_000

_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,39})")
_RADIX: Final = re.compile(r"0x[0-9a-fA-F]{1,32}|0o[0-7]{1,32}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, bool | None]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


def parse_document(text: bytes) -> Value:
    """The values of the one document that the text holds."""
    if len(text) > LARGEST:
        raise UnsupportedFormat(f"the text has {len(text)} bytes; more than {LARGEST} are not read")
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"byte {error.start} is not UTF-8") from None
    builder = _Builder()
    try:
        for event in yaml.parse(decoded, Loader=yaml.CSafeLoader):
            builder.take(event)
    except yaml.YAMLError as error:
        raise FormatError(f"not YAML or JSON: {_problem(error)}") from None
    return builder.whole


@dataclass(slots=True)
class _Open:
    """A list or mapping that has begun."""

    made: list[Value] | dict[str, Value]
    anchor: str | None
    first: int
    key: str | None = None


@dataclass(slots=True)
class _Builder:
    whole: Value = None
    documents: int = 0
    count: int = 0
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[Value, int]] = field(default_factory=dict)

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise FormatError("the text holds more than one YAML document")
            case yaml.ScalarEvent():
                self._scalar(event)
            case yaml.AliasEvent():
                if event.anchor not in self.anchors:
                    raise FormatError(
                        f"{_line(event)}: the alias {shown(event.anchor)} stands for nothing, or holds itself"
                    )
                value, size = self.anchors[event.anchor]
                self._add(value, size, event)
            case yaml.CollectionStartEvent():
                self._open(event)
            case yaml.CollectionEndEvent():
                self._close(event)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if event.tag is not None and event.tag != "!":
            raise UnsupportedFormat(f"{_line(event)}: the tag {shown(event.tag)} is not supported")
        top = self.stack[-1] if self.stack else None
        if top is not None and isinstance(top.made, dict) and top.key is None:
            if event.value in top.made:
                raise FormatError(f"{_line(event)}: {shown(event.value)} is there twice")
            top.key = event.value
            return
        value = _resolved(event.value) if event.implicit[0] else event.value
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)
        self._add(value, 1, event)

    def _open(self, event: yaml.CollectionStartEvent) -> None:
        if event.tag is not None and event.tag != "!":
            raise UnsupportedFormat(f"{_line(event)}: the tag {shown(event.tag)} is not supported")
        made: list[Value] | dict[str, Value] = [] if isinstance(event, yaml.SequenceStartEvent) else {}
        first = self.count
        self._add(made, 1, event)
        if len(self.stack) == DEEPEST:
            raise UnsupportedFormat(f"{_line(event)}: nested more than {DEEPEST} deep")
        self.stack.append(_Open(made, event.anchor, first))

    def _close(self, event: yaml.Event) -> None:
        closed = self.stack.pop()
        if closed.anchor:
            self.anchors[closed.anchor] = (closed.made, self.count - closed.first)

    def _add(self, value: Value, size: int, event: yaml.Event) -> None:
        self.count += size
        if self.count > MOST:
            raise UnsupportedFormat(f"{_line(event)}: more than {MOST} values, with all aliases written out")
        if not self.stack:
            self.whole = value
            return
        top = self.stack[-1]
        if isinstance(top.made, list):
            top.made.append(value)
        elif top.key is None:
            raise FormatError(f"{_line(event)}: a key has to be text")
        else:
            top.made[top.key], top.key = value, None


def _resolved(text: str) -> Value:
    """What a scalar without quotes is."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _RADIX.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def _line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}" if event.start_mark else "somewhere"


def _problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return f"{getattr(error, 'problem', None) or 'it has characters that no text has'}{where}"
