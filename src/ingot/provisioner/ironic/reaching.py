"""Over which protocol a BMC is reached, where that makes a difference: what Ironic serves it is then at another address.

A literal address says it by itself. A name is looked up, and what was found holds for a while; a name that cannot be looked up is
taken for one of IPv4, as most are.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Final

from ingot.api import bmc

HOLDS_FOR: Final = 300.0


class Reaching:
    def __init__(self) -> None:
        self._known: dict[str, tuple[float, bool]] = {}

    async def goes_over_v6(self, address: str) -> bool:
        """Whether the BMC at this address, as users write it, is reached over IPv6 alone."""
        try:
            host = bmc.parse(address).host
        except bmc.InvalidAddress:
            return False
        try:
            return ipaddress.ip_address(host).version == 6
        except ValueError:
            return await self._looked_up(host)

    async def _looked_up(self, name: str) -> bool:
        loop = asyncio.get_running_loop()
        since, over_v6 = self._known.get(name, (-HOLDS_FOR, False))
        if loop.time() - since < HOLDS_FOR:
            return over_v6
        try:
            found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except OSError:
            found = []
        over_v6 = bool(found) and all(family == socket.AF_INET6 for family, *_ in found)
        self._known[name] = (loop.time(), over_v6)
        return over_v6
