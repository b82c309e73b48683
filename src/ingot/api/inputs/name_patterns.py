"""Patterns for the names of namespaces: regular expressions as Go reads them, for whoever decides by them who may have what.

Python's own would read some patterns otherwise than Go does, and some would keep it busy for ever. So this reads what both
languages mean by the same words, refuses everything else by name, and never takes longer than the length of the pattern times
that of the name. Names have lower-case letters, digits and '-' only: whatever else a pattern asks for is not in any.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NoReturn

from ingot.api.meta import Malformed

LONGEST: Final = 1024
"""Characters in a pattern."""
_MOST_STEPS: Final = 500
_MOST_REPEATS: Final = 1000
_DEEPEST: Final = 100

_ALPHABET: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_DIGITS: Final = frozenset("0123456789")
_WORD: Final = _ALPHABET - {"-"}
_LETTERS: Final = _WORD - _DIGITS
_NONE: Final[frozenset[str]] = frozenset()
_ESCAPED_CLASSES: Final = {
    "d": _DIGITS,
    "D": _ALPHABET - _DIGITS,
    "w": _WORD,
    "W": _ALPHABET - _WORD,
    "s": _NONE,
    "S": _ALPHABET,
}
_NAMED_CLASSES: Final = {
    "alnum": _WORD,
    "alpha": _LETTERS,
    "ascii": _ALPHABET,
    "blank": _NONE,
    "cntrl": _NONE,
    "digit": _DIGITS,
    "graph": _ALPHABET,
    "lower": _LETTERS,
    "print": _ALPHABET,
    "punct": frozenset("-"),
    "space": _NONE,
    "upper": _NONE,
    "word": _WORD,
    "xdigit": frozenset("0123456789abcdef"),
}
_GROUP: Final = re.compile(r"\?:|\?P?<[A-Za-z0-9_]+>")
_COUNT: Final = re.compile(r"\{([0-9]{1,9})(,([0-9]{1,9})?)?\}")


class UnusablePattern(Malformed):
    """The sentence says what is wrong with the pattern, and where."""


@dataclass(frozen=True, slots=True)
class _Chars:
    """One character, of these."""

    among: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Place:
    """No character, but a place between two: `^`, `$`, `b` or `B`."""

    kind: str


@dataclass(frozen=True, slots=True)
class _Row:
    parts: list[_Part]


@dataclass(frozen=True, slots=True)
class _Choice:
    parts: list[_Part]


@dataclass(frozen=True, slots=True)
class _Repeat:
    part: _Part
    least: int
    most: int | None


_Part = _Chars | _Place | _Row | _Choice | _Repeat


class NamePattern:
    """A pattern that was understood. Raises `UnusablePattern` for one that is not."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise UnusablePattern(f"a regular expression of more than {LONGEST} characters is too long")
        self._steps = _Program(_Reader(text).read()).steps

    def is_in(self, name: str) -> bool:
        """Whether it is found somewhere in the name."""
        now: dict[int, None] = {}
        for at in range(len(name) + 1):
            self._reach(0, name, at, now)
            if _FOUND in now:
                return True
            reached: dict[int, None] = {}
            for index in now:
                step = self._steps[index]
                if at < len(name) and isinstance(step, _Chars) and name[at] in step.among:
                    self._reach(index + 1, name, at + 1, reached)
            now = reached
        return False

    def _reach(self, index: int, name: str, at: int, reached: dict[int, None]) -> None:
        """Every step that this one leads to without another character, each once."""
        pending = [index]
        while pending:
            index = pending.pop()
            if index == len(self._steps):
                index = _FOUND
            if index in reached:
                continue
            reached[index] = None
            if index == _FOUND:
                continue
            match self._steps[index]:
                case _Fork(ways):
                    pending += ways
                case _Place(kind) if _holds(kind, name, at):
                    pending.append(index + 1)
        # The end of the pattern is no step.
        if _FOUND in reached:
            reached.clear()
            reached[_FOUND] = None


@lru_cache(maxsize=256)
def name_pattern(text: str) -> NamePattern:
    """The same, read once."""
    return NamePattern(text)


_FOUND: Final = -1


def _holds(kind: str, name: str, at: int) -> bool:
    if kind == "^":
        return at == 0
    if kind == "$":
        return at == len(name)
    before, after = at > 0 and name[at - 1] in _WORD, at < len(name) and name[at] in _WORD
    return (before != after) == (kind == "b")


@dataclass(slots=True)
class _Fork:
    ways: list[int]


class _Program:
    """The pattern as steps: a character each, or ways to go on."""

    def __init__(self, part: _Part) -> None:
        self.steps: list[_Chars | _Place | _Fork] = []
        self._written = 0
        self._write(part)

    def _write(self, part: _Part) -> None:
        self._written += 1
        if self._written > _MOST_STEPS:
            raise UnusablePattern(
                f"written out, it has more than {_MOST_STEPS} steps; names have 63 characters at most"
            )
        match part:
            case _Chars() | _Place():
                self.steps.append(part)
            case _Row(parts):
                for one in parts:
                    self._write(one)
            case _Choice(parts):
                self._write_choice(parts)
            case _Repeat(one, least, most):
                for _ in range(least):
                    self._write(one)
                if most is None:
                    self._write_loop(one)
                else:
                    self._write_optional(one, most - least)

    def _write_choice(self, parts: list[_Part]) -> None:
        fork, ends = self._fork(), list[_Fork]()
        for one in parts:
            fork.ways.append(len(self.steps))
            self._write(one)
            ends.append(self._fork())
        for end in ends:
            end.ways.append(len(self.steps))

    def _write_loop(self, part: _Part) -> None:
        begin, fork = len(self.steps), self._fork()
        fork.ways.append(len(self.steps))
        self._write(part)
        self._fork().ways.append(begin)
        fork.ways.append(len(self.steps))

    def _write_optional(self, part: _Part, times: int) -> None:
        forks = []
        for _ in range(times):
            fork = self._fork()
            forks.append(fork)
            fork.ways.append(len(self.steps))
            self._write(part)
        for fork in forks:
            fork.ways.append(len(self.steps))

    def _fork(self) -> _Fork:
        fork = _Fork([])
        self.steps.append(fork)
        return fork


class _Reader:
    """From the text to its parts."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def read(self) -> _Part:
        part = self._choice()
        if self._at < len(self._text):
            self._refuse("')' closes nothing")
        return part

    def _choice(self) -> _Part:
        rows = [self._row()]
        while self._take("|"):
            rows.append(self._row())
        return rows[0] if len(rows) == 1 else _Choice(rows)

    def _row(self) -> _Part:
        parts: list[_Part] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            parts.append(self._repeated(self._one()))
        return _Row(parts)

    def _repeated(self, part: _Part) -> _Part:
        bounds = self._bounds()
        if bounds is None:
            return part
        # Whether it takes as many as it can or as few does not matter for whether it is there.
        self._take("?")
        if self._bounds() is not None:
            self._refuse("a repetition follows a repetition; put the first one into (?:…)")
        return _Repeat(part, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in _SIGNS.items():
            if self._take(sign):
                return bounds
        # What is no count is text: {,3} and x{ are, for Go.
        found = _COUNT.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        least = int(found[1])
        most = least if not found[2] else int(found[3]) if found[3] else None
        if max(least, most or 0) > _MOST_REPEATS or (most is not None and most < least):
            self._refuse(f"{found[0]} is not a count of up to {_MOST_REPEATS}, the smaller number first")
        return least, most

    def _one(self) -> _Part:
        sign = self._next()
        read = _ONES.get(sign)
        return read(self) if read is not None else _Chars(frozenset(sign) & _ALPHABET)

    def _group(self) -> _Part:
        if (found := _GROUP.match(self._text, self._at)) is not None:
            self._at = found.end()
        elif self._text.startswith("?", self._at):
            self._refuse("groups that begin with '(?' can only be (?:…) or (?P<name>…)")
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(f"groups are nested more than {_DEEPEST} deep")
        part = self._choice()
        self._depth -= 1
        if not self._take(")"):
            self._refuse("a '(' is not closed")
        return part

    def _escaped(self) -> _Part:
        sign = self._next("a '\\' stands at the end")
        if sign in _ESCAPED_PLACES:
            return _Place(_ESCAPED_PLACES[sign])
        return _Chars(self._escaped_chars(sign))

    def _escaped_chars(self, sign: str) -> frozenset[str]:
        if (known := _ESCAPED_CLASSES.get(sign)) is not None:
            return known
        if not sign.isascii() or sign.isalnum():
            self._refuse(f"'\\{sign}' is not understood; use \\d, \\w, \\b, or '\\' before a sign")
        return frozenset(sign) & _ALPHABET

    def _class(self) -> _Part:
        negated, chars, first = self._take("^"), set[str](), True
        while first or not self._take("]"):
            chars |= self._class_item()
            first = False
        return _Chars(_ALPHABET - chars if negated else frozenset(chars))

    def _class_item(self) -> frozenset[str]:
        if self._text.startswith("[:", self._at) and (end := self._text.find(":]", self._at + 2)) > 0:
            return self._named_class(end)
        low = self._next(_OPEN_CLASS)
        if low == "\\":
            low = self._next(_OPEN_CLASS)
            known = self._escaped_chars(low)
            if low in _ESCAPED_CLASSES:
                return known
        if not self._text.startswith("-", self._at) or self._text.startswith("-]", self._at):
            return frozenset(low) & _ALPHABET
        self._at += 1
        high = self._next(_OPEN_CLASS)
        if high == "\\":
            high = self._next(_OPEN_CLASS)
            self._escaped_chars(high)
        if high < low or high in _ESCAPED_CLASSES:
            self._refuse(f"{low}-{high} is not a range")
        return frozenset(sign for sign in _ALPHABET if low <= sign <= high)

    def _named_class(self, end: int) -> frozenset[str]:
        name = self._text[self._at + 2 : end]
        known = _NAMED_CLASSES.get(name.removeprefix("^"))
        if known is None:
            self._refuse(f"[:{name}:] is not a class of characters")
        self._at = end + 2
        return _ALPHABET - known if name.startswith("^") else known

    def _missing(self) -> NoReturn:
        self._refuse(f"there is nothing before '{self._text[self._at - 1]}' to be repeated")

    def _take(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._at += 1
        return True

    def _next(self, otherwise: str = "it ends too early") -> str:
        if self._at >= len(self._text):
            self._refuse(otherwise)
        self._at += 1
        return self._text[self._at - 1]

    def _refuse(self, why: str) -> NoReturn:
        raise UnusablePattern(f"{why} (at character {self._at})")


_OPEN_CLASS: Final = "a '[' is not closed"
_SIGNS: Final[dict[str, tuple[int, int | None]]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_ESCAPED_PLACES: Final = {"A": "^", "z": "$", "b": "b", "B": "B"}
_ONES: Final[dict[str, Callable[[_Reader], _Part]]] = {
    "(": _Reader._group,
    "[": _Reader._class,
    "\\": _Reader._escaped,
    ".": lambda _: _Chars(_ALPHABET),
    "^": lambda _: _Place("^"),
    "$": lambda _: _Place("$"),
    "*": _Reader._missing,
    "+": _Reader._missing,
    "?": _Reader._missing,
}
