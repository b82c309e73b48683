"""Taking what the plugin inside Ironic pushes.

Owns the HTTPS listener, who may speak to it, and the bookkeeping of sequence numbers. `PushLedger` decides without I/O what a
message means: which of its events are new, and whether something was missed (the sender says so, a number is missing, or the
sender is one we never heard: its past is unknown). A repeated batch, sent again because our answer got lost, is recognised.
Leaves it to `watch` what to do with the events.
"""

from __future__ import annotations

import hmac
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec
from aiohttp import web

from ingot.provisioner.ironic.model import Json
from ingot.trust import Secret

LARGEST_MESSAGE: Final = 8 * 1024 * 1024
SENDERS_KEPT: Final = 64
PATH: Final = "/v1/push"

log = logging.getLogger(__name__)


class PushEvent(msgspec.Struct, frozen=True):
    seq: int
    uuid: str
    name: str | None = None
    deleted: bool = False
    fields: dict[str, Json] = msgspec.field(default_factory=dict)


class PushMessage(msgspec.Struct, frozen=True):
    sender: str
    first: int
    gap: bool = False
    patches: dict[str, bool] = msgspec.field(default_factory=dict)
    events: list[PushEvent] = msgspec.field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the sender sees every change: it says of each of its hooks whether it took hold."""
        return self.patches.get("save_hook", True)


@dataclass(frozen=True, slots=True)
class News:
    events: tuple[PushEvent, ...]
    missed: bool
    """Something happened that no event told: everything must be read again."""
    stranger: bool
    """Nobody heard this sender before: Ironic was started anew, and its database may be another one."""


class PushLedger:
    """Which number is next from each sender."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def enter(self, message: PushMessage) -> News:
        expected = self._next.pop(message.sender, None)
        missed = message.gap or expected is None or message.first > expected
        due = message.first if expected is None else max(expected, message.first)
        fresh: list[PushEvent] = []
        for event in sorted(message.events, key=lambda event: event.seq):
            if event.seq >= due:
                missed = missed or event.seq > due
                due = event.seq + 1
                fresh.append(event)
        self._next[message.sender] = due
        # A sender is one process of Ironic; those that were restarted long ago never speak again.
        while len(self._next) > SENDERS_KEPT:
            self._next.pop(next(iter(self._next)))
        return News(tuple(fresh), missed, stranger=expected is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushListen:
    """Where the receiver listens and what it takes for proof."""

    host: str
    port: int
    tls: ssl.SSLContext
    token: Secret


class PushReceiver:
    """An HTTPS server with one route. `take` is called with each message and must not block."""

    def __init__(self, listen: PushListen, take: Callable[[PushMessage], None]) -> None:
        self._listen = listen
        self._take = take
        self._expected = f"Bearer {listen.token.reveal()}".encode()
        self._runner: web.AppRunner | None = None
        self.port = listen.port

    async def start(self) -> None:
        """Listens when it returns; `port` is then the real one."""
        app = web.Application(client_max_size=LARGEST_MESSAGE)
        app.router.add_post(PATH, self._receive)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._listen.host, self._listen.port, ssl_context=self._listen.tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _receive(self, request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "").encode(errors="replace")
        if not hmac.compare_digest(given, self._expected):
            return web.Response(status=401, text="the push token is missing or wrong")
        body = await request.read()
        try:
            message = msgspec.json.decode(body, type=PushMessage)
        except msgspec.DecodeError as error:
            # The events in it are lost for us; the numbers will show it, and the list repairs it.
            log.warning("a push message cannot be read: %s", error)
            return web.Response(status=400, text=f"not a push message: {error}")
        self._take(message)
        return web.Response(status=204)
