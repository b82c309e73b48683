"""The runtime on the embedded API: the same client and informer, a real server, real restarts."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import EVENTS, SECRETS
from ingot.api.meta import Key, PartialObjectMetadata
from ingot.embedded.server import Running, serve
from ingot.kube import (
    AlreadyExists,
    Backoff,
    Client,
    Conflict,
    Contested,
    EventRecorder,
    Forbidden,
    Informer,
    Invalid,
    NotFound,
    metadata_of,
)

HOST = Key("default", "h1")
QUICK = Backoff(first=0.05, limit=0.5)


def host(name: str = "h1") -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"online": True}}


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.02)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serve(tmp_path / "state") as running:
        yield running


@pytest.fixture
async def client(server: Running) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig) as made:
        yield made


@asynccontextmanager
async def following(informer: Informer[Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(60):
            await informer.synced()
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), task.exception()


async def test_the_verbs_do_what_they_say(client: Client):
    made = await client.create(BARE_METAL_HOSTS, host())
    with pytest.raises(AlreadyExists):
        await client.create(BARE_METAL_HOSTS, host())
    changed = await client.patch(
        BARE_METAL_HOSTS, HOST, {"spec": {"online": False}}, resource_version=made.metadata.resource_version
    )
    assert changed.metadata.generation == made.metadata.generation + 1
    with pytest.raises(Conflict):
        await client.patch(
            BARE_METAL_HOSTS,
            HOST,
            {"spec": {"online": True}},
            resource_version=made.metadata.resource_version,
        )
    with pytest.raises(Invalid):
        await client.patch(BARE_METAL_HOSTS, HOST, {"spec": {"online": "perhaps"}})
    with pytest.raises(Conflict):
        await client.delete(BARE_METAL_HOSTS, HOST, uid="another")
    await client.delete(BARE_METAL_HOSTS, HOST, uid=made.metadata.uid)
    with pytest.raises(NotFound):
        await client.get(BARE_METAL_HOSTS, HOST)


async def test_lists_are_paged_and_complete(client: Client):
    for number in range(520):
        await client.create(
            SECRETS,
            {"metadata": {"name": f"s{number:03}", "labels": {"odd": str(number % 2)}}},
            namespace="default",
        )
    assert len((await client.list(SECRETS, namespace="default")).items) == 520
    assert len((await client.list(SECRETS, labels="odd=1")).items) == 260


async def test_an_informer_follows_creation_change_and_deletion(client: Client):
    informer = Informer(client, BARE_METAL_HOSTS, backoff=QUICK)
    async with following(informer):
        await client.create(BARE_METAL_HOSTS, host())
        await eventually(lambda: informer.get(HOST) is not None)
        await client.patch(BARE_METAL_HOSTS, HOST, {"metadata": {"labels": {"a": "b"}}})
        await eventually(lambda: bool((h := informer.get(HOST)) and h.metadata.labels == {"a": "b"}))
        await client.delete(BARE_METAL_HOSTS, HOST)
        await eventually(lambda: informer.get(HOST) is None)


async def test_our_own_write_is_never_undone_by_its_echo(client: Client):
    informer = Informer(client, BARE_METAL_HOSTS, backoff=QUICK)
    versions: list[int] = []
    async with following(informer):
        await client.create(BARE_METAL_HOSTS, host())
        await eventually(lambda: informer.get(HOST) is not None)
        informer.subscribe(lambda change: versions.append(int(change.new.metadata.resource_version)))
        for number in range(50):
            informer.observe(
                await client.patch(BARE_METAL_HOSTS, HOST, {"metadata": {"labels": {"n": str(number)}}})
            )
            known = informer.get(HOST)
            assert known is not None
            assert known.metadata.labels == {"n": str(number)}
        await asyncio.sleep(0.2)
    assert versions == sorted(set(versions))


async def test_taking_off_the_last_finalizer_leaves_no_ghost(client: Client):
    informer = Informer(client, BARE_METAL_HOSTS, backoff=QUICK)
    async with following(informer):
        for number in range(10):
            key = Key("default", f"h{number}")
            body = host(key.name)
            body["metadata"] = {"name": key.name, "namespace": "default", "finalizers": ["test.ingot.dev/x"]}
            await client.create(BARE_METAL_HOSTS, body)
            await client.delete(BARE_METAL_HOSTS, key)
            last = await client.patch(BARE_METAL_HOSTS, key, {"metadata": {"finalizers": None}})
            if number % 2:
                await eventually(lambda key=key: informer.get(key) is None)
            informer.observe(last)
        await asyncio.sleep(0.2)
        assert list(informer.items()) == []


async def test_a_secrets_value_never_reaches_a_metadata_informer(client: Client):
    informer = Informer(client, metadata_of(SECRETS), backoff=QUICK)
    async with following(informer):
        await client.create(
            SECRETS, {"metadata": {"name": "bmc"}, "stringData": {"password": "hush"}}, namespace="default"
        )
        await eventually(lambda: informer.get(Key("default", "bmc")) is not None)
        found = informer.get(Key("default", "bmc"))
        assert type(found) is PartialObjectMetadata
        assert found.kind == "Secret"


async def test_lists_are_streamed_and_selections_hold(client: Client, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    for name, rack in (("a", "1"), ("b", "2")):
        body = host(name)
        body["metadata"] = {"name": name, "namespace": "default", "labels": {"rack": rack}}
        await client.create(BARE_METAL_HOSTS, body)
    chosen = Informer(client, BARE_METAL_HOSTS, labels="rack=1", namespace="default", backoff=QUICK)
    async with following(chosen):
        assert [item.metadata.name for item in chosen.items()] == ["a"]
        for name, rack in (("a", "2"), ("b", "1")):
            await client.patch(
                BARE_METAL_HOSTS, Key("default", name), {"metadata": {"labels": {"rack": rack}}}
            )
        await eventually(lambda: [item.metadata.name for item in chosen.items()] == ["b"])
    assert "does not stream lists" not in caplog.text


async def test_applied_fields_have_an_owner(client: Client):
    def wanted(description: str) -> dict[str, object]:
        return {"metadata": {"name": "h1"}, "spec": {"online": True, "description": description}}

    made = await client.apply(BARE_METAL_HOSTS, wanted("ours"), namespace="default")
    again = await client.apply(BARE_METAL_HOSTS, wanted("ours"), namespace="default")
    assert again.metadata.resource_version == made.metadata.resource_version
    with pytest.raises(Contested, match=r"\.spec\.description"):
        await client.apply(BARE_METAL_HOSTS, wanted("theirs"), namespace="default", field_manager="other")
    taken = await client.apply(
        BARE_METAL_HOSTS, wanted("theirs"), namespace="default", field_manager="other", force=True
    )
    assert taken.spec.description == "theirs"


async def test_a_restart_of_the_server_loses_nothing(tmp_path: Path):
    state = tmp_path / "state"
    async with serve(state) as first:
        port = first.port
        client = Client.from_kubeconfig(first.kubeconfig)
        await client.create(BARE_METAL_HOSTS, host())
        informer = Informer(client, BARE_METAL_HOSTS, backoff=QUICK)
        task = asyncio.create_task(informer.run())
        await informer.synced()
    await eventually(lambda: bool(informer.trouble))
    async with serve(state, port=port):
        await client.create(BARE_METAL_HOSTS, host("h2"))
        await eventually(lambda: informer.get(Key("default", "h2")) is not None)
        assert informer.get(HOST) is not None
    task.cancel()
    await asyncio.wait([task])
    await client.close()


async def test_a_database_that_was_removed_is_noticed(tmp_path: Path):
    state = tmp_path / "state"
    async with serve(state) as first:
        port = first.port
        client = Client.from_kubeconfig(first.kubeconfig)
        for number in range(5):
            await client.create(BARE_METAL_HOSTS, host(f"h{number}"))
        informer = Informer(client, BARE_METAL_HOSTS, backoff=QUICK)
        task = asyncio.create_task(informer.run())
        await informer.synced()
    for file in (state / "api").glob("api.db*"):
        file.unlink()
    async with serve(state, port=port):
        await eventually(lambda: list(informer.items()) == [])
    task.cancel()
    await asyncio.wait([task])
    await client.close()
    shutil.rmtree(state)


async def test_events_are_created_and_counted(client: Client):
    made = await client.create(BARE_METAL_HOSTS, host())
    async with EventRecorder(client) as recorder:
        recorder.record(made, type="Normal", reason="Registered", message="known to the back end")
        await asyncio.sleep(0.3)
        recorder.record(made, type="Normal", reason="Registered", message="known to the back end")
    (event,) = (await client.list(EVENTS, fields=f"involvedObject.uid={made.metadata.uid}")).items
    assert (event.count, event.reason, event.involved_object.kind) == (2, "Registered", "BareMetalHost")
    assert event.source.component == "metal3-baremetal-controller"


async def test_the_read_only_identity_is_told_no(server: Running, client: Client):
    await client.create(BARE_METAL_HOSTS, host())
    async with Client.from_kubeconfig(server.kubeconfig_readonly) as reader:
        assert (await reader.get(BARE_METAL_HOSTS, HOST)).key == HOST
        with pytest.raises(Forbidden):
            await reader.delete(BARE_METAL_HOSTS, HOST)
