"""What Ironic pushes, overheard: a listener between Ironic and the operator that keeps every message and passes it on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from ingot.trust import Certificate, client_context


class PushTap:
    def __init__(self, certificate: Certificate, *, port: int, operator_port: int) -> None:
        self.messages: list[str] = []
        self._certificate, self._port = certificate, port
        self._operator = f"https://127.0.0.1:{operator_port}"

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}/v1/push"

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(ssl=client_context(self._certificate.ca_file), force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def take(request: web.Request) -> web.Response:
                body = await request.read()
                self.messages.append(body.decode())
                headers = {name: request.headers[name] for name in ("Authorization", "Content-Type")}
                try:
                    async with session.post(
                        self._operator + request.path, data=body, headers=headers
                    ) as answer:
                        return web.Response(status=answer.status)
                except aiohttp.ClientError:
                    return web.Response(status=502)

            app = web.Application(client_max_size=8 << 20)
            app.router.add_post("/v1/push", take)
            runner = web.AppRunner(app)
            await runner.setup()
            context = self._certificate.server_context()
            await web.TCPSite(runner, "127.0.0.1", self._port, ssl_context=context).start()
            try:
                yield
            finally:
                await runner.cleanup()
