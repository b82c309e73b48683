"""A connection from its first byte to its last: request, answer, request, answer.

Owns the order of things and how long each may take. Nothing is remembered from one request to the next but bytes that came early,
so any number of connections, and of requests for one image, go on side by side. A client that goes away in the middle is
weather; a file that is not what it was is logged, and the client sees its connection end too soon rather than other bytes.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingot.images.region import Region
from ingot.images.server.access import AccessLog
from ingot.images.server.answer import Answer, answer, name_in, refusal
from ingot.images.server.pieces import Image
from ingot.images.server.request import END, LARGEST_HEAD, Refused, Request, parsed
from ingot.images.server.shelf import Shelf
from ingot.images.server.wire import FileTooShort, Steps, Wire

log = logging.getLogger(__name__)

_TOGETHER: Final = 256 * 1024
"""Bytes that follow each other are sent together, up to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds."""

    greeting: float = 15.0
    """For the handshake of TLS."""
    idle: float = 60.0
    """Between two requests."""
    head: float = 15.0
    """From the first byte of a request to its end."""
    stalled: float = 120.0
    """For a client that takes nothing of its answer. BMCs pause; they are given time."""
    parting: float = 2.0


@dataclass(frozen=True, slots=True)
class House:
    """What all conversations share."""

    shelf: Shelf
    ready: Callable[[], bool]
    patience: Patience


class Conversation:
    """`steps` is what `loop` goes on with. It ends the conversation itself when `deadline` has passed."""

    def __init__(self, wire: Wire, peer: str, house: House, access: AccessLog) -> None:
        self.wire: Final = wire
        self.steps: Final = self._talk()
        self.waits_for = 0
        self.idle = False
        """Whether it could end now without anybody losing anything."""
        self.deadline = 0.0
        self._peer = peer
        self._house = house
        self._access = access
        self._early = b""
        self._files = _Files()

    def close(self) -> None:
        self.steps.close()
        self._files.close()
        self.wire.close()

    def _talk(self) -> Steps[None]:
        patience = self._house.patience
        self._within(patience.greeting)
        yield from self.wire.greet()
        stays = True
        while stays:
            try:
                request = yield from self._request()
            except Refused as refused:
                yield from self._give("", refusal(None, refused.status, f"{refused}."))
                stays = False
            else:
                if request is None:
                    return
                yield from self._respond(request)
                stays = request.stays
        self._within(patience.parting)
        yield from self.wire.part()

    def _request(self) -> Steps[Request | None]:
        """The next one; None when no more come."""
        patience = self._house.patience
        came = self._early
        self.idle = not came
        self._within(patience.head if came else patience.idle)
        while (end := came.find(END)) < 0:
            if len(came) > LARGEST_HEAD:
                raise Refused(431, f"a request has at most {LARGEST_HEAD} bytes before its end")
            some = yield from self.wire.receive()
            if not some:
                return None
            if self.idle:
                self.idle = False
                self._within(patience.head)
            came += some
        self.idle = False
        self._early = came[end + len(END) :]
        return parsed(
            came[: end + 2].removeprefix(b"\r\n")
        )  # some clients end a request with an empty line too many

    def _respond(self, request: Request) -> Steps[None]:
        name = name_in(request.target) or ""
        image = self._house.shelf.get(name)
        given = answer(request, image, ready=self._house.ready())
        if image is not None and given.status in (200, 206):
            try:
                self._files.of(image)
            except OSError as error:
                log.error("an image cannot be read: %s", error)
                given = refusal(request, 500, "The image cannot be read.")
        yield from self._give(name, given)

    def _give(self, name: str, given: Answer) -> Steps[None]:
        before = self.wire.sent
        try:
            yield from self._send(given)
        finally:
            sent = self.wire.sent - before - len(given.head)
            self._access.note(self._peer, name, given.status, max(0, sent))

    def _send(self, given: Answer) -> Steps[None]:
        waiting = given.head
        for piece in given.pieces:
            if isinstance(piece, bytes):
                waiting += piece
                if len(waiting) >= _TOGETHER:
                    yield from self._progress(self.wire.send(waiting))
                    waiting = b""
                continue
            handle = self._files[piece.path]
            try:
                yield from self._progress(self.wire.send_file(waiting, handle, piece.offset, piece.length))
            except FileTooShort:
                log.error("%s is shorter than an image that is made of it; the transfer ends", piece.path)
                raise
            waiting = b""
        if waiting:
            yield from self._progress(self.wire.send(waiting))

    def _progress(self, steps: Steps[None]) -> Steps[None]:
        """The same steps, with the patience for a client that takes nothing measured from when it last took something."""
        before = -1
        for waits_for in steps:
            if self.wire.sent != before:
                self._within(self._house.patience.stalled)
                before = self.wire.sent
            yield waits_for

    def _within(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds


class _Files(dict[Path, int]):
    """The files of the image that was asked for last, open. A machine asks for one image in thousands of ranges; and should
    somebody put another file in the place of one of these, what was begun goes on with the old one."""

    _image: Image | None = None

    def of(self, image: Image) -> None:
        """Have the files of this image open, and no others."""
        if image is not self._image:
            self.close()
            for piece in image.pieces:
                if isinstance(piece, Region) and piece.path not in self:
                    self[piece.path] = os.open(piece.path, os.O_RDONLY | os.O_CLOEXEC)
            self._image = image

    def close(self) -> None:
        self._image = None
        while self:
            os.close(self.popitem()[1])
