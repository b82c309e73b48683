"""Whoever follows an API that is restored from an older backup ends up with what the backup holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from ingot.api.core import SECRETS
from ingot.api.meta import Key
from ingot.embedded.server import backup, restore, serve
from ingot.kube import Backoff, Client, Informer

QUICK = Backoff(first=0.05, limit=0.5)


async def put(client: Client, name: str, **labels: str) -> None:
    await client.create(SECRETS, {"metadata": {"name": name, "labels": labels}}, namespace="default")


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 (what an informer learns has no event)
            await asyncio.sleep(0.02)


async def test_an_informer_that_lived_through_a_restore_has_what_the_backup_has(tmp_path: Path) -> None:
    state, file = tmp_path / "state", tmp_path / "saved"
    async with serve(state, crds=()) as first:
        client = Client.from_kubeconfig(first.kubeconfig)
        await put(client, "changed", when="before")
        await put(client, "deleted")
        await asyncio.to_thread(backup, state, file)
        await client.patch(SECRETS, Key("default", "changed"), {"metadata": {"labels": {"when": "after"}}})
        await client.delete(SECRETS, Key("default", "deleted"))
        await put(client, "made-later")
        informer = Informer(client, SECRETS, backoff=QUICK)
        following = asyncio.create_task(informer.run())
        await informer.synced()
        assert {item.metadata.name for item in informer.items()} == {"changed", "made-later"}
    await asyncio.to_thread(restore, file, state)
    async with serve(state, port=first.port, crds=()):
        # As many writes as were lost: with plain counting their versions would look like the ones that are known.
        for number in range(10):
            await put(client, f"new-{number}")
        expected = {"changed", "deleted", *(f"new-{number}" for number in range(10))}
        await eventually(lambda: {item.metadata.name for item in informer.items()} == expected)
        changed = informer.get(Key("default", "changed"))
        assert changed is not None
        assert changed.metadata.labels == {"when": "before"}
        # And it goes on from there.
        await put(client, "last")
        await eventually(lambda: informer.get(Key("default", "last")) is not None)
    following.cancel()
    await asyncio.wait([following])
    await client.close()
