"""The listener of the front server: what comes in, what is refused, and what goes on to Ironic.

Everything that is not one of the few known paths is a 404, whatever its method. Answers to a refused call say what is wrong
with it and nothing about what is behind. A certificate that is renewed on disk is taken up.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from ingot.services import agent_logs
from ingot.services.front import calls
from ingot.services.front.boot import BootListener
from ingot.services.front.files import PREFIX, PublishedFiles
from ingot.services.front.limits import FOR_A_MACHINE, FOR_AN_ADDRESS, Buckets, Gate, TooBusy
from ingot.services.front.upstream import Unreachable, Upstream
from ingot.services.settings import IronicSettings
from ingot.trust import Certificate, ServingTls, kept_token

log = logging.getLogger(__name__)

_BODY_WITHIN: Final = 60.0
_SMALL: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Front:
    """One front server: who is behind it, what it hands out, and its limits."""

    upstream: Upstream
    files: PublishedFiles
    machines: Buckets = field(default_factory=lambda: Buckets(FOR_A_MACHINE))
    addresses: Buckets = field(default_factory=lambda: Buckets(FOR_AN_ADDRESS))
    gate: Gate = field(default_factory=Gate)
    decoding: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """One large body at a time: decoded it takes many times its size."""

    def app(self) -> web.Application:
        made = web.Application(middlewares=[_nothing_about_us], client_max_size=calls.LARGEST_INSPECTION)
        made.router.add_route("*", "/{path:.*}", self._any)
        return made

    async def _any(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if request.method in ("GET", "HEAD") and path.startswith(PREFIX):
            # Not counted: a BMC reads a boot medium in thousands of small pieces.
            return await self._file(path)
        if not self.addresses.take(request.remote or ""):
            return _later(503, "too many calls from this address")
        if (request.method, path) == ("GET", "/healthz"):
            return web.Response(text="ok\n")
        if (request.method, path) == ("GET", "/"):
            return await self._version()
        return await self._call(request)

    async def _file(self, path: str) -> web.StreamResponse:
        found = await asyncio.to_thread(self.files.find, path)
        return web.FileResponse(found) if found else _nothing_here()

    async def _version(self) -> web.StreamResponse:
        try:
            async with self.gate.through():
                return web.json_response(await self.upstream.version())
        except TooBusy:
            return _later(503, "Ironic is busy")
        except Unreachable as error:
            return _not_there(error)

    async def _call(self, request: web.Request) -> web.StreamResponse:
        try:
            call = await self._understood(request)
            if not self.machines.take(call.who):
                return _later(503, "too many calls from this machine")
            async with self.gate.through():
                answer = await self.upstream.call(call)
        except calls.NotOurs:
            return _nothing_here()
        except calls.Malformed as error:
            log.warning("a call from %s was refused: %s", request.remote, error)
            return web.json_response({"error_message": str(error)}, status=error.status)
        except TooBusy:
            return _later(503, "Ironic is busy")
        except Unreachable as error:
            return _not_there(error)
        kind = "application/json" if answer.body else None
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers, content_type=kind)

    async def _understood(self, request: web.Request) -> calls.AgentCall:
        largest = calls.largest_body(request.method, request.path)
        body = await _body(request, largest) if largest else b""
        if len(set(request.query)) != len(request.query):
            raise calls.Malformed("a parameter in the URL is given twice")
        arguments = (request.method, request.path, dict(request.query), request.headers, body)
        if len(body) <= _SMALL:
            return calls.understood(*arguments)
        async with self.decoding:  # decoding, looking through and encoding again takes a while
            return await asyncio.to_thread(calls.understood, *arguments)


async def _body(request: web.Request, largest: int) -> bytes:
    if request.content_length is not None and request.content_length > largest:
        raise calls.Malformed(f"the body is longer than {largest} bytes", status=413)
    whole = bytearray()
    try:
        async with asyncio.timeout(_BODY_WITHIN):
            async for piece in request.content.iter_chunked(256 * 1024):
                whole += piece
                if len(whole) > largest:
                    raise calls.Malformed(f"the body is longer than {largest} bytes", status=413)
    except TimeoutError:
        raise calls.Malformed("the body did not arrive in time", status=408) from None
    return bytes(whole)


def _nothing_here() -> web.Response:
    return web.json_response({"error_message": "There is nothing here."}, status=404)


def _later(status: int, why: str) -> web.Response:
    # Never 429: an agent gives its inspection up for good when it is answered with a 4xx.
    return web.json_response({"error_message": why}, status=status, headers={"Retry-After": "5"})


def _not_there(error: Unreachable) -> web.Response:
    log.warning("Ironic cannot be reached: %s", error)
    return _later(503, "Ironic cannot be reached; try again")


@web.middleware
async def _nothing_about_us(request: web.Request, handler: Handler) -> web.StreamResponse:
    answer = await handler(request)
    answer.headers["Server"] = "ingot"
    answer.headers["Cache-Control"] = "no-store"
    return answer


async def serve(settings: IronicSettings, ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT. `ready` is called once it listens."""
    certificate = Certificate(settings.cert_file, settings.key_file, settings.ca_file)
    tls = await asyncio.to_thread(ServingTls, lambda: certificate)
    key = await asyncio.to_thread(kept_token, settings.paths.files_key_file)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(Upstream(settings))
        front = Front(upstream, PublishedFiles.of(settings.paths, key))
        await _listening(stack, settings, front.app(), settings.listen_port, tls.context)
        if settings.network_boot:
            boot = BootListener(settings.paths.http_root)
            await _listening(stack, settings, boot.app(), settings.boot_port, None)
        renewing = asyncio.create_task(tls.keep())
        stack.callback(renewing.cancel)
        # Ironic has no time of its own for it, and this one runs beside it.
        pruning = asyncio.create_task(
            agent_logs.keep_pruned(settings.paths.agent_logs, settings.agent_logs_mib * agent_logs.MIB)
        )
        stack.callback(pruning.cancel)
        ready()
        await stop.wait()


async def _listening(
    stack: AsyncExitStack,
    settings: IronicSettings,
    app: web.Application,
    port: int,
    tls: ssl.SSLContext | None,
) -> None:
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=15, shutdown_timeout=5)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    # None is every address of both families; asyncio makes of "::" a socket for IPv6 alone.
    host = None if settings.listen_all else settings.listen_address
    await web.TCPSite(runner, host, port, ssl_context=tls).start()
