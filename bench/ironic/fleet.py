"""A fleet from nothing to available, and on to provisioned: by Ingot, and by the bare script, each on an installation of its own.

Both find the same: an Ironic that has done nothing yet, a farm whose servers each have a BMC address and a certificate of their
own, and nobody else on the machine. The clock starts with the first request. The end of a phase is what the one who waits is
told: a BareMetalHost in that state in a watch, or the push that ends the script's last step of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.cli.parts.practice import KINDS
from ingot.kube import Client
from ingot.kube.watching import Bookmark, News, Put
from ingot.lab.client import Lab
from ingot.lab.manifests import manifests
from spine import bare_script
from spine.by_script import IMAGE_FORMAT, order
from spine.room import Room, open_room, operator_metrics, running_operator
from spine.run import processor_time, resident

NAMESPACE: Final = "default"
CREATORS: Final = 16
IDLE: Final = 60.0


@dataclass(slots=True)
class Fleet:
    """What is known of one way of doing it. Times are seconds since the first request."""

    reached: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    """Seconds, by who spent them."""
    resident: dict[str, float] = field(default_factory=dict)
    """Megabytes at the end."""
    requests: int = 0
    """To Ironic, by whoever drives it."""
    idle_requests: float = 0.0
    """The same, in a minute in which nothing is to be done."""

    def all_in(self, state: str) -> float:
        return max(self.reached[state])


async def by_ingot(folder: Path, hosts: int, *, to: str, patience: float, idle: float = IDLE) -> Fleet:
    found = Fleet()
    async with (
        open_room(folder, servers=hosts) as room,
        Lab.open(room.state.path) as lab,
        running_operator(room) as operator,
        Client.from_kubeconfig(room.state.kubeconfig) as client,
    ):
        parts = _parts(room) | {"operator": operator, "API server": room.leader("api-server")}
        made = manifests(
            lab.file, count=hosts, provision=hosts if to == "provisioned" else 0, image_format=IMAGE_FORMAT
        )
        if to == "available":
            _leave_off(made)
        watch = client.watch(
            BARE_METAL_HOSTS,
            resource_version=await client.latest_version(BARE_METAL_HOSTS),
            seconds=int(patience),
        )
        async with contextlib.aclosing(watch) as news:
            # Its first word is that the stream is open.
            assert isinstance(await anext(news), Bookmark)
            before, asked, began = _spent(parts), await _requests(room), time.time()
            arriving = asyncio.create_task(_arrivals(news, hosts, to, began))
            await _create(client, made)
            found.reached = await arriving
        found.processor = {name: spent - before[name] for name, spent in _spent(parts).items()}
        found.resident = {name: resident(pid) for name, pid in parts.items()}
        found.requests = await _requests(room) - asked
        if idle:
            await asyncio.sleep(10)
            asked = await _requests(room)
            await asyncio.sleep(idle)
            found.idle_requests = (await _requests(room) - asked) * 60 / idle
    return found


async def by_script(folder: Path, hosts: int, *, to: str, patience: float) -> Fleet:
    found = Fleet()
    async with open_room(folder, servers=hosts) as room, Lab.open(room.state.path) as lab:
        parts = _parts(room)
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(bare_script.__file__), stdin=PIPE, stdout=PIPE, limit=1 << 24
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(patience):
                process.stdin.write(json.dumps(order(room, lab.file, lab.file.servers, to=to)).encode())
                process.stdin.close()
                began = json.loads(await process.stdout.readline())["began"]
                before = _spent(parts)
                last = await process.stdout.readline()
                found.processor = {name: spent - before[name] for name, spent in _spent(parts).items()}
                found.resident = {name: resident(pid) for name, pid in parts.items()}
                if await process.wait() != 0:
                    raise SystemExit("the script failed; what it says stands above")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    told = json.loads(last)
    found.processor["script"] = told["processor"]
    found.requests = told["requests"]
    found.reached = {
        state: [at - began for at in reached.values()] for state, reached in told["reached"].items()
    }
    return found


def _leave_off(objects: Sequence[dict[str, Any]]) -> None:
    """An inspection ends with the power off, and the script leaves it so: hosts that are wanted on would be switched on."""
    for body in objects:
        if body["kind"] == "BareMetalHost":
            body["spec"]["online"] = False


async def _create(client: Client, objects: Sequence[dict[str, Any]]) -> None:
    turn = asyncio.Semaphore(CREATORS)

    async def one(body: dict[str, Any]) -> None:
        async with turn:
            await client.create(KINDS[body["kind"]], body, namespace=NAMESPACE)

    await asyncio.gather(*(one(body) for body in objects))


async def _arrivals(
    news: AsyncGenerator[News[BareMetalHost], None], hosts: int, to: str, began: float
) -> dict[str, list[float]]:
    """When each host was seen in a state first. One that is on its way to an image has been available."""
    first: dict[str, dict[str, float]] = {"available": {}, "provisioned": {}}
    async for item in news:
        if not isinstance(item, Put):
            continue
        name, status = item.object.key.name, item.object.status
        if status.error_message:
            print(f"  {name}: {status.error_message}", file=sys.stderr, flush=True)
        state = str(status.provisioning.state)
        if state in ("available", "provisioning", "provisioned"):
            first["available"].setdefault(name, time.time() - began)
        if state == "provisioned":
            first["provisioned"].setdefault(name, time.time() - began)
        if len(first[to]) == hosts:
            return {kind: list(at.values()) for kind, at in first.items()}
    raise SystemExit(f"only {len(first[to])} of {hosts} hosts became {to} in time")


def _parts(room: Room) -> dict[str, int]:
    return {"Ironic": room.leader("ironic"), "farm": room.leader("lab"), "front": room.leader("front")}


def _spent(parts: dict[str, int]) -> dict[str, float]:
    return {name: processor_time(pid) for name, pid in parts.items()}


async def _requests(room: Room) -> int:
    """How many requests to Ironic the operator has made."""
    return sum(
        int(float(line.rpartition(" ")[2]))
        for line in await asyncio.to_thread(operator_metrics, room)
        if line.startswith("ingot_ironic_requests_total{")
    )
