"""Sockets to listen at: one for each address that a name stands for, all at the same port."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import Any, Final

_BACKLOG: Final = 1_024
_NOT_HERE: Final = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
"""A machine may know a name by an address of IPv6 and have no IPv6."""


async def listeners(host: str, port: int) -> list[socket.socket]:
    """At least one. An empty host is every address of both families; port 0 is any free one. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    made: list[socket.socket] = []
    missing: OSError | None = None
    with contextlib.ExitStack() as stack:
        for family, address in dict.fromkeys((family, address) for family, *_, address in found):
            try:
                listener = _listener(family, (address[0], port, *address[2:]))
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                missing = error
                continue
            made.append(stack.enter_context(listener))
            port = listener.getsockname()[1]
        if not made:
            raise missing or OSError(errno.EADDRNOTAVAIL, f"{host} has no address here")
        stack.pop_all()
    return made


def _listener(family: int, address: tuple[Any, ...]) -> socket.socket:
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family, socket.SOCK_STREAM))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        stack.pop_all()
    return listener
