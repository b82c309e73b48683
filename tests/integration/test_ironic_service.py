"""The Ironic service with the real Ironic: its own environment, real processes, a real push receiver."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from service_room import BMC_PASSWORD, DEADLINE, Ironic, until

from ingot.services.environment import ensure
from ingot.services.ironic_conf import render


@pytest.fixture
async def ironic(tmp_path: Path) -> AsyncIterator[Ironic]:
    made = Ironic(tmp_path)
    yield made
    await made.close()


def test_ironic_knows_every_option_that_we_set(tmp_path: Path, ironic: Ironic) -> None:
    """An option that Ironic does not know is passed over in silence, so its own validator is asked."""
    file = tmp_path / "ironic.conf"
    file.write_text(render(ironic.settings))
    namespaces = ("ironic", "ingot_ironic", "oslo.messaging", "oslo.db", "oslo.concurrency", "oslo.log")
    checked = subprocess.run(
        [
            str(ensure().program("oslo-config-validator")),
            *("--fatal-warnings", "--input-file", str(file)),
            *(word for name in namespaces for word in ("--namespace", name)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr


async def test_the_api_is_for_those_who_come_over_tls_and_know_the_password(ironic: Ironic) -> None:
    await ironic.start()

    status, nodes = await ironic.call("GET", "/v1/nodes")
    assert (status, nodes["nodes"]) == (200, [])
    status, _ = await ironic.call("GET", "/v1/nodes", auth=False)
    assert status == 401
    assert await answer_without_tls(ironic.settings.listen_port) != 200
    for file in (ironic.settings.paths.config_file, ironic.settings.paths.htpasswd_file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert ironic.process is not None
    arguments = arguments_of(ironic.process.pid)
    assert "bin/ironic" in arguments, "the process that was started is Ironic's master"
    assert ironic.password.reveal() not in arguments


async def test_every_change_of_a_node_is_pushed_and_nothing_secret_with_it(ironic: Ironic) -> None:
    async with ironic.receiver.listening() as operator:
        await ironic.start()
        uuid = await ironic.create_node("rack-1~h1")
        created = await operator.hears(lambda event: event["uuid"] == uuid, "the new node")
        assert (created["name"], created["deleted"], created["fields"]) == ("rack-1~h1", False, {})

        await ironic.call("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "manage"})
        verifying = await operator.hears(
            lambda event: event["fields"].get("provision_state") == "verifying", "verifying"
        )
        assert verifying["fields"]["target_provision_state"] == "manageable"
        # Stock Ironic takes 154 s to give up a BMC that refuses connections, which is past our patience here.
        failed = await operator.hears(
            lambda event: (
                event["fields"].get("provision_state") == "enroll"
                and event["fields"].get("last_error") is not None
            ),
            "that the BMC cannot be reached",
        )
        assert "connect" in failed["fields"]["last_error"].lower()

        heard = len(operator.events)
        await ironic.call("POST", "/v1/ports", {"node_uuid": uuid, "address": "52:54:00:00:00:01"})

        async def port_was_heard() -> bool:
            return any(event["uuid"] == uuid and not event["fields"] for event in operator.events[heard:])

        await until(port_was_heard, "pushed: the new port")
        await ironic.call("DELETE", f"/v1/nodes/{uuid}")
        await operator.hears(
            lambda event: event["uuid"] == uuid and event["deleted"], "that the node is gone"
        )

        assert {sender["sender"] for sender in operator.messages} == {operator.messages[0]["sender"]}
        assert operator.messages[0]["patches"] == {
            "save_hook": True,
            "fast_key": True,
            "bmc_retries": True,
            "one_life": True,
            "quick_sqlite": True,
            "certificates": True,
            "unbroken_deploy": True,
        }
        assert [event["seq"] for event in operator.events] == list(range(1, len(operator.events) + 1))
        assert not any(message["gap"] for message in operator.messages)
        assert BMC_PASSWORD not in str(operator.messages)
        assert BMC_PASSWORD not in ironic.log.read_text()


async def test_a_dead_receiver_does_not_hold_ironic_up_and_hears_everything_later(ironic: Ironic) -> None:
    await ironic.start()
    first, second = await ironic.create_node("rack-1~h1"), await ironic.create_node("rack-1~h2")

    async with ironic.receiver.listening() as operator:
        await operator.hears(lambda event: event["uuid"] == first, "the first node")
        await operator.hears(lambda event: event["uuid"] == second, "the second node")
    assert operator.messages[0]["first"] == 1


async def test_an_idle_ironic_is_heard(ironic: Ironic) -> None:
    async with ironic.receiver.listening() as operator:
        await ironic.start()

        async def two_messages() -> bool:
            return len(operator.messages) >= 2

        await until(two_messages, "a hello and a heartbeat")
        assert operator.events == []


async def test_a_killed_ironic_comes_back_with_its_nodes_and_nothing_of_the_old_one_runs_on(
    ironic: Ironic,
) -> None:
    await ironic.start()
    uuid = await ironic.create_node("rack-1~h1")
    # A BMC that refuses connections keeps the worker busy: it would go on after its master is gone.
    await ironic.call("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "manage"})
    assert ironic.process is not None
    master = ironic.process
    group = processes_of_group(master.pid)
    assert len(group) >= 2
    master.kill()
    master.wait()

    await ironic.start()

    status, node = await ironic.call("GET", f"/v1/nodes/{uuid}")
    assert (status, node["name"]) == (200, "rack-1~h1")
    assert processes_of_group(master.pid) == [], "the worker of the killed master is gone"

    async def unlocked() -> bool:
        _, node = await ironic.call("GET", f"/v1/nodes/{uuid}")
        return node["reservation"] is None and node["provision_state"] == "enroll"

    await until(unlocked, "the node is free again")


async def test_a_second_ironic_on_the_same_folder_is_refused(ironic: Ironic) -> None:
    await ironic.start()
    assert ironic.process is not None
    before = ironic.settings.paths.config_file.stat().st_mtime_ns

    second = ironic.command()

    assert await asyncio.to_thread(second.wait, DEADLINE) == 1
    assert (
        f"already runs on {ironic.settings.paths.state} (process {ironic.process.pid})"
        in ironic.log.read_text()
    )
    assert ironic.settings.paths.config_file.stat().st_mtime_ns == before
    assert await ironic.answers()


async def test_a_database_left_half_made_is_made_again(ironic: Ironic) -> None:
    file = ironic.settings.paths.database_file
    file.parent.mkdir(parents=True)
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE nodes (id INTEGER PRIMARY KEY)")
    database.close()

    await ironic.start()

    await ironic.create_node("rack-1~h1")


async def answer_without_tls(port: int) -> int | None:
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/") as answer:
            return answer.status
    except aiohttp.ClientError:
        return None


def arguments_of(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text()


def processes_of_group(group: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getpgid(int(entry.name)) == group:
                found.append(int(entry.name))
        except ProcessLookupError:
            continue
    return found
