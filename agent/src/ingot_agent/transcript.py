"""What coreos-installer says, line by line: how far it is, and, when it failed, why.

Its last line after a failed write is "Error: install failed"; the reason stands in a block before that, and that block is what
is kept. Pure; takes lines, gives sentences.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_PROGRESS: Final = re.compile(r"Read \w+ (\S+ \w+)(?:/(\S+ \w+) \((\d+)%\))?")
_START: Final = re.compile(r"error:\s*(.*)", re.IGNORECASE)
_GENERIC: Final = "install failed"
_BUSY: Final = "Partitions in use on "
LONGEST_LINE: Final = 500
LONGEST_REASON: Final = 1500

# Reasons that another attempt meets again.
_HOPELESS: Final = (
    "metadata missing",
    "has sector size",
    "is not a block device",
    "not a valid Ignition",
    "canonicalizing",
    "unexpected argument",
    "invalid value",
)


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of the image has been read."""

    done: str
    whole: str | None
    percent: int | None

    def __str__(self) -> str:
        return self.done if self.whole is None else f"{self.done} of {self.whole} ({self.percent} %)"


@dataclass(slots=True)
class Transcript:
    """The lines so far; `spelled` says which texts stand for which in what is shown."""

    spelled: Mapping[str, str] = field(default_factory=dict)
    _lines: deque[str] = field(default_factory=lambda: deque(maxlen=200))

    def line(self, text: str) -> str:
        """Take a line; returns it as it may be shown."""
        shown = "".join(char if char.isprintable() else " " for char in text.rstrip())
        for hidden, seen in self.spelled.items():
            shown = shown.replace(hidden, seen)
        shown = shown[:LONGEST_LINE]
        self._lines.append(shown)
        return shown

    def reason(self) -> str:
        """Why it failed, as one paragraph of bounded length."""
        found = _blocks(list(self._lines))
        telling = [block for block in found if block != [_GENERIC]]
        block = (telling or found or [_last(self._lines)])[-1]
        busy = _busy(self._lines) if "busy partitions" in block[-1] else []
        text = "; ".join([": ".join(block), *busy])
        return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + " …"


def progress(line: str) -> Progress | None:
    """What this line says about how far it is; None where it says nothing about it."""
    found = _PROGRESS.fullmatch(line.strip())
    return found and Progress(found[1], found[2], int(found[3]) if found[3] else None)


def is_hopeless(reason: str) -> bool:
    """Whether the next attempt would fail for the same reason."""
    return any(sign in reason for sign in _HOPELESS)


def _blocks(lines: list[str]) -> list[list[str]]:
    """Every error, with its causes from the outermost to the innermost."""
    blocks: list[list[str]] = []
    inside = False
    for line in lines:
        if started := _START.fullmatch(line):
            blocks.append([started[1].strip()])
            inside = False
        elif blocks and line.strip() == "Caused by:":
            inside = True
        elif inside and line.startswith("    "):
            blocks[-1].append(re.sub(r"^\s*(\d+: )?", "", line))
        elif line.strip():
            inside = False
    return blocks


def _busy(lines: deque[str]) -> list[str]:
    after = False
    found = []
    for line in lines:
        after = line.startswith(_BUSY) or (after and line.startswith("    "))
        if after:
            found.append(line.strip())
    return found


def _last(lines: deque[str]) -> list[str]:
    return [next((line for line in reversed(lines) if line.strip()), "it said nothing")]
