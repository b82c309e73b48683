"""The script that a person would write: servers, from nothing to a running image, with nothing but Ironic's API and push.

It knows nothing of Ingot and uses none of its code. It listens where Ironic's plugin pushes, takes each server through its steps,
all servers at once, and each time waits for the event that says a step is done: it never polls. It checks nothing that the happy
path does not need, survives nothing, and forgets everything when it ends; that is what it is compared for. The order comes as
JSON on standard input, because it holds passwords; what it found goes to standard output.
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

AT_ONCE = 32
"""Connections to Ironic. A hundred at once are more than it takes up in time; Ingot opens as many as this."""
INSPECTED_AT_ONCE = 50
"""Servers. With a thousand at once most agents find Ironic too busy for their reports and give up; Ingot has this limit, too."""


class Ironic:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self.requests = 0

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request. Ironic holds a node's lock for a moment after it said that it is done: that is a 409, and passes.

        It closes connections that nobody used for ten seconds, now and then while something is sent on them; and it answers 503
        while all its workers are taken.
        """
        for _ in range(600):
            self.requests += 1
            try:
                async with self._session.request(method, f"{self._url}{path}", json=body) as answer:
                    content = await answer.read()
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)
                continue
            if answer.status in (409, 503):
                await asyncio.sleep(0.1 if answer.status == 409 else 1.0)
                continue
            if answer.status >= 300:
                raise SystemExit(f"{method} {path}: {answer.status} {content.decode(errors='replace')[:500]}")
            return json.loads(content) if content else None
        raise SystemExit(f"{method} {path}: the node stays locked, or Ironic busy")

    async def ask(self, uuid: str, target: str, **more: Any) -> None:
        await self.call("PUT", f"/nodes/{uuid}/states/provision", {"target": target, **more})


class Watched:
    """What Ironic has pushed about one node."""

    def __init__(self) -> None:
        self.node: Node = {}
        self.vague = False
        self.news = asyncio.Event()


class Events:
    """What Ironic has pushed about nodes, and waiting for it."""

    def __init__(self, token: str, ironic: Ironic) -> None:
        self._expected = f"Bearer {token}".encode()
        self._ironic = ironic
        self._nodes: dict[str, Watched] = {}
        self.heard = asyncio.Event()

    def _of(self, uuid: str) -> Watched:
        return self._nodes.setdefault(uuid, Watched())

    async def receive(self, request: web.Request) -> web.Response:
        given = request.headers.get("Authorization", "").encode()
        if not hmac.compare_digest(given, self._expected):
            return web.Response(status=401)
        message = await request.json()
        for event in message["events"]:
            seen = self._of(event["uuid"])
            seen.node.update(event["fields"])
            seen.vague = seen.vague or not event["fields"]
            seen.news.set()
        self.heard.set()
        return web.Response(status=204)

    async def until(self, uuid: str, state: str, *, inspected: bool = False) -> None:
        seen = self._of(uuid)
        while True:
            if seen.vague:
                # An event without fields says "look": that, too, is being told.
                seen.vague = False
                seen.node.update(await self._ironic.call("GET", f"/nodes/{uuid}"))
            node = seen.node
            if node.get("last_error"):
                raise SystemExit(f"{node.get('provision_state')}: {node['last_error']}")
            if node.get("provision_state") == state and (not inspected or node.get("inspection_finished_at")):
                return
            seen.news.clear()
            if not seen.vague:
                await seen.news.wait()


class Steps:
    """The whole life of the script, for each of its servers. `to` is "available" (inspected) or "provisioned"."""

    def __init__(self, ironic: Ironic, events: Events, to: str) -> None:
        self._ironic = ironic
        self._events = events
        self._to = to
        self._places = asyncio.Semaphore(INSPECTED_AT_ONCE)
        self.reached: dict[str, dict[str, float]] = {"available": {}, "provisioned": {}}

    async def bring_up(self, order: dict[str, Any]) -> None:
        ironic, events, name = self._ironic, self._events, order["node"]["name"]
        node = await ironic.call("POST", "/nodes", order["node"])
        uuid: str = node["uuid"]
        await ironic.call("POST", "/ports", {"node_uuid": uuid, "address": order["mac"], "pxe_enabled": True})
        await ironic.ask(uuid, "manage")
        await events.until(uuid, "manageable")
        async with self._places:
            await ironic.ask(uuid, "inspect")
            await events.until(uuid, "manageable", inspected=True)
        self.reached["available"][name] = time.time()
        if self._to == "available":
            return
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
        self.reached["provisioned"][name] = time.time()


async def main() -> None:
    order = json.load(sys.stdin)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=order["ca"]), limit=AT_ONCE),
        timeout=aiohttp.ClientTimeout(total=None),
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
        steps = Steps(ironic, events, order["to"])
        await asyncio.gather(*(steps.bring_up(host) for host in order["hosts"]))
        told = {"told": time.time(), "reached": steps.reached, "requests": ironic.requests}
        print(json.dumps({**told, "processor": time.process_time() - spent}), flush=True)
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
