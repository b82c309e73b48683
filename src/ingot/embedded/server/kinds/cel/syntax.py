"""The parsed form of an expression, read against a schema.

The library hands out what it parsed as a message of protocol buffers. Two things need it that the library does not do, because
it takes `self` for something whose type is not known: a field that the schema does not have is found when the rule is written,
not when it is evaluated; and a field that holds a time, which is a text in JSON, becomes a time where it is used. A third is what
an expression searches inside of a loop, because that can take long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from ingot.embedded.server.kinds.cel.costs import Searches
from ingot.embedded.server.kinds.cel.values import EITHER, TIMES, Schema, escaped, fields, is_map

Wire = list[tuple[int, "int | bytes"]]
Types = Mapping[str, "Typed | None"]

# The numbers that fields have in the messages.
_ANY_VALUE: Final = 2
_PARSED_EXPR: Final = 2
_ID, _IDENT, _SELECT, _CALL, _LIST, _MAP, _COMPREHENSION = 2, 4, 5, 6, 7, 8, 9
_OPERAND, _FIELD, _TEST_ONLY = 1, 2, 3
_TARGET, _FUNCTION, _ARGUMENT = 1, 2, 3
_ITER_VAR, _ITER_RANGE, _ACCU_VAR, _ACCU_INIT = 1, 2, 3, 4
_KEY_AND_VALUE: Final = (3, 4)
# What takes the longer, the longer the list or the text is that it is given.
_IN: Final = "@in"
_OF_LISTS: Final = frozenset(
    (
        *("indexOf", "isSorted", "lastIndexOf", "max", "min", "sets.contains", "sets.equivalent"),
        *("sets.intersects", "sum"),
    )
)
_OF_TEXTS: Final = frozenset(
    (
        *("contains", "endsWith", "format", "indexOf", "join", "lastIndexOf", "lowerAscii", "matches"),
        *("replace", "reverse", "size", "split", "startsWith", "strings.quote", "substring", "trim"),
        "upperAscii",
    )
)
# Numbers of our own nodes start where no parser gets to.
_OURS: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Typed:
    """Something whose schema is known. Of the whole object more is known than its schema says."""

    schema: Schema
    root: bool = False


@dataclass(slots=True)
class Reading:
    """What came out of reading an expression: the rewritten form, the fields that are not there, what loops search."""

    changed: bool = False
    missing: list[str] = field(default_factory=list)
    _next: int = _OURS
    searches: Searches = field(default_factory=Searches)
    # The variables of the loops around.
    _loops: list[str] = field(default_factory=list)

    def read(self, parsed: bytes, types: Types) -> bytes:
        """The expression with times made of texts. `types` says what the variables are; None for what nobody knows."""
        message = _decoded(parsed)
        value = _decoded(_bytes(message, _ANY_VALUE))
        expression, _ = self._expression(_bytes(value, _PARSED_EXPR), types)
        return _encoded(_replaced(message, _ANY_VALUE, _encoded(_replaced(value, _PARSED_EXPR, expression))))

    def _expression(self, data: bytes, types: Types) -> tuple[bytes, Typed | None]:
        message = _decoded(data)
        for number, value in message:
            if not isinstance(value, bytes):
                continue
            if number == _IDENT:
                return self._timed(data, types.get(_text(_decoded(value), 1)))
            if number == _SELECT:
                return self._select(message, _decoded(value), types)
            if number == _CALL:
                return self._call(message, _decoded(value), types)
            if number in (_LIST, _MAP):
                entries = 1 if number == _LIST else 2
                return self._collection(message, number, _decoded(value), types, entries=entries)
            if number == _COMPREHENSION:
                return self._comprehension(message, _decoded(value), types)
        return data, None

    def _collection(
        self, message: Wire, number: int, parts: Wire, types: Types, *, entries: int
    ) -> tuple[bytes, Typed | None]:
        """A list, whose elements are expressions, or a map, whose entries hold some."""
        made: Wire = []
        for part, value in parts:
            if part != entries or not isinstance(value, bytes):
                made.append((part, value))
            elif number == _LIST:
                made.append((part, self._expression(value, types)[0]))
            else:
                made.append((part, self._entry(value, types)))
        return _encoded(_replaced(message, number, _encoded(made))), None

    def _entry(self, data: bytes, types: Types) -> bytes:
        made: Wire = [
            (part, self._expression(value, types)[0])
            if part in _KEY_AND_VALUE and isinstance(value, bytes)
            else (part, value)
            for part, value in _decoded(data)
        ]
        return _encoded(made)

    def _select(self, message: Wire, select: Wire, types: Types) -> tuple[bytes, Typed | None]:
        operand, known = self._expression(_bytes(select, _OPERAND), types)
        name = _text(select, _FIELD)
        found = self._member(known, name)
        made = _encoded(_replaced(message, _SELECT, _encoded(_replaced(select, _OPERAND, operand))))
        if any(number == _TEST_ONLY and value for number, value in select):
            return made, None
        return self._timed(made, found)

    def _call(self, message: Wire, call: Wire, types: Types) -> tuple[bytes, Typed | None]:
        if self._loops:
            self._notice_search(call)
        made: Wire = []
        known: list[Typed | None] = []
        for number, value in call:
            if number in (_TARGET, _ARGUMENT) and isinstance(value, bytes):
                inner, type_ = self._expression(value, types)
                known.append(type_)
                made.append((number, inner))
            else:
                made.append((number, value))
        data = _encoded(_replaced(message, _CALL, _encoded(made)))
        if _text(call, _FUNCTION) == "_[_]" and known and known[0] is not None:
            return self._timed(data, _element(known[0].schema))
        return data, None

    def _notice_search(self, call: Wire) -> None:
        """What a loop searches in every round. What it goes round itself is searched once, piece by piece."""
        function = _text(call, _FUNCTION)
        if function == _IN:
            # A list that is written out in the expression is short.
            searched = [value for number, value in call if number == _ARGUMENT and isinstance(value, bytes)][
                -1
            ]
            if not _bytes(_decoded(searched), _LIST) and not self._is_a_piece(searched):
                self.searches.lists = max(self.searches.lists, len(self._loops))
        elif function in _OF_TEXTS or function in _OF_LISTS:
            searched = _bytes(call, _TARGET) or _bytes(call, _ARGUMENT)
            if self._is_a_piece(searched):
                return
            if function in _OF_TEXTS:
                self.searches.texts = max(self.searches.texts, len(self._loops))
            if function in _OF_LISTS:
                self.searches.handed_over = max(self.searches.handed_over, len(self._loops))

    def _is_a_piece(self, expression: bytes) -> bool:
        return len(self._loops) == 1 and _root(expression) == self._loops[0]

    def _comprehension(self, message: Wire, loop: Wire, types: Types) -> tuple[bytes, Typed | None]:
        ranged, known = self._expression(_bytes(loop, _ITER_RANGE), types)
        element = None
        if known is not None and not is_map(known.schema):
            element = _element(known.schema)
        inner = {**types, _text(loop, _ITER_VAR): element, _text(loop, _ACCU_VAR): None}
        # What is only given a name (`cel.bind`) goes round no list.
        goes_round = not _is_empty_list(_bytes(loop, _ITER_RANGE))
        if goes_round:
            self._loops.append(_text(loop, _ITER_VAR))
        made: Wire = []
        for number, value in loop:
            if not isinstance(value, bytes) or number in (_ITER_VAR, _ACCU_VAR):
                made.append((number, value))
            elif number == _ITER_RANGE:
                made.append((number, ranged))
            else:
                scope = types if number == _ACCU_INIT else inner
                made.append((number, self._expression(value, scope)[0] if number <= 7 else value))
        if goes_round:
            self._loops.pop()
        return _encoded(_replaced(message, _COMPREHENSION, _encoded(made))), None

    def _member(self, known: Typed | None, name: str) -> Typed | None:
        if known is None or known.schema.get(EITHER):
            return None
        if is_map(known.schema):
            return Typed(known.schema["additionalProperties"])
        there = {escaped(found): child for found, child in fields(known.schema, root=known.root).items()}
        if name in there:
            return Typed(there[name])
        if known.schema.get("type") and (there or known.schema["type"] != "object"):
            self.missing.append(name)
        return None

    def _timed(self, data: bytes, known: Typed | None) -> tuple[bytes, Typed | None]:
        format_ = known.schema.get("format") if known is not None else None
        function = "timestamp" if format_ in TIMES else "duration" if format_ == "duration" else ""
        if not function:
            return data, known
        self.changed = True
        self._next += 1
        call: Wire = [(_FUNCTION, function.encode()), (_ARGUMENT, data)]
        return _encoded([(_ID, self._next), (_CALL, _encoded(call))]), None


def _element(schema: Schema) -> Typed | None:
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), Mapping):
            return Typed(schema[word])
    return None


def _root(expression: bytes) -> str:
    """The variable of which this is a part."""
    message = _decoded(expression)
    if ident := _bytes(message, _IDENT):
        return _text(_decoded(ident), 1)
    select = _bytes(message, _SELECT)
    return _root(_bytes(_decoded(select), _OPERAND)) if select else ""


def _is_empty_list(expression: bytes) -> bool:
    return any(number == _LIST and not value for number, value in _decoded(expression))


# The wire


def _decoded(data: bytes) -> Wire:
    return list(_fields(data))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _number(data, at)
        match key & 7:
            case 0:
                value, at = _number(data, at)
                yield key >> 3, value
            case 2:
                size, at = _number(data, at)
                yield key >> 3, data[at : at + size]
                at += size
            case wire:
                # Constants with a fraction; nobody looks into a constant, so it is never taken apart.
                raise ValueError(f"a field of wire type {wire} where none is expected")


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _encoded(message: Wire) -> bytes:
    made = bytearray()
    for number, value in message:
        if isinstance(value, bytes):
            made += _varint(number << 3 | 2) + _varint(len(value)) + value
        else:
            made += _varint(number << 3) + _varint(value)
    return bytes(made)


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _bytes(message: Wire, number: int) -> bytes:
    return next((value for found, value in message if found == number and isinstance(value, bytes)), b"")


def _text(message: Wire, number: int) -> str:
    return _bytes(message, number).decode()


def _replaced(message: Wire, number: int, value: bytes) -> Wire:
    return [(found, value if found == number and isinstance(old, bytes) else old) for found, old in message]
