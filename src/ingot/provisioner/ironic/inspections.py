"""How many machines are inspected at the same time.

An inspection ends with a report that the machine's agent sends, and gives up sending after a few tries. Ironic takes one or two
of them in a second. Booted all at once, most of a thousand machines would find it too busy, and their inspections would be lost;
so there are only so many places. Who finds none waits in line and is announced when it is its turn. Whoever is called and does
not come in a while, because it does not want to be inspected any more, has left the line.

In memory alone: after a restart everybody asks again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from ingot.api.meta import Key
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.cache import NodeCache

AT_ONCE: Final = 50
_COMES_WITHIN: Final = 15.0
"""Seconds that a place is kept for who was called."""
_INSPECTED: Final = (states.INSPECTING, states.INSPECT_WAIT)


class Inspections:
    """The places, and the line. `call` tells a host that it is its turn."""

    def __init__(self, cache: NodeCache, call: Callable[[Key], None], at_once: int = AT_ONCE) -> None:
        self.at_once = at_once
        self._cache = cache
        self._call = call
        self._line: dict[Key, None] = {}
        self._kept: dict[Key, float] = {}
        """For whom a place is kept, and until when."""
        self._beginning: set[Key] = set()

    def waits(self, host: Key) -> bool:
        """Whether it stands in line, and it is not its turn yet."""
        return host in self._line

    def admits(self, host: Key) -> bool:
        """Whether it may begin now. Otherwise it stands in line from now on."""
        if host not in self._kept and self._free() <= 0:
            self._line.setdefault(host)
            return False
        self._keep(host)
        return True

    @contextlib.contextmanager
    def beginning(self, host: Key) -> Iterator[None]:
        """While Ironic is asked to begin: from its answer on, the node tells."""
        self._beginning.add(host)
        self._kept.pop(host, None)
        try:
            yield
        finally:
            self._beginning.discard(host)

    def moved_on(self) -> None:
        """Nodes have changed: those whose turn it is are called."""
        if not self._line:
            return
        for host in list(islice(self._line, max(0, self._free()))):
            self._keep(host)
            self._call(host)

    def _keep(self, host: Key) -> None:
        self._line.pop(host, None)
        self._kept[host] = asyncio.get_running_loop().time() + _COMES_WITHIN

    def _free(self) -> int:
        now = asyncio.get_running_loop().time()
        self._kept = {host: until for host, until in self._kept.items() if until > now}
        inspected = sum(node.provision_state in _INSPECTED for node in self._cache)
        return self.at_once - inspected - len(self._beginning) - len(self._kept)
