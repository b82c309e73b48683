"""The script that a person would write: one server, from nothing to a running image, with nothing but Ironic's API and push.

It knows nothing of Ingot and uses none of its code. It listens where Ironic's plugin pushes, does one step after the other, and
each time waits for the event that says it is done: it never polls. It checks nothing that the happy path does not need, survives
nothing, and forgets everything when it ends; that is what it is compared for. The order comes as JSON on standard input, because
it holds passwords; what it found goes to standard output.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import ssl
import sys
import time
from typing import Any

import aiohttp
from aiohttp import web

Node = dict[str, Any]


class Ironic:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request. Ironic holds a node's lock for a moment after it said that it is done: that is a 409, and passes."""
        for _ in range(50):
            async with self._session.request(method, f"{self._url}{path}", json=body) as answer:
                if answer.status == 409:
                    await asyncio.sleep(0.1)
                    continue
                content = await answer.read()
                if answer.status >= 300:
                    raise SystemExit(
                        f"{method} {path}: {answer.status} {content.decode(errors='replace')[:500]}"
                    )
                return json.loads(content) if content else None
        raise SystemExit(f"{method} {path}: the node stays locked")

    async def ask(self, uuid: str, target: str, **more: Any) -> None:
        await self.call("PUT", f"/nodes/{uuid}/states/provision", {"target": target, **more})


class Events:
    """What Ironic has pushed about nodes, and waiting for it."""

    def __init__(self, token: str, ironic: Ironic) -> None:
        self._expected = f"Bearer {token}".encode()
        self._ironic = ironic
        self._nodes: dict[str, Node] = {}
        self._vague: set[str] = set()
        self._news = asyncio.Condition()
        self.heard = asyncio.Event()

    async def receive(self, request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(given, self._expected):
            return web.Response(status=401)
        message = await request.json()
        async with self._news:
            for event in message["events"]:
                self._nodes.setdefault(event["uuid"], {}).update(event["fields"])
                if not event["fields"]:
                    self._vague.add(event["uuid"])
            self._news.notify_all()
        self.heard.set()
        return web.Response(status=204)

    async def until(self, uuid: str, state: str, *, inspected: bool = False) -> None:
        def there() -> bool:
            node = self._nodes.get(uuid, {})
            if node.get("last_error"):
                raise SystemExit(f"{node.get('provision_state')}: {node['last_error']}")
            if inspected and not node.get("inspection_finished_at"):
                return False
            return bool(node.get("provision_state") == state)

        while True:
            async with self._news:
                await self._news.wait_for(lambda: uuid in self._vague or there())
                if uuid not in self._vague:
                    return
                self._vague.discard(uuid)
            # An event without fields says "look": that, too, is being told.
            seen = await self._ironic.call("GET", f"/nodes/{uuid}")
            async with self._news:
                self._nodes.setdefault(uuid, {}).update(seen)


async def bring_up(ironic: Ironic, events: Events, order: dict[str, Any]) -> None:
    """The whole life of the script."""
    node = await ironic.call("POST", "/nodes", order["node"])
    uuid: str = node["uuid"]
    await ironic.call("POST", "/ports", {"node_uuid": uuid, "address": order["mac"], "pxe_enabled": True})
    await ironic.ask(uuid, "manage")
    await events.until(uuid, "manageable")
    await ironic.ask(uuid, "inspect")
    await events.until(uuid, "manageable", inspected=True)
    await ironic.ask(uuid, "provide")
    await events.until(uuid, "available")
    changes = [
        {"op": "add", "path": f"/instance_info/{key}", "value": value}
        for key, value in order["image"].items()
    ]
    changes.append({"op": "add", "path": "/instance_uuid", "value": order["instance"]})
    await ironic.call("PATCH", f"/nodes/{uuid}", changes)
    await ironic.ask(uuid, "active", configdrive=order["configdrive"])
    await events.until(uuid, "active")


async def main() -> None:
    order = json.load(sys.stdin)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=order["ca"])),
        headers={
            "Authorization": aiohttp.encode_basic_auth(order["username"], order["password"]),
            "X-OpenStack-Ironic-API-Version": "1.110",
        },
    ) as session:
        ironic = Ironic(session, order["url"])
        events = Events(order["push_token"], ironic)
        runner = await listen(events, order)
        await asyncio.sleep(order["settle"])
        await events.heard.wait()
        spent, began = time.process_time(), time.time()
        print(json.dumps({"began": began}), flush=True)
        await bring_up(ironic, events, order)
        told = time.time()
        print(json.dumps({"told": told, "processor": time.process_time() - spent}), flush=True)
        await runner.cleanup()


async def listen(events: Events, order: dict[str, Any]) -> web.AppRunner:
    app = web.Application()
    app.router.add_post("/v1/push", events.receive)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(order["push_cert"], order["push_key"])
    await web.TCPSite(runner, "127.0.0.1", order["push_port"], ssl_context=tls).start()
    return runner


if __name__ == "__main__":
    asyncio.run(main())
