"""What a process that does nothing but serve this API can do better than Python does by default."""

from __future__ import annotations

from asyncio import sslproto
from typing import Final

# Larger than a TLS record, and than any request but an upload.
_TLS_BUFFER: Final = 32 * 1024


def lean_process() -> None:
    """Give each TLS connection a small read buffer.

    asyncio gives each one 256 KB, for as long as it is open: a thousand watchers, who send nothing, would hold a quarter of a
    gigabyte. It has no argument for that, only this attribute of its class.
    """
    if hasattr(sslproto.SSLProtocol, "max_size"):
        sslproto.SSLProtocol.max_size = _TLS_BUFFER
