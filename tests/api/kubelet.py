"""A node with a kubelet that only knows logs: a real TLS server that remembers what it was asked, and can misbehave."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from aiohttp import web
from kubernetes_api import Api

from ingot.trust import Authority


class Kubelet:
    """What its containers said, and who is listening."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.port = 0
        self.questions: list[str] = []
        # A container that says more later, when `says` is called.
        self.lines: dict[str, list[str]] = {}
        self.refusals: dict[str, tuple[int, str]] = {}
        self.listeners = 0
        self._more = asyncio.Event()

    @classmethod
    @contextlib.asynccontextmanager
    async def running(cls, api: Api, folder: Path, authority: Authority) -> AsyncIterator[Kubelet]:
        """A node of this API, until the block is left."""
        kubelet = cls(f"node-{api.namespace}")
        certificate = authority.issue(folder, "kubelet", ["127.0.0.1"])
        context = certificate.server_context()
        handler = web.Server(kubelet._asked, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(handler, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
            kubelet.port = runner.addresses[0][1]
            await api.post("/api/v1/nodes", {"metadata": {"name": kubelet.node}})
            await kubelet.announce(api, kubelet.port)
            yield kubelet
        finally:
            await api.delete(f"/api/v1/nodes/{kubelet.node}")
            await runner.cleanup()

    async def announce(self, api: Api, port: int) -> None:
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        answer = await api.patch(f"/api/v1/nodes/{self.node}/status", {"status": status})
        assert answer.code == 200, answer.body

    def says(self, container: str, line: str) -> None:
        self.lines.setdefault(container, []).append(line)
        self._more.set()
        self._more = asyncio.Event()

    async def _asked(self, request: web.BaseRequest) -> web.StreamResponse:
        self.questions.append(str(request.rel_url))
        container = request.path.rpartition("/")[2]
        if container in self.refusals:
            status, text = self.refusals[container]
            return web.Response(status=status, text=text)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        self.listeners += 1
        try:
            await self._tell(response, container, follow="follow" in request.query)
        finally:
            self.listeners -= 1
        return response

    async def _tell(self, response: web.StreamResponse, container: str, *, follow: bool) -> None:
        told = 0
        while True:
            more = self._more
            lines = self.lines.get(container, [])
            for line in lines[told:]:
                await response.write(f"{line}\n".encode())
            told = len(lines)
            if not follow:
                return
            await more.wait()
