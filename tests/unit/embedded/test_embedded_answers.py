"""Answers that are longer than one moment: lists that are sent while they are made, watches that meet an error."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from running_server import SECRETS, WIDGETS, Caller, a_widget, served

from ingot.embedded.server.documents import Document
from ingot.embedded.server.face.app import Api, server
from ingot.embedded.server.face.auth import Gate
from ingot.embedded.server.face.kubelets import Kubelets
from ingot.embedded.server.face.logs import Logs
from ingot.embedded.server.face.metrics import Metrics
from ingot.embedded.server.kinds.builtins import BUILT_IN, NAMESPACES
from ingot.embedded.server.kinds.columns import Column
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.store import Store
from ingot.embedded.server.writes.admission import Admission
from ingot.embedded.server.writes.webhooks import Webhooks
from ingot.embedded.server.writes.writing import Manner, Writing


async def test_a_list_that_is_sent_in_pieces_is_the_same_as_its_pages(tmp_path: Path) -> None:
    async with served(tmp_path, crds=()) as api:
        for number in range(12):
            large = {"metadata": {"name": f"s-{number:02}"}, "stringData": {"v": "x" * 100_000}}
            assert (await api.call("POST", SECRETS, large))[0] == 201
        async with api.session.get(api.url + SECRETS) as response:
            # Long enough to have no length.
            assert response.headers.get("Transfer-Encoding") == "chunked"
            whole = json.loads(await response.read())
        pages = []
        token = ""
        while True:
            _, page = await api.call("GET", SECRETS, limit="1", **({"continue": token} if token else {}))
            pages += page["items"]
            if not (token := page["metadata"].get("continue", "")):
                break
        assert whole["items"] == pages
        assert whole["kind"] == "SecretList"


async def test_a_short_list_has_a_length(tmp_path: Path) -> None:
    async with served(tmp_path, crds=()) as api, api.session.get(api.url + SECRETS) as response:
        assert int(response.headers["Content-Length"]) == len(await response.read())


async def test_who_leaves_in_the_middle_of_a_list_disturbs_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path, crds=()) as api:
        for number in range(20):
            large = {"metadata": {"name": f"s-{number}"}, "stringData": {"v": "x" * 500_000}}
            assert (await api.call("POST", SECRETS, large))[0] == 201
        for _ in range(5):
            response = await api.session.get(api.url + SECRETS)
            await response.content.read(1000)
            response.close()
        assert (await api.call("GET", f"{SECRETS}/s-1"))[0] == 200
    assert "failed with" not in caplog.text


def fails_for_the_second(document: Document) -> object:
    if document["metadata"]["name"] == "second":
        raise RuntimeError(document["spec"]["secret"])
    return "fine"


FRAGILE = Kind(
    group="example.com",
    version="v1",
    kind="Widget",
    plural="widgets",
    singular="widget",
    schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    columns=(Column("Fragile", fails_for_the_second),),
)


@contextlib.asynccontextmanager
async def fragile(folder: Path) -> AsyncIterator[Caller]:
    """A server with a kind whose table cannot always be made, without TLS and without anything in the background."""
    registry = Registry((*BUILT_IN, FRAGILE))
    store = Store(folder / "api.db", registry)
    writing = Writing(store, Admission(store, registry), Webhooks(store, registry))
    await writing.create(NAMESPACES, "", {"metadata": {"name": "default"}}, Manner())
    gate = Gate(folder)
    kubelets = Kubelets(store, registry, lambda: pytest.fail("nobody asks for logs"))
    api = Api(
        store=store,
        registry=registry,
        gate=gate,
        writing=writing,
        metrics=Metrics(store),
        pod_logs=Logs(store, registry, kubelets),
    )
    runner = web.ServerRunner(server(api))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    headers = {"Authorization": f"Bearer {gate.admin_token.reveal()}"}
    try:
        async with aiohttp.ClientSession(headers=headers) as session:
            yield Caller(session, f"http://127.0.0.1:{runner.addresses[0][1]}")
    finally:
        await runner.cleanup()
        await store.close()


async def test_a_watch_that_meets_an_error_ends_with_an_event_and_not_with_a_second_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with fragile(tmp_path) as api:
        headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        watch = await api.session.get(api.url + WIDGETS, params={"watch": "true"}, headers=headers)
        for name in ("first", "second"):
            assert await widget(api, name) == 201
        async with asyncio.timeout(60):
            events = [json.loads(line) for line in (await watch.read()).splitlines()]
    assert [event["type"] for event in events] == ["ADDED", "ERROR"]
    assert (events[-1]["object"]["kind"], events[-1]["object"]["code"]) == ("Status", 500)
    # What was in the object is not in the log; where it happened is.
    assert "failed with RuntimeError" in caplog.text
    assert "value-42" not in caplog.text


async def test_a_watcher_who_reads_nothing_does_not_fill_the_servers_memory(tmp_path: Path) -> None:
    async with served(tmp_path, crds=()) as api:
        seen = 0
        watch = await api.session.get(api.url + SECRETS, params={"watch": "true"})
        large = {"metadata": {"name": "s"}, "stringData": {"v": "x" * 700_000}}
        assert (await api.call("POST", SECRETS, large))[0] == 201
        for number in range(100):
            label = {"metadata": {"labels": {"n": str(number)}}}
            assert (await api.call("PATCH", f"{SECRETS}/s", label))[0] == 200
        # What he missed is beyond the history now: reading at last, he sees a part and is told to list again.
        told = b""
        async with asyncio.timeout(60):
            while b'"type":"ERROR"' not in told:
                told = told[-20:] + (piece := await watch.content.readany())
                assert piece
                seen += piece.count(b"\n")
        assert seen < 100
        watch.close()


async def test_a_list_that_meets_an_error_is_cut_and_cannot_be_taken_for_the_whole(tmp_path: Path) -> None:
    async with fragile(tmp_path) as api:
        for name in ("first", *(f"large-{number}" for number in range(5)), "second"):
            assert await widget(api, name) == 201
        headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        params = {"includeObject": "Object"}
        with pytest.raises(aiohttp.ClientError):
            async with api.session.get(api.url + WIDGETS, params=params, headers=headers) as response:
                await response.read()
        # What fails before anything was sent is an answer.
        async with api.session.get(f"{api.url}{WIDGETS}/second", headers=headers) as response:
            assert (response.status, (await response.json())["reason"]) == (500, "InternalError")


async def widget(api: Caller, name: str) -> int:
    spec = {"secret": "value-42", "large": "x" * 100_000}
    code, _ = await api.call("POST", WIDGETS, a_widget(name, spec))
    return code
