"""The BMC over real HTTPS: who may log in, what it shows, what it refuses and in which words."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from lab_bench import FAST, Bench, status_of, until
from lab_ironic import LabIronic

from ingot.lab import labfile
from ingot.lab.chassis import Chassis
from ingot.lab.client import Lab
from ingot.lab.farm import Farm
from ingot.lab.faults import Faults
from ingot.lab.firmware import Firmware
from ingot.lab.ledger import Ledger
from ingot.lab.machine import Machine
from ingot.lab.redfish.bmc import Bmc
from ingot.lab.settings import FarmSettings
from ingot.trust import Authority

SESSIONS = "/redfish/v1/SessionService/Sessions"


async def log_in(bench: Bench, password: str | None = None) -> tuple[int, str]:
    body = {"UserName": bench.plate.username, "Password": password or bench.plate.password}
    status, _, headers = await bench.bmc("POST", SESSIONS, body, auth=None)
    return status, headers.get("X-Auth-Token", "")


async def test_the_root_is_open_and_leads_to_everything_else(bench: Bench) -> None:
    status, root, _ = await bench.bmc("GET", "/redfish/v1/", auth=None)
    assert status == 200
    waiting, seen = [root], set()
    while waiting:
        document = waiting.pop()
        if isinstance(document, dict):
            link = document.get("@odata.id")
            if link and "#" not in link and link not in seen:
                seen.add(link)
                status, target, _ = await bench.bmc("GET", link)
                assert status == 200, link
                waiting.append(target)
            waiting += list(document.values())
        elif isinstance(document, list):
            waiting += document
    assert f"/redfish/v1/Systems/{bench.plate.system_id}/EthernetInterfaces/1" in seen


async def test_what_is_below_the_root_is_expanded_only_for_those_who_log_in(bench: Bench) -> None:
    path = "/redfish/v1/?$expand=*"
    _, root, _ = await bench.bmc("GET", "/redfish/v1/", auth=None)
    assert (await bench.bmc("GET", path, auth=None))[1] == root
    assert (await bench.bmc("GET", path, auth=("admin", "wrong")))[0] == 401
    _, whole, _ = await bench.bmc("GET", path)
    assert whole["Systems"]["Members@odata.count"] == 1


async def test_a_light_and_a_boot_source_are_set_together_or_not_at_all(bench: Bench) -> None:
    def light(colour: str, target: str) -> dict[str, object]:
        boot = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": "Once"}
        return {"IndicatorLED": colour, "Boot": boot}

    async def now() -> tuple[str, str]:
        _, system, _ = await bench.bmc("GET")
        return system["IndicatorLED"], system["Boot"]["BootSourceOverrideTarget"]

    assert (await bench.bmc("PATCH", "", light("Lit", "Pxe")))[0] == 204
    assert await now() == ("Lit", "Pxe")
    for wrong in (light("Off", "Moon"), light("Green", "Cd")):
        assert (await bench.bmc("PATCH", "", wrong))[0] == 400
    assert await now() == ("Lit", "Pxe")


async def test_a_clock_is_set_but_not_to_where_dates_end(bench: Bench) -> None:
    manager = "/redfish/v1/Managers/1"
    for far in ("9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+14:00"):
        status, body, _ = await bench.bmc("PATCH", manager, {"DateTime": far})
        assert (status, "1970 to 2100" in body["error"]["message"]) == (400, True)
    assert (await bench.bmc("PATCH", manager, {"DateTime": "1970-01-01T00:00:00+00:00"}))[0] == 204
    assert (await bench.bmc("GET", manager))[1]["DateTime"].startswith("1970-01-01T00:")


async def test_a_bmc_that_restarts_twice_at_once_is_away_until_the_last_is_over(tmp_path: Path) -> None:
    [plate] = labfile.grown(tmp_path, host="127.0.0.1", servers=1).servers
    ledger = Ledger(tmp_path / "ledger")
    chassis = Chassis(plate, tmp_path / "server", ledger)
    machine = Machine(chassis, timings=FAST, firmware=Firmware(trusted=ssl.create_default_context()))
    certificate = Authority(tmp_path / "ca").issue(tmp_path / "tls", "bmc", [plate.host])
    bmc = Bmc(machine, certificate.server_context())
    await bmc.start()
    long = asyncio.create_task(bmc.restart(3600))
    try:
        await bmc.restart(0.01)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(plate.host, plate.bmc_port)
    finally:
        long.cancel()
        await asyncio.wait([long])
        await bmc.stop()
        await machine.stop()
        await ledger.close()


async def test_a_wrong_password_is_refused_in_redfish_words(bench: Bench) -> None:
    status, body, _ = await bench.bmc("GET", auth=("admin", "wrong"))
    assert status == 401
    assert "password is wrong" in body["error"]["@Message.ExtendedInfo"][0]["Message"]
    assert (await bench.bmc("GET", auth=None))[0] == 401
    assert await log_in(bench, "wrong") == (401, "")


@pytest.mark.parametrize("header", ["Basic \xfc", "Basic !", "Basic dXNlcg==", "Digest x", "Basic /w=="])
async def test_a_header_that_is_no_log_in_is_refused(bench: Bench, header: str) -> None:
    plate, path = bench.plate, f"/redfish/v1/Systems/{bench.plate.system_id}"
    for headers in ({"Authorization": header}, {"X-Auth-Token": header}):
        status = await asyncio.to_thread(
            status_of, bench, f"https://{plate.host}:{plate.bmc_port}{path}", headers
        )
        assert status == 401


async def test_a_session_works_until_it_is_closed(bench: Bench) -> None:
    body = {"UserName": bench.plate.username, "Password": bench.plate.password}
    status, document, headers = await bench.bmc("POST", SESSIONS, body, auth=None)
    assert status == 201
    assert headers["Location"] == document["@odata.id"]
    with_token = {"auth": None, "headers": {"X-Auth-Token": headers["X-Auth-Token"]}}
    assert (await bench.bmc("GET", **with_token))[0] == 200
    assert (await bench.bmc("DELETE", headers["Location"], **with_token))[0] == 204
    assert (await bench.bmc("GET", **with_token))[0] == 401


async def test_a_changed_password_ends_sessions_and_is_kept_in_the_lab_file(bench: Bench) -> None:
    _, token = await log_in(bench)
    old = bench.plate.password
    await bench.lab.set_password(bench.plate.name, "changed")
    assert bench.plate.password == "changed"
    assert (await bench.bmc("GET", auth=None, headers={"X-Auth-Token": token}))[0] == 401
    assert (await bench.bmc("GET", auth=("admin", old)))[0] == 401
    assert (await bench.bmc("GET"))[0] == 200


async def test_the_boot_override_is_set_with_the_tag_that_was_read(bench: Bench) -> None:
    _, _, headers = await bench.bmc("GET")
    boot = {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}
    tag = {"If-Match": headers["ETag"]}
    assert (await bench.bmc("PATCH", "", {"Boot": boot}, headers=tag))[0] == 204
    _, system, _ = await bench.bmc("GET")
    assert system["Boot"]["BootSourceOverrideTarget"] == "Cd"
    assert system["Boot"]["BootSourceOverrideMode"] == "UEFI"
    assert (await bench.bmc("PATCH", "", {"Boot": boot}, headers=tag))[0] == 412


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("PATCH", "", {"Boot": {"BootSourceOverrideTarget": "Moon"}}, "boot source override"),
        ("PATCH", "", {"Name": "mine"}, "Boot"),
        ("POST", "Actions/ComputerSystem.Reset", {"ResetType": "Explode"}, "reset type"),
        ("POST", "Actions/ComputerSystem.Reset", ["On"], "reset type"),
        (
            "POST",
            "/redfish/v1/Managers/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia",
            {"Image": "file:///x"},
            "URL",
        ),
    ],
)
async def test_what_makes_no_sense_is_refused_with_a_sentence(
    bench: Bench, method: str, path: str, body: object, words: str
) -> None:
    status, answer, _ = await bench.bmc(method, path, body)
    assert status == 400
    assert words in answer["error"]["message"]


async def test_an_unknown_path_is_answered_in_redfish_form(bench: Bench) -> None:
    status, body, _ = await bench.bmc("GET", "/redfish/v1/Fabrics")
    assert status == 404
    assert body["error"]["@Message.ExtendedInfo"]


async def test_media_go_in_and_out(bench: Bench) -> None:
    slot = "/redfish/v1/Managers/1/VirtualMedia/Cd"
    await bench.insert("https://127.0.0.1/x.iso")
    assert (await bench.bmc("GET", slot))[1]["Inserted"] is True
    for _ in range(2):  # ejecting an empty drive is no error
        assert (await bench.bmc("POST", f"{slot}/Actions/VirtualMedia.EjectMedia"))[0] == 204
    assert (await bench.bmc("GET", slot))[1]["Inserted"] is False


async def test_faults_are_acted_out_and_end(bench: Bench) -> None:
    name = bench.plate.name
    await bench.lab.set_faults(name, Faults(fail_power=True, fail_insert_media=True, fail_boot_device=True))
    status, body, _ = await bench.bmc("POST", "Actions/ComputerSystem.Reset", {"ResetType": "On"})
    assert (status, (await bench.server()).power) == (500, "Off")
    assert "power controller" in body["error"]["message"]
    insert = "/redfish/v1/Managers/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
    assert (await bench.bmc("POST", insert, {"Image": "https://x/"}))[0] == 500
    assert (await bench.bmc("PATCH", "", {"Boot": {"BootSourceOverrideTarget": "Hdd"}}))[0] == 500
    await bench.lab.set_faults(name, Faults(refuse_password=True))
    assert (await bench.bmc("GET"))[0] == 401
    await bench.lab.set_faults(name, Faults())
    await bench.reset("On")
    assert (await bench.server()).power == "On"


async def test_a_bmc_that_is_down_refuses_connections_until_it_is_up(bench: Bench) -> None:
    await bench.lab.set_faults(bench.plate.name, Faults(bmc_down=True))
    with pytest.raises(aiohttp.ClientConnectorError):
        await bench.bmc("GET")
    await bench.lab.set_faults(bench.plate.name, Faults())
    assert (await bench.bmc("GET"))[0] == 200


async def test_a_graceful_shutdown_ends_off(bench: Bench) -> None:
    await bench.reset("On")
    await bench.reset("GracefulShutdown")

    async def off() -> bool:
        return (await bench.server()).power == "Off"

    await until(off, "the power to be off")


async def test_a_graceful_shutdown_takes_its_time_and_is_overtaken_by_a_forced_one(
    tmp_path: Path, ironic: LabIronic
) -> None:
    slow = replace(FAST, shutdown=3600.0)
    settings = FarmSettings(state=tmp_path, servers=1, agent_api=ironic.url, timings=slow)
    async with Farm.running(settings), Lab.open(tmp_path) as lab:
        bench = Bench(tmp_path, lab, ironic)
        await bench.reset("On")
        await bench.reset("GracefulShutdown")
        assert (await bench.bmc("GET"))[1]["PowerState"] == "On"
        await bench.reset("ForceOff")
        assert (await bench.bmc("GET"))[1]["PowerState"] == "Off"


async def test_power_actions_are_counted_in_order(bench: Bench) -> None:
    for kind in ("On", "ForceRestart", "ForceOff", "PushPowerButton"):
        await bench.reset(kind)
    server = await bench.server()
    assert [action.what for action in server.power_actions] == [
        "On",
        "ForceRestart",
        "ForceOff",
        "PushPowerButton",
    ]
    assert (server.power, server.boots) == ("On", 3)
