"""Writing a step behind the reading: bytes are taken off the line as they come, whatever the disk does meanwhile.

It is not only faster. What the line has delivered and nobody has taken yet is lost when the connection is cut.
"""

from __future__ import annotations

import asyncio
from typing import Final, Self

from ingot.images.fetching.errors import Unwritable
from ingot.images.fetching.partial import Partial
from ingot.images.fetching.threads import in_thread

_AHEAD: Final = 16
"""Chunks that may wait for the disk; more than that, and the line waits too."""
_AT_ONCE: Final = 4 << 20


class WriteBehind:
    """Takes chunks for a partial file; when the block ends, however it ends, what was taken is in the file."""

    def __init__(self, part: Partial) -> None:
        self._part = part
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue(_AHEAD)
        self._error: Unwritable | None = None

    async def put(self, chunk: bytes) -> None:
        if self._error is not None:
            raise self._error
        await self._chunks.put(chunk)

    async def __aenter__(self) -> Self:
        self._writing = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            await self._chunks.put(None)
            await asyncio.shield(self._writing)
        except asyncio.CancelledError:
            self._writing.cancel()
            await asyncio.wait([self._writing])
            raise
        if self._error is not None and kind is None:
            raise self._error

    async def _write(self) -> None:
        while (content := await self._waiting()) is not None:
            if self._error is None:
                try:
                    await in_thread(self._part.write, content)
                except Unwritable as error:
                    self._error = error  # the rest is taken and dropped, so that nobody waits in vain

    async def _waiting(self) -> bytes | None:
        """What waits, in one piece; None at the end."""
        chunk = await self._chunks.get()
        if chunk is None:
            return None
        content = bytearray(chunk)
        while len(content) < _AT_ONCE and not self._chunks.empty():
            chunk = self._chunks.get_nowait()
            if chunk is None:
                self._chunks.put_nowait(None)  # for the next time
                break
            content += chunk
        return bytes(content)
