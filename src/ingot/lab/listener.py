"""One TLS listener with an application behind it, that can be closed and opened again on the same port."""

from __future__ import annotations

import random
import ssl

from aiohttp import web

from ingot.lab.errors import LabError
from ingot.lab.labfile import KEPT_PORTS


class Listener:
    def __init__(self, app: web.Application, *, host: str, port: int, context: ssl.SSLContext) -> None:
        self._app = app
        self._host = host
        self._port = port
        self._context = context
        self._runner: web.AppRunner | None = None

    @property
    def port(self) -> int:
        """Where it listens; a free one that was found when it was started with port 0."""
        return self._port

    async def start(self) -> None:
        if self._runner is not None:
            return
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=2.0)
        await runner.setup()
        try:
            self._port = await self._listen(runner)
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner

    async def _listen(self, runner: web.AppRunner) -> int:
        refused: OSError | None = None
        for port in [self._port] if self._port else random.sample(KEPT_PORTS, 50):
            site = web.TCPSite(runner, self._host, port, ssl_context=self._context, reuse_address=True)
            try:
                await site.start()
            except OSError as error:
                refused = error
            else:
                return port
        raise LabError(
            f"cannot listen on {self._host}:{self._port}: {refused.strerror if refused else 'no port is free'}. "
            "The port was chosen when the lab was built; end the program that uses it now."
        ) from refused

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
