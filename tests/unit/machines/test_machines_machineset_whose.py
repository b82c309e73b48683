"""Whose MachineSets are: on a cluster with a Machine API operator they are left to it, and still follow the number of hosts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest
import pytest_asyncio
from keeping_room import IMAGE, Room, an_empty_room

from ingot.api.machine import MACHINE_SETS, MACHINES, Annotation
from ingot.api.meta import Key, Object, Resource
from ingot.embedded.server import Running, serve
from ingot.kube import ApiError, Client, Forbidden, NotFound, Unavailable, config
from ingot.machines.machineset.whose import CLUSTER_OPERATORS, Whose, WhoseSets

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEFINITIONS: Final = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    type=Object,
    namespaced=False,
)
FOLLOWS: Final = {str(Annotation.AUTOSCALE): ""}


@pytest_asyncio.fixture(loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A cluster that nobody has told anything yet."""
    async with serve(tmp_path_factory.mktemp("api")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(api: Running) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(api.kubeconfig) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="module")
async def room(client: Client) -> AsyncIterator[Room]:
    async with an_empty_room(client, whose="auto") as room:
        yield room


def definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": "clusteroperators.config.openshift.io"},
        "spec": {
            "group": "config.openshift.io",
            "scope": "Cluster",
            "names": {
                "kind": "ClusterOperator",
                "plural": "clusteroperators",
                "singular": "clusteroperator",
                "listKind": "ClusterOperatorList",
            },
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


async def install_operator(client: Client, name: str) -> None:
    """The kind, and an object of it."""
    await client.create(DEFINITIONS, definition())
    async with asyncio.timeout(60):
        while True:
            try:
                await client.create(CLUSTER_OPERATORS, {"metadata": {"name": name}})
                return
            except NotFound:
                await asyncio.sleep(0.05)


async def test_a_cluster_that_knows_no_operators_leaves_sets_to_us(room: Room) -> None:
    await room.start()
    await room.a_set(replicas=2)
    await room.settled(count=2)


async def test_a_cluster_with_other_operators_leaves_sets_to_us(room: Room, client: Client) -> None:
    await install_operator(client, "ingress")
    await room.start()
    await room.a_set(replicas=1)
    await room.settled(count=1)


async def test_sets_of_a_machine_api_operator_are_left_alone_and_follow_the_number_of_hosts(
    room: Room, client: Client
) -> None:
    await install_operator(client, "machine-api")
    await room.start()
    await room.a_host("h1")
    await room.a_host("h2")
    await room.a_set("theirs", replicas=1)
    await room.a_set("follows", replicas=0, annotations=FOLLOWS, provider={"image": IMAGE})
    found = await room.until(MACHINE_SETS, "follows", lambda found: found.spec.replicas == 2)
    assert found.status.observed_generation == 0
    assert (await room.get(MACHINE_SETS, "theirs")).status.observed_generation == 0
    assert await room.machines() == []


@pytest.mark.parametrize(("whose", "ours"), [("on", True), ("off", False)])
async def test_whoever_says_whose_they_are_is_believed(whose: WhoseSets, ours: bool, client: Client) -> None:
    await install_operator(client, "machine-api" if ours else "ingress")
    assert await Whose(client, whose).ours() is ours


class Refused(Client):
    """One that the API tells nothing."""

    error: ApiError

    async def get(self, kind: Resource[Any], key: Key) -> Any:
        raise self.error


async def test_where_nobody_tells_us_they_are_left_alone(
    api: Running, caplog: pytest.LogCaptureFixture
) -> None:
    async with Refused(config.load(api.kubeconfig)) as refused:
        refused.error = Forbidden(403, "Forbidden", "clusteroperators is forbidden")
        whose = Whose(refused, "auto")
        assert await whose.ours() is False
        assert "--machinesets on or off" in caplog.text


async def test_an_api_that_cannot_be_asked_is_asked_again_before_anything_is_done(api: Running) -> None:
    async with Refused(config.load(api.kubeconfig)) as refused:
        refused.error = Unavailable(503, "Unavailable", "later")
        with pytest.raises(Unavailable):
            await Whose(refused, "auto").ours()


class MayNotMake(Client):
    """One that may do everything but make objects of a kind."""

    error: ApiError
    tries = 0

    async def create(self, kind: Resource[Any], body: Mapping[str, Any], *, namespace: str = "") -> Any:
        if kind is MACHINES:
            self.tries += 1
            raise self.error
        return await super().create(kind, body, namespace=namespace)


@pytest.mark.parametrize(
    "error",
    [
        Forbidden(403, "Forbidden", "machines is forbidden"),
        ApiError(500, "InternalError", "the API cannot"),
    ],
)
async def test_machines_that_may_not_be_made_are_no_reason_to_try_without_end(
    api: Running, room: Room, error: ApiError
) -> None:
    async with MayNotMake(config.load(api.kubeconfig)) as client:
        client.error = error
        room.through = client
        await room.start()
        await room.a_set(replicas=1)
        await asyncio.sleep(4)
        await room.stop()
        # The pauses grow: after four seconds there were those of a few milliseconds, and a handful more.
        assert 1 <= client.tries <= 12
    if isinstance(error, Forbidden):
        assert "machines is forbidden" in (await room.events("FailedCreate"))[0]
