"""The lab's hosts in the API: created once, then the user's. Against the real embedded API."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import NAMESPACES, SECRETS
from ingot.api.meta import Key
from ingot.cli.parts.practice import create_once, read_applied
from ingot.cli.parts.state import StateFolder
from ingot.embedded.server import serve
from ingot.kube import Client, NotFound
from ingot.lab.labfile import LabFile, Plate, SampleImage
from ingot.lab.manifests import manifests

FIRST, SECOND = Key("default", "server-1"), Key("default", "server-2")


def lab(servers: int) -> LabFile:
    image = SampleImage(
        name="sample",
        format="qcow2",
        url="https://127.0.0.1:1/sample.qcow2",
        sha256="ab" * 32,
        disk_sha256="cd" * 32,
        size=1,
    )
    plates = [
        Plate(
            name=f"server-{number}",
            system_id=f"00000000-0000-0000-0000-00000000000{number}",
            host="127.0.0.1",
            bmc_port=8000 + number,
            username="admin",
            password="password",
            macs=[f"52:54:00:00:00:0{number}"],
        )
        for number in range(1, servers + 1)
    ]
    return LabFile(host="127.0.0.1", depot_port=1, depot_token="t", images=[image], servers=plates)


def objects(servers: int, *, provision: int = 0) -> list[dict[str, Any]]:
    return manifests(lab(servers), provision=provision)


@pytest.fixture
async def state(tmp_path: Path) -> StateFolder:
    folder = StateFolder(tmp_path / "state")
    folder.create()
    return folder


@pytest.fixture
async def client(state: StateFolder) -> AsyncIterator[Client]:
    async with serve(state.path) as running, Client.from_kubeconfig(running.kubeconfig) as client:
        yield client


async def names(client: Client) -> list[str]:
    return sorted(host.metadata.name for host in (await client.list(BARE_METAL_HOSTS)).items)


async def test_every_server_becomes_a_host_with_its_secret(client: Client, state: StateFolder) -> None:
    applied = await create_once(client, state, objects(2, provision=1))
    assert applied.hosts == [FIRST, SECOND]
    assert applied.by == os.getpid()
    assert read_applied(state) == applied
    host = await client.get(BARE_METAL_HOSTS, FIRST)
    assert host.spec.image is not None
    assert (await client.get(SECRETS, Key("default", "server-1-bmc"))).text("password") == "password"


async def test_what_the_user_changed_stays_changed(client: Client, state: StateFolder) -> None:
    await create_once(client, state, objects(1))
    await client.patch(BARE_METAL_HOSTS, FIRST, {"spec": {"online": False}})
    await create_once(client, state, objects(1, provision=1))
    host = await client.get(BARE_METAL_HOSTS, FIRST)
    assert host.spec.online is False
    assert host.spec.image is None


async def test_what_the_user_deleted_stays_deleted(client: Client, state: StateFolder) -> None:
    await create_once(client, state, objects(2))
    await client.delete(BARE_METAL_HOSTS, SECOND)
    applied = await create_once(client, state, objects(2))
    assert await names(client) == ["server-1"]
    assert SECOND in applied.hosts, "it is remembered"


async def test_a_lab_that_grew_gets_its_new_hosts_only(client: Client, state: StateFolder) -> None:
    await create_once(client, state, objects(2))
    await client.delete(BARE_METAL_HOSTS, FIRST)
    await create_once(client, state, objects(3))
    assert await names(client) == ["server-2", "server-3"]


async def test_objects_from_a_run_that_was_killed_are_left_as_they_are(
    client: Client, state: StateFolder
) -> None:
    await create_once(client, state, objects(1))
    (state.run / "applied.json").unlink()
    applied = await create_once(client, state, objects(2))
    assert applied.hosts == [FIRST, SECOND]
    assert await names(client) == ["server-1", "server-2"]


async def test_a_new_api_gets_its_hosts_although_an_old_one_had_them(
    client: Client, state: StateFolder, tmp_path: Path
) -> None:
    await create_once(client, state, objects(1))
    async with serve(tmp_path / "other") as running, Client.from_kubeconfig(running.kubeconfig) as other:
        with pytest.raises(NotFound):
            await other.get(BARE_METAL_HOSTS, FIRST)
        await create_once(other, state, objects(1))
        assert await names(other) == ["server-1"]
        ours, theirs = [
            (await api.get(NAMESPACES, Key("", "kube-system"))).metadata.uid for api in (client, other)
        ]
        assert ours != theirs
