"""Every version of Ironic that there is a lock for: it starts, it takes our options, the plugin fits and push works."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from service_room import Ironic

from ingot.services import plugin
from ingot.services.environment import ensure, versions
from ingot.services.ironic_conf import render
from ingot.services.settings import IronicPaths, IronicSettings


@pytest.fixture(params=versions())
async def ironic(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Ironic]:
    made = Ironic(tmp_path, version=request.param)
    yield made
    await made.close()


def test_there_is_more_than_one() -> None:
    assert versions() == ["38", "39"]


async def test_the_plugin_fits_and_every_change_is_pushed(ironic: Ironic) -> None:
    async with ironic.receiver.listening() as operator:
        await ironic.start()
        uuid = await ironic.create_node("rack-1~h1")
        await operator.hears(lambda event: event["uuid"] == uuid, "the new node")
        await ironic.call("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "manage"})
        await operator.hears(
            lambda event: (
                event["fields"].get("provision_state") == "enroll"
                and event["fields"].get("last_error") is not None
            ),
            "that the BMC cannot be reached",
        )
        patches = operator.messages[0]["patches"]
    every = {
        file.stem for file in (plugin.sources() / "src").rglob("*.py") if "\ndef install(" in file.read_text()
    }
    assert patches == dict.fromkeys(every, True)
    _, drivers = await ironic.call("GET", "/v1/drivers")
    assert {"redfish", "idrac"} <= {driver["name"] for driver in drivers["drivers"]}


@pytest.mark.parametrize("version", versions())
def test_it_knows_every_option_that_we_set(version: str, tmp_path: Path) -> None:
    settings = IronicSettings(
        paths=IronicPaths.below(tmp_path / "ironic"),
        cert_file=tmp_path / "tls.crt",
        key_file=tmp_path / "tls.key",
        ca_file=tmp_path / "ca.crt",
        username="ingot",
        password_file=tmp_path / "password",
        version=version,
    )
    file = tmp_path / "ironic.conf"
    file.write_text(render(settings))
    namespaces = ("ironic", "ingot_ironic", "oslo.messaging", "oslo.db", "oslo.concurrency", "oslo.log")
    checked = subprocess.run(
        [
            str(ensure(version).program("oslo-config-validator")),
            *("--fatal-warnings", "--input-file", str(file)),
            *(word for name in namespaces for word in ("--namespace", name)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


async def test_a_database_of_the_older_one_is_upgraded_and_keeps_its_nodes(tmp_path: Path) -> None:
    older = Ironic(tmp_path, version="38")
    await older.start()
    uuid = await older.create_node("rack-1~h1")
    await older.close()
    with closing(sqlite3.connect(older.settings.paths.database_file)) as database:
        # As one older still wrote it.
        database.execute("UPDATE nodes SET version = '1.43'")
        database.commit()
    newer = Ironic(tmp_path, version="39")
    try:
        await newer.start()
        status, node = await newer.call("GET", f"/v1/nodes/{uuid}")
        assert (status, node["name"]) == (200, "rack-1~h1")
        # The columns that only the newer schema has are there.
        assert (await newer.call("GET", f"/v1/nodes/{uuid}/history"))[0] == 200
    finally:
        await newer.close()
    with closing(sqlite3.connect(newer.settings.paths.database_file)) as database:
        assert database.execute("SELECT version FROM nodes").fetchall() == [("1.44",)]


@pytest.mark.parametrize("version", versions())
async def test_however_many_nodes_it_was_at_when_it_was_killed_all_of_them_go_on(
    version: str, tmp_path: Path
) -> None:
    before = Ironic(tmp_path, version=version)
    await before.start()
    names = [f"rack-1~h{number}" for number in range(40)]
    for name in names:
        await before.create_node(name)
    await before.close()
    with closing(sqlite3.connect(before.settings.paths.database_file)) as database:
        database.execute(
            "UPDATE nodes SET provision_state = 'verifying', target_provision_state = 'manageable'"
        )
        database.commit()
    after = Ironic(tmp_path, version=version)
    try:
        await after.start()
        async with asyncio.timeout(60):
            found: dict[str, str] = {}
            while found != dict.fromkeys(names, "enroll"):
                found = await states(after)
    finally:
        await after.close()


async def states(ironic: Ironic) -> dict[str, str]:
    _, listed = await ironic.call("GET", "/v1/nodes?fields=name,provision_state")
    return {node["name"]: node["provision_state"] for node in listed["nodes"]}
