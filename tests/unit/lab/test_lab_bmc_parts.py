"""The BMC's parts over real HTTPS: BIOS, volumes, firmware, tasks, events, sensors, power that takes its time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web
from lab_bench import FAST, Bench, serving, until
from lab_bmc import bench_of, receiving
from lab_ironic import LabIronic

from ingot.lab.faults import Faults

UPDATE = "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate"
SUBSCRIPTIONS = "/redfish/v1/EventService/Subscriptions"
TASKS = "/redfish/v1/TaskService/Tasks"


async def firmware(_: web.Request) -> web.Response:
    return web.Response(body=b"ingot-firmware bmc 9.9.9\n")


async def ended(bench: Bench, path: str) -> Any:
    """The task, once it is neither at work nor waiting; a BMC that is away is asked again."""
    task: Any = None

    async def over() -> bool:
        nonlocal task
        try:
            status, task, _ = await bench.bmc("GET", path)
        except OSError:
            return False
        return status == 200

    await until(over, f"the end of {path}")
    return task


NO_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"Colour": "red"}, "no attribute Colour"),
    ({"BootMode": "Moon"}, "one of Uefi, Bios"),
    ({"BootTimeout": 9999}, "from 0 to 300"),
    ({"BootTimeout": True}, "from 0 to 300"),
    ({"QuietBoot": "yes"}, "true or false"),
    ({"AssetTag": "x" * 100}, "at most 63"),
    ({"SystemModelName": "mine"}, "read-only"),
]


async def test_bios_settings_that_make_no_sense_are_refused(bench: Bench) -> None:
    for attributes, words in NO_SETTINGS:
        status, body, _ = await bench.bmc("PATCH", "Bios/Settings", {"Attributes": attributes})
        assert (status, words in body["error"]["message"]) == (400, True), attributes
    assert (await bench.bmc("GET", "Bios/Settings"))[1]["Attributes"] == {}


async def test_bios_settings_outlive_the_farm_and_a_reset_takes_them_back(
    tmp_path: Path, ironic: LabIronic
) -> None:
    async with bench_of(tmp_path, ironic) as bench:
        assert (await bench.bmc("PATCH", "Bios/Settings", {"Attributes": {"BootTimeout": 30}}))[0] == 200
    async with bench_of(tmp_path, ironic) as bench:
        assert (await bench.bmc("GET", "Bios/Settings"))[1]["Attributes"] == {"BootTimeout": 30}
        await bench.reset("On")
        assert (await bench.bmc("GET", "Bios"))[1]["Attributes"]["BootTimeout"] == 30
        assert (await bench.bmc("POST", "Bios/Actions/Bios.ResetBios"))[0] == 200
        await bench.reset("ForceRestart")
        assert (await bench.bmc("GET", "Bios"))[1]["Attributes"]["BootTimeout"] == 5


async def test_a_bmc_update_restarts_the_bmc_which_then_has_the_version(bench: Bench) -> None:
    async with serving(bench.state, firmware) as url:
        status, _, headers = await bench.bmc("POST", UPDATE, {"ImageURI": url, "TransferProtocol": "HTTPS"})
        assert status == 202
        task = await ended(bench, headers["Location"])
    assert (task["TaskState"], task["TaskStatus"]) == ("Completed", "OK")
    assert (await bench.bmc("GET", "/redfish/v1/Managers/1"))[1]["FirmwareVersion"] == "9.9.9"
    await bench.said("the BMC restarts")


async def test_an_image_that_cannot_be_fetched_fails_the_task_with_the_reason(bench: Bench) -> None:
    async def gone(_: web.Request) -> web.Response:
        raise web.HTTPGone

    async with serving(bench.state, gone) as url:
        _, _, headers = await bench.bmc("POST", UPDATE, {"ImageURI": url})
        task = await ended(bench, headers["Location"])
    assert (task["TaskState"], task["TaskStatus"]) == ("Exception", "Critical")
    assert "HTTP 410" in task["Messages"][0]["Message"]


async def test_only_one_update_is_under_way(bench: Bench) -> None:
    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(3600)
        return web.Response()

    async with serving(bench.state, slow) as url:
        assert (await bench.bmc("POST", UPDATE, {"ImageURI": url}))[0] == 202
        status, body, _ = await bench.bmc("POST", UPDATE, {"ImageURI": url})
    assert status == 503
    assert "under way" in body["error"]["message"]


async def test_a_task_that_was_under_way_goes_on_after_the_farm_came_back(
    tmp_path: Path, ironic: LabIronic
) -> None:
    slow = replace(FAST, task=3600.0)
    async with bench_of(tmp_path, ironic, "dell", slow) as bench:
        status, _, headers = await bench.bmc("POST", "Storage/1/Volumes", {"RAIDType": "RAID1"})
        assert status == 202
        task = headers["Location"].rpartition("/")[2]
        assert (await bench.bmc("GET", f"{TASKS}/{task}"))[0] == 202
    async with bench_of(tmp_path, ironic, "dell") as bench:
        done = await ended(bench, f"{TASKS}/{task}")
        assert (done["TaskState"], done["Oem"]["Dell"]["JobType"]) == ("Completed", "RAIDConfiguration")
        volumes = (await bench.bmc("GET", "Storage/1/Volumes"))[1]["Members"]
        status, _, headers = await bench.bmc("GET", f"/redfish/v1/TaskService/TaskMonitors/{task}")
        assert (status, headers["Location"]) == (201, volumes[0]["@odata.id"])


async def test_tasks_fail_as_the_fault_says(bench: Bench) -> None:
    await bench.lab.set_faults(bench.plate.name, Faults(fail_tasks="The flash is worn out."))
    status, body, _ = await bench.bmc("POST", "Storage/1/Volumes", {"RAIDType": "RAID1"})
    assert (status, body["error"]["message"]) == (500, "The flash is worn out.")
    async with serving(bench.state, firmware) as url:
        _, _, headers = await bench.bmc("POST", UPDATE, {"ImageURI": url})
        task = await ended(bench, headers["Location"])
    assert (task["TaskState"], task["Messages"][0]["Message"]) == ("Exception", "The flash is worn out.")


async def test_events_reach_those_who_subscribed(tmp_path: Path, ironic: LabIronic) -> None:
    received: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        received.put_nowait((request.headers["X-Ticket"], await request.json()))
        return web.Response(status=204)

    async with bench_of(tmp_path, ironic) as bench, receiving(tmp_path, take) as url:
        wanted = {"Destination": url, "Protocol": "Redfish", "Context": "mine", "EventTypes": ["Alert"]}
        status, made, headers = await bench.bmc(
            "POST", SUBSCRIPTIONS, wanted | {"HttpHeaders": [{"X-Ticket": "7"}]}
        )
        assert (status, headers["Location"]) == (201, made["@odata.id"])
        assert made["HttpHeaders"] is None
        [seen] = (await bench.server()).components.subscriptions
        assert seen.headers == {"X-Ticket": "******"}
        for kind in ("StatusChange", "Alert"):
            body = {"EventType": kind, "MessageId": "Test.1.0.Word", "Message": "A word."}
            action = "/redfish/v1/EventService/Actions/EventService.SubmitTestEvent"
            assert (await bench.bmc("POST", action, body))[0] == 204
        ticket, event = await asyncio.wait_for(received.get(), 60)
        assert (ticket, event["Context"]) == ("7", "mine")
        assert event["Events"][0]["MessageId"] == "Test.1.0.Word"
        await bench.reset("On")
        _, event = await asyncio.wait_for(received.get(), 60)
        assert "its power is On" in event["Events"][0]["Message"]
        assert (await bench.bmc("DELETE", made["@odata.id"]))[0] == 204
        await bench.reset("ForceOff")
        assert received.empty()


NO_SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"Destination": "ftp://x", "Protocol": "Redfish"},
    {"Destination": "https://x", "Protocol": "SNMPv2c"},
    {"Destination": "https://x", "Protocol": "Redfish", "EventTypes": ["Weather"]},
    {"Destination": "https://x", "Protocol": "Redfish", "HttpHeaders": [{"A": "b\r\nC: d"}]},
]


async def test_a_subscription_that_makes_no_sense_is_refused(bench: Bench) -> None:
    for wanted in NO_SUBSCRIPTIONS:
        assert (await bench.bmc("POST", SUBSCRIPTIONS, wanted))[0] == 400, wanted


async def test_power_takes_its_time_where_it_is_said_to(tmp_path: Path, ironic: LabIronic) -> None:
    async with bench_of(tmp_path, ironic, timings=replace(FAST, power=0.5)) as bench:
        await bench.reset("On")
        assert (await bench.bmc("GET"))[1]["PowerState"] == "PoweringOn"

        async def on() -> bool:
            return bool((await bench.bmc("GET"))[1]["PowerState"] == "On")

        await until(on, "the power to be on")
        await bench.reset("ForceOff")
        assert (await bench.bmc("GET"))[1]["PowerState"] == "PoweringOff"


async def test_a_reset_of_the_bmc_ends_sessions_and_comes_back(bench: Bench) -> None:
    body = {"UserName": bench.plate.username, "Password": bench.plate.password}
    _, _, headers = await bench.bmc("POST", "/redfish/v1/SessionService/Sessions", body, auth=None)
    token: dict[str, Any] = {"auth": None, "headers": {"X-Auth-Token": headers["X-Auth-Token"]}}
    assert (await bench.bmc("GET", **token))[0] == 200
    action = "/redfish/v1/Managers/1/Actions/Manager.Reset"
    assert (await bench.bmc("POST", action, {"ResetType": "GracefulRestart"}))[0] == 204
    await bench.said("the BMC restarts")

    async def back() -> bool:
        try:
            return (await bench.bmc("GET", **token))[0] == 401
        except OSError:
            return False

    await until(back, "the BMC to be back without its sessions")


async def test_sensors_and_links_are_read_in_one_call(bench: Bench) -> None:
    _, cold, _ = await bench.bmc("GET", "/redfish/v1/Chassis/1?$expand=.($levels=1)")
    assert cold["Thermal"]["Fans"][0]["Reading"] == 0
    assert cold["Links"]["ManagedBy"] == [{"@odata.id": "/redfish/v1/Managers/1"}]
    await bench.reset("On")
    _, warm, _ = await bench.bmc("GET", "/redfish/v1/Chassis/1?$expand=.($levels=1)")
    assert warm["Thermal"]["Fans"][0]["Reading"] > 0
    assert warm["Power"]["PowerControl"][0]["PowerConsumedWatts"] > 100


async def test_a_method_that_is_not_there_is_refused_with_those_that_are(bench: Bench) -> None:
    status, body, headers = await bench.bmc("PATCH", "Processors", {})
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert "not allowed" in body["error"]["message"]
