"""One TLS listener that can be closed and opened again on the same port, with an application or a single handler behind it.

A handler costs a fraction of an application's memory: a farm has a thousand BMCs.
"""

from __future__ import annotations

import errno
import random
import ssl
from collections.abc import Awaitable, Callable

from aiohttp import web

from ingot.lab.errors import LabError
from ingot.lab.labfile import KEPT_PORTS

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

Runner = web.AppRunner | web.ServerRunner


class Listener:
    def __init__(
        self, behind: web.Application | Handler, *, host: str, port: int, context: ssl.SSLContext
    ) -> None:
        self._behind = behind
        self._host = host
        self._port = port
        self._context = context
        self._runner: Runner | None = None

    @property
    def port(self) -> int:
        """Where it listens; a free one that was found when it was started with port 0."""
        return self._port

    async def start(self) -> None:
        if self._runner is not None:
            return
        runner = self._made()
        await runner.setup()
        try:
            self._port = await self._listen(runner)
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner

    def _made(self) -> Runner:
        if isinstance(self._behind, web.Application):
            return web.AppRunner(self._behind, access_log=None, shutdown_timeout=2.0)
        return web.ServerRunner(web.Server(self._behind, access_log=None), shutdown_timeout=2.0)

    async def _listen(self, runner: Runner) -> int:
        refused: OSError | None = None
        for port in [self._port] if self._port else random.sample(KEPT_PORTS, 50):
            site = web.TCPSite(runner, self._host, port, ssl_context=self._context, reuse_address=True)
            try:
                await site.start()
            except OSError as error:
                refused = error
            else:
                return port
        advice = ""
        if refused is not None and refused.errno == errno.EADDRINUSE:
            advice = " The port was chosen when the lab was built; end the program that uses it now."
        elif refused is not None and refused.errno == errno.EADDRNOTAVAIL:
            advice = " This machine does not have the address; build the lab in another --network."
        why = refused.strerror if refused else "no port is free"
        raise LabError(f"cannot listen on {self._host}:{self._port}: {why}.{advice}") from refused

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
