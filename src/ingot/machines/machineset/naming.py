"""What the next machines of a set are called, so that nobody makes one twice. Pure.

The machines of a set are numbered, and the name of each follows from the UID of the set and its number. Which numbers are about
to be used is written on the set, guarded by its version, before the first of them is made; that they were used, after the last.
So a creation that is repeated, because its answer was lost, because the process was killed, or because two processes do the
same, asks for a name that exists, and the API refuses it instead of making another machine. And a number that was used is not
used again: a host is claimed by a name, and a new machine has no claim to what an old one had.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from ingot.api.machine import MachineSet

NUMBERS: Final = "ingot.metal3.io/machine-numbers"
"""On a MachineSet: the next number; `3-5` while machines 3 and 4 are being made."""
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX: Final = 5
_LONGEST_NAME: Final = 63
"""So that it can be a label, and the name of a host in a network."""
_WRITTEN: Final = re.compile(r"(?:([0-9]{1,9})-)?([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Numbers:
    """All below `begun` are done with, those from there to `next` are being made, and `next` is the next."""

    begun: int = 0
    next: int = 0

    @property
    def are_settled(self) -> bool:
        return self.begun == self.next

    @property
    def settled(self) -> Numbers:
        return Numbers(self.next, self.next)


def numbers_of(machine_set: MachineSet) -> Numbers:
    """What is written; what somebody spoilt counts as nothing, because names that exist are passed over anyway."""
    read = _WRITTEN.fullmatch(machine_set.metadata.annotations.get(NUMBERS, ""))
    if read is None:
        return Numbers()
    following = int(read[2])
    return Numbers(min(int(read[1] or following), following), following)


def noted(numbers: Numbers) -> dict[str, Any]:
    """The patch that writes it."""
    text = str(numbers.next) if numbers.are_settled else f"{numbers.begun}-{numbers.next}"
    return {"metadata": {"annotations": {NUMBERS: text}}}


def plan(machine_set: MachineSet, taken: Collection[str], count: int) -> tuple[Numbers, list[str]]:
    """The names of so many new machines: what was begun and is not there comes first. And what has to be written before."""
    numbers = numbers_of(machine_set)
    begun = [name_of(machine_set, number) for number in range(numbers.begun, numbers.next)]
    names = dict.fromkeys(name for name in begun if name not in taken)
    if not names:
        numbers = numbers.settled
    following = numbers.next
    while len(names) < count:
        if (name := name_of(machine_set, following)) not in taken:
            names[name] = None
        following += 1
    return Numbers(numbers.begun, following), list(names)[:count]


def name_of(machine_set: MachineSet, number: int) -> str:
    stem = machine_set.metadata.name[: _LONGEST_NAME - _SUFFIX - 1].rstrip("-.")
    rest = int.from_bytes(
        hashlib.blake2b(f"{machine_set.metadata.uid}/{number}".encode(), digest_size=8).digest(), "big"
    )
    letters = []
    for _ in range(_SUFFIX):
        rest, letter = divmod(rest, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return f"{stem}-{''.join(letters)}"
