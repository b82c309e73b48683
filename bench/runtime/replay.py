"""A server that sends prepared bytes and nothing else: `python replay.py FOLDER HOSTS EVENTS`.

It makes its certificate and a kubeconfig in the folder and prints the address when it is ready. Lists are answered at once; on
every watch the changes are sent when somebody posts to /go. One connection after the other: it measures nobody but its client.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from aiohttp import web

from ingot.trust import Authority
from runtime.bytes import Prepared

LINES_A_WRITE = 32


class Replay:
    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._pages: dict[tuple[int, int], bytes] = {}
        self._go = asyncio.Event()

    async def go(self, request: web.Request) -> web.Response:
        self._go.set()
        return web.Response()

    async def collection(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch", "").lower() in ("true", "1"):
            return await self._watch(request)
        where = (int(request.query.get("continue") or 0), int(request.query.get("limit") or 0))
        if where not in self._pages:
            self._pages[where] = self._prepared.page(*where)
        return web.Response(body=self._pages[where], content_type="application/json")

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if request.query.get("sendInitialEvents") == "true":
            await self._send(response, self._prepared.everything())
        await self._go.wait()
        self._go.clear()
        await self._send(response, self._prepared.changes)
        await asyncio.sleep(3600)
        return response

    async def _send(self, response: web.StreamResponse, lines: list[bytes]) -> None:
        for start in range(0, len(lines), LINES_A_WRITE):
            await response.write(b"".join(lines[start : start + LINES_A_WRITE]))


def kubeconfig(url: str, authority: Path) -> str:
    cluster = {"server": url, "certificate-authority": str(authority)}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": {"token": "nobody-looks-at-it"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }
    )


async def serve(folder: Path, count: int, events: int) -> None:
    certificate = Authority(folder / "ca").issue(folder, "replay", ["127.0.0.1"])
    replay = Replay(Prepared.of(count, events))
    app = web.Application()
    app.router.add_post("/go", replay.go)
    app.router.add_get("/apis/metal3.io/v1alpha1/baremetalhosts", replay.collection)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate.server_context()).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    (folder / "kubeconfig").write_text(kubeconfig(url, certificate.ca_file))
    print(url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
