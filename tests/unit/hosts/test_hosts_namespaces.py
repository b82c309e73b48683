"""An operator that is named no namespace looks after the hosts of all of them, and keeps them apart."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from rack import Operator, Rack
from scripted import ScriptedBackend

from ingot.api.baremetalhost import Annotation
from ingot.api.core import NAMESPACES, SECRETS
from ingot.api.meta import Key
from ingot.embedded.server import serve
from ingot.hosts import HostSettings
from ingot.kube import Client, EventRecorder


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def everywhere(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Client, ScriptedBackend, Operator]]:
    """An API of its own: an operator of all namespaces would take the hosts of the other tests for its own."""
    backend = ScriptedBackend()
    async with (
        serve(tmp_path_factory.mktemp("everywhere")) as api,
        Client.from_kubeconfig(api.kubeconfig) as client,
        EventRecorder(client) as recorder,
    ):
        operator = Operator(client, backend, recorder, HostSettings(), namespace="")
        await operator.start()
        yield client, backend, operator
        await operator.end()


async def in_namespace(everywhere: tuple[Client, ScriptedBackend, Operator], name: str) -> Rack:
    client, backend, operator = everywhere
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    return Rack(client, backend, operator, namespace=name)


async def test_hosts_of_one_name_in_two_namespaces_are_two_hosts(
    everywhere: tuple[Client, ScriptedBackend, Operator],
) -> None:
    one, two = await in_namespace(everywhere, "one"), await in_namespace(everywhere, "two")
    keys = [await rack.host(online=rack is one) for rack in (one, two)]
    for key in keys:
        await one.until_state(key, "available")
    await one.until(keys[0], lambda host: host.status.powered_on)
    await one.settle()
    assert not (await two.get(keys[1])).status.powered_on
    await one.delete(keys[0])
    await one.until_gone(keys[0])
    await one.until_missing(SECRETS, one.bmc)
    assert (await two.get(keys[1])).state == "available"
    assert (await two.client.get(SECRETS, two.bmc)).metadata.finalizers


async def test_secrets_of_another_namespace_are_neither_read_nor_marked(
    everywhere: tuple[Client, ScriptedBackend, Operator],
) -> None:
    here, elsewhere = await in_namespace(everywhere, "here"), await in_namespace(everywhere, "elsewhere")
    await elsewhere.secret()
    key = await here.host(secret=False)
    await here.until_error(key, "does not exist in namespace here")
    await here.settle()
    found = await here.client.get(SECRETS, elsewhere.bmc)
    assert (found.metadata.labels, found.metadata.finalizers) == ({}, [])


async def test_a_namespace_that_goes_takes_no_notes_and_its_hosts_can_be_deleted_by_force_nevertheless(
    everywhere: tuple[Client, ScriptedBackend, Operator], caplog: pytest.LogCaptureFixture
) -> None:
    rack = await in_namespace(everywhere, "going")
    key = await rack.host()
    await rack.until_state(key, "available")
    rack.backend.away = "connection refused"
    await rack.client.delete(NAMESPACES, Key("", "going"))
    await rack.until(key, lambda host: "the deletion waits for the back end" in rack.sentence(host))
    await rack.annotate(key, Annotation.FORCE_DELETE)
    await rack.until_gone(key)
    assert "cannot be noted" in caplog.text
    await rack.until_missing(NAMESPACES, Key("", "going"))
    rack.backend.come_back()
