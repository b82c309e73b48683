"""One host by Ingot: the manifest is created through the API, and a watch tells when the host is provisioned."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost, State
from ingot.api.core import EVENTS, NAMESPACES, SECRETS
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.meta import Resource
from ingot.cli.parts.practice import KINDS
from ingot.kube import Client
from ingot.kube.watching import Bookmark, News, Put
from ingot.lab.client import Lab
from spine.room import Room, running_operator
from spine.run import Run, processor_time, running

NAMESPACE: Final = "default"
COUNTED: Final = (BARE_METAL_HOSTS, HARDWARE_DATA, SECRETS, EVENTS)
QUIET: Final = 5.0
PATIENCE: Final = 600


async def by_ingot(room: Room, lab: Lab, name: str, objects: Sequence[dict[str, Any]]) -> Run:
    async with running_operator(room) as operator, Client.from_kubeconfig(room.state.kubeconfig) as client:
        parts = {"operator": operator, "API": room.leader("api-server"), "Ironic": room.leader("ironic")}
        version = await _quiet(client)
        watch = client.watch(
            BARE_METAL_HOSTS, resource_version=str(version), seconds=PATIENCE, namespace=NAMESPACE
        )
        async with contextlib.aclosing(watch) as news:
            # Its first word is that the stream is open.
            assert isinstance(await anext(news), Bookmark)
            before = {part: processor_time(pid) for part, pid in parts.items()}
            began = time.time()
            for body in objects:
                await client.create(KINDS[body["kind"]], body, namespace=NAMESPACE)
            told = await _provisioned(news, name)
        spent = {part: processor_time(pid) - before[part] for part, pid in parts.items()}
        writes = await _writes(client, version, objects)
    return Run(began=began, told=told, server=await running(lab, name), processor=spent, writes=writes)


async def _provisioned(news: AsyncGenerator[News[BareMetalHost], None], name: str) -> float:
    async for item in news:
        if isinstance(item, Put) and item.object.key.name == name:
            status = item.object.status
            if status.error_message:
                raise SystemExit(f"{name}: {status.error_message}")
            if status.provisioning.state == State.PROVISIONED:
                return time.time()
    raise SystemExit(f"{name} is not provisioned after {PATIENCE} s")


async def _writes(client: Client, since: int, ordered: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Writes by kind, once the last Event is written: each of them is one item of news in a watch."""
    until = await _quiet(client)
    counted = {kind.kind: await _news_of(client, kind, since) for kind in COUNTED}
    for body in ordered:
        counted[body["kind"]] -= 1
    # The embedded API gives every write the next version, whatever was written.
    other = until - since - len(ordered) - sum(counted.values())
    return counted | {"anything else": other}


async def _news_of(client: Client, kind: Resource[Any], since: int) -> int:
    watch = client.watch(kind, resource_version=str(since), seconds=2)
    async with contextlib.aclosing(watch) as news:
        return sum([not isinstance(item, Bookmark) async for item in news])


async def _quiet(client: Client) -> int:
    """The version of the API once nobody has written for a while."""
    version = await _version(client)
    while True:
        await asyncio.sleep(QUIET)
        if (now := await _version(client)) == version:
            return version
        version = now


async def _version(client: Client) -> int:
    return int((await client.list(NAMESPACES)).resource_version)
