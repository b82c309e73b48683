"""An endless answer: its pieces go to the connection as they come, one system call each.

aiohttp would pass every piece through half a dozen layers that serve any kind of answer. With a thousand watchers, that is
a fifth of what an event costs; so the pieces are framed here and handed to the connection itself. A slow reader is waited for
all the same: what is under way to it never grows beyond a bound.
"""

from __future__ import annotations

from typing import Final

from aiohttp import hdrs, web

# A reader who is behind by so much is waited for, if the connection says that it is full.
_UNDER_WAY: Final = 64 * 1024


class Stream:
    """One answer that has begun. Raises ConnectionError when its reader is gone."""

    def __init__(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        self._request = request
        self._response = response
        # HTTP/1.0 knows no chunks; there the end of the connection is the end of the answer.
        self._in_chunks = response.headers.get(hdrs.TRANSFER_ENCODING) == "chunked"

    async def send(self, piece: bytes) -> None:
        if not self._in_chunks:
            await self._response.write(piece)
            return
        transport = self._request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the reader is gone")
        transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if transport.get_write_buffer_size() > _UNDER_WAY:
            await self._request.writer.drain()

    async def end(self) -> None:
        await self._response.write_eof()


async def begun(request: web.BaseRequest, response: web.StreamResponse) -> Stream:
    """The headers go out at once: whoever waits for the first piece must know that he is being served."""
    await response.prepare(request)
    return Stream(request, response)
