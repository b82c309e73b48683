"""Tells news from the echo of what a pass wrote itself.

Pure bookkeeping. An own write comes back twice: as its answer, and on the watch, which is often the faster of the two. So what is
heard about a host while its pass is under way is put aside, and judged when the pass ends: versions that it wrote itself are
no news. Every own write is guarded by the version it was decided on, so nothing of others can hide in one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ingot.api.meta import Key

REMEMBERED: Final = 10_000
"""Own versions that are kept although nobody told of them; a watch that was cut may never do."""


class Echoes:
    """The versions that we wrote, and what was heard about hosts whose pass is under way."""

    def __init__(self) -> None:
        self._own: OrderedDict[str, None] = OrderedDict()
        self._heard: dict[Key, list[str]] = {}

    def begin(self, host: Key) -> None:
        """The pass of this host begins."""
        self._heard[host] = []

    def wrote(self, version: str) -> None:
        """A write of ours was answered with this version."""
        self._own[version] = None
        if len(self._own) > REMEMBERED:
            self._own.popitem(last=False)

    def is_news(self, host: Key, version: str) -> bool:
        """Whether something of this version has to be looked at now. If not, `end` may still say so."""
        if version in self._own:
            del self._own[version]
            return False
        if host in self._heard:
            self._heard[host].append(version)
            return False
        return True

    def end(self, host: Key) -> bool:
        """The pass is over: whether something was heard meanwhile that was not its own doing."""
        heard = self._heard.pop(host, [])
        news = [version for version in heard if version not in self._own]
        for version in heard:
            self._own.pop(version, None)
        return bool(news)
