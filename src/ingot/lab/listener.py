"""One TLS listener with an application behind it, that can be closed and opened again on the same port."""

from __future__ import annotations

import ssl

from aiohttp import web

from ingot.lab.errors import LabError


class Listener:
    def __init__(self, app: web.Application, *, host: str, port: int, context: ssl.SSLContext) -> None:
        self._app = app
        self._host = host
        self._port = port
        self._context = context
        self._runner: web.AppRunner | None = None

    @property
    def port(self) -> int:
        """Where it listens; the kernel's choice when it was started with port 0."""
        return self._port

    async def start(self) -> None:
        if self._runner is not None:
            return
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=2.0)
        await runner.setup()
        site = web.TCPSite(runner, self._host, self._port, ssl_context=self._context, reuse_address=True)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise LabError(
                f"cannot listen on {self._host}:{self._port}: {error.strerror}. "
                "The port was chosen when the lab was built; end the program that uses it now."
            ) from error
        self._port = runner.addresses[0][1]
        self._runner = runner

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
