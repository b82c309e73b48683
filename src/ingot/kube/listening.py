"""An HTTPS listener with the life of a context: it listens when entered, on the port it then knows, and lets go when left."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from aiohttp import web

from ingot.trust import ServingTls


class HttpsServer:
    """Base of the servers here: a subclass hands over its routes."""

    def __init__(self, app: web.Application, *, host: str, port: int, tls: ServingTls) -> None:
        self._app = app
        self._host = host
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self.port = port
        """Where it listens; the real one once it does, also if 0 was asked for."""

    async def __aenter__(self) -> Self:
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self.port, ssl_context=self._tls.context).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        self.port = runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
