"""The Ironic service with the real Ironic: its own environment, real processes, a real push receiver, a front server.

One Ironic serves all tests of this file. It starts under hard conditions: its database was left half made, and nobody listens
when it begins to push.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import ssl
import stat
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from service_room import BMC_PASSWORD, DEADLINE, Ironic, free_port, until

from ingot.services.environment import ensure
from ingot.services.ironic_conf import render
from ingot.trust import Authority, client_context

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ironic(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ironic]:
    made = Ironic(tmp_path_factory.mktemp("service"), reverse_proxy=True, private_port=str(free_port()))
    leave_half_made(made.settings.paths.database_file)
    made.program("ipmitool")
    try:
        await made.start()
        await made.start_front()
        for name in ("rack-1~h1", "rack-1~h2"):
            await made.create_node(name)
        async with made.receiver.listening():
            yield made
    finally:
        await made.close()


def leave_half_made(file: Path) -> None:
    file.parent.mkdir(parents=True)
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE nodes (id INTEGER PRIMARY KEY)")
    database.close()


async def test_a_database_left_half_made_is_made_again_and_what_nobody_heard_is_told_later(
    ironic: Ironic,
) -> None:
    _, listed = await ironic.call("GET", "/v1/nodes")
    for node in listed["nodes"]:
        await ironic.receiver.hears(lambda event, uuid=node["uuid"]: event["uuid"] == uuid, node["name"])
    assert ironic.receiver.messages[0]["first"] == 1


async def test_every_change_of_a_node_is_pushed_and_nothing_secret_with_it(ironic: Ironic) -> None:
    operator = ironic.receiver
    uuid = await ironic.create_node("rack-1~h3")
    created = await operator.hears(lambda event: event["uuid"] == uuid, "the new node")
    assert (created["name"], created["deleted"], created["fields"]) == ("rack-1~h3", False, {})

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
    await operator.hears(lambda event: event["uuid"] == uuid and event["deleted"], "that the node is gone")

    assert {sender["sender"] for sender in operator.messages} == {operator.messages[0]["sender"]}
    assert operator.messages[0]["patches"] == {
        "save_hook": True,
        "fast_key": True,
        "bmc_retries": True,
        "one_life": True,
        "one_look": True,
        "paced_looks": True,
        "quick_schemas": True,
        "quick_sqlite": True,
        "kept_sqlite": True,
        "sqlite_turns": True,
        "certificates": True,
        "patient_heartbeats": True,
        "ipmi_words": True,
        "early_reports": True,
        "bounded_settings": True,
        "honest_updates": True,
        "token_again": True,
        "roomy_api": True,
        "quiet_steps": True,
        "quiet_orders": True,
        "unbroken_deploy": True,
        "unbroken_clean": True,
        "unbroken_power": True,
        "unbroken_updates": True,
        "fresh_steps": True,
        "no_stragglers": True,
    }
    assert [event["seq"] for event in operator.events] == list(range(1, len(operator.events) + 1))
    assert not any(message["gap"] for message in operator.messages)
    assert BMC_PASSWORD not in str(operator.messages)
    assert BMC_PASSWORD not in ironic.log.read_text()


async def test_an_idle_ironic_is_heard(ironic: Ironic) -> None:
    heard = len(ironic.receiver.messages)

    async def one_more() -> bool:
        return any(not message["events"] for message in ironic.receiver.messages[heard:])

    await until(one_more, "a heartbeat")


async def test_ironic_knows_every_option_that_we_set(ironic: Ironic, tmp_path: Path) -> None:
    """An option that Ironic does not know is passed over in silence, so its own validator is asked."""
    file = tmp_path / "ironic.conf"
    file.write_text(render(replace(ironic.settings, network_boot=True, use_coreos=True)))
    namespaces = ("ironic", "ingot_ironic", "oslo.messaging", "oslo.db", "oslo.concurrency", "oslo.log")
    checked = await asyncio.to_thread(
        subprocess.run,
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
    assert (await ironic.call("GET", "/v1/nodes"))[0] == 200
    assert (await ironic.call("GET", "/v1/nodes", auth=False))[0] == 401
    assert await answer_without_tls(int(ironic.settings.private_port)) != 200
    for file in (ironic.settings.paths.config_file, ironic.settings.paths.htpasswd_file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert ironic.process is not None
    arguments = arguments_of(ironic.process.pid)
    assert "bin/ironic" in arguments, "the process that was started is Ironic's master"
    assert ironic.password.reveal() not in arguments


async def test_all_hardware_types_are_there_with_all_their_interfaces(ironic: Ironic) -> None:
    _, told = await ironic.call("GET", "/v1/drivers?detail=true")
    boots = {driver["name"]: set(driver["enabled_boot_interfaces"]) for driver in told["drivers"]}
    assert boots == {
        "ipmi": {"ipxe", "http-ipxe", "pxe", "http"},
        "redfish": {"redfish-virtual-media", "redfish-https", "ipxe", "http-ipxe", "pxe", "http"},
        "idrac": {"idrac-redfish-virtual-media", "redfish-https", "ipxe", "http-ipxe", "pxe", "http"},
    }
    assert {driver["default_deploy_interface"] for driver in told["drivers"]} == {"direct"}


async def test_an_agent_reaches_its_three_calls_and_nothing_else(ironic: Ironic) -> None:
    mac, node = "52:54:00:00:00:99", "0b7f4c1e-93cf-4b6a-8f25-6a0f6f5d2f11"
    heartbeat = {"callback_url": "https://127.0.0.1:9999", "agent_token": "t"}
    for method, path, body in (
        ("GET", f"/v1/lookup?addresses={mac}", None),
        ("POST", f"/v1/heartbeat/{node}", heartbeat),
        ("POST", "/v1/continue_inspection", {"inventory": {"interfaces": [{"mac_address": mac}]}}),
    ):
        status, text = await ironic.call_front(method, path, body)
        # Ironic's own words: it was asked, and knows no such machine.
        assert (status, "could not be found" in text) == (404, True), text
    status, text = await ironic.call_front("GET", "/")
    assert (status, '"version": "1.' in text) == (200, True)
    for path in ("/v1", "/v1/nodes", "/v1/drivers", "/v1/conductors"):
        assert await ironic.call_front("GET", path) == (404, '{"error_message": "There is nothing here."}')


async def test_what_ironic_publishes_has_a_url_that_cannot_be_guessed(ironic: Ironic) -> None:
    key = ironic.settings.paths.files_key_file.read_text()
    status, text = await ironic.call_front("GET", f"/files/{key}/boot.ipxe")
    assert (status, text.startswith("#!ipxe")) == (200, True)
    assert (
        f"http_url = {ironic.settings.base_url}/files/{key}\n"
        in ironic.settings.paths.config_file.read_text()
    )
    assert (await ironic.call_front("GET", "/files/boot.ipxe"))[0] == 404


async def test_a_renewed_certificate_is_served_by_both_and_nothing_is_restarted(ironic: Ironic) -> None:
    assert ironic.process is not None
    group = processes_of_group(ironic.process.pid)
    ports = (int(ironic.settings.private_port), ironic.settings.listen_port)
    before = {port: await shown(ironic, port) for port in ports}
    renewed = Authority(ironic.folder / "ca").issue(ironic.folder / "renewed", "ironic", ["127.0.0.1"])
    renewed.key_file.replace(ironic.settings.key_file)
    renewed.cert_file.replace(ironic.settings.cert_file)

    async def both_changed() -> bool:
        return all([await shown(ironic, port) != before[port] for port in ports])

    await until(both_changed, "both listeners show the new certificate")
    assert processes_of_group(ironic.process.pid) == group
    assert (await ironic.call("GET", "/v1/nodes"))[0] == 200


async def test_a_second_ironic_on_the_same_folder_is_refused(ironic: Ironic) -> None:
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


async def test_a_killed_ironic_comes_back_with_its_nodes_and_nothing_of_the_old_one_runs_on(
    ironic: Ironic,
) -> None:
    uuid = await ironic.create_node("rack-1~h4")
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
    assert (status, node["name"]) == (200, "rack-1~h4")
    assert processes_of_group(master.pid) == [], "the worker of the killed master is gone"

    async def unlocked() -> bool:
        _, node = await ironic.call("GET", f"/v1/nodes/{uuid}")
        return node["reservation"] is None and node["provision_state"] == "enroll"

    await until(unlocked, "the node is free again")


async def shown(ironic: Ironic, port: int) -> bytes:
    """The certificate that a listener shows."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=client_context(ironic.settings.ca_file)
    )
    tls = writer.get_extra_info("ssl_object")
    assert isinstance(tls, ssl.SSLObject)
    found = tls.getpeercert(binary_form=True)
    writer.close()
    assert found
    assert not reader.at_eof()
    return found


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
