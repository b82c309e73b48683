"""Telling a flood from news: when somebody says ever new things of one kind about one object. Pure, the clock handed in.

A message with a number in it (an attempt, a temperature) is never the same twice. After a few different ones within a while,
those that follow are the same to whoever reads them; they are recognised here, and told as one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

MOST: Final = 10
WINDOW: Final = 600.0
REMEMBERED: Final = 4096

G = TypeVar("G", bound=Hashable)


@dataclass(slots=True)
class _Group:
    last: float
    messages: set[str] = field(default_factory=set)


class SimilarMessages(Generic[G]):
    """The different messages of each group, as long as one comes within the window of the one before."""

    def __init__(self, *, most: int = MOST, window: float = WINDOW) -> None:
        self._most = most
        self._window = window
        self._groups: OrderedDict[G, _Group] = OrderedDict()

    def is_one_too_many(self, group: G, message: str, now: float) -> bool:
        """Whether this message of the group is to be told together with others."""
        known = self._groups.get(group)
        if known is None or now - known.last > self._window:
            known = self._groups[group] = _Group(now)
        self._groups.move_to_end(group)
        if len(self._groups) > REMEMBERED:
            self._groups.popitem(last=False)
        known.last = now
        if message in known.messages or len(known.messages) < self._most:
            known.messages.add(message)
            return False
        return True
