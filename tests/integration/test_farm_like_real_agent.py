"""The simulated agent beside ironic-python-agent 13 itself: call by call they ask, answer and choose the same.

So the farm and our back end cannot share a misreading. And the real agent, with nothing replaced but its hardware, is inspected
and cleaned by our Ironic.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from agent_environment import agent_python
from agent_recorder import NODE, TOKEN, Asked, Recorder
from ironic_room import Room, free_ports
from stories import story

from ingot.lab.agent.failures import checksum_wrong
from ingot.lab.agent.hints import root_device
from ingot.lab.client import Lab
from ingot.lab.devices import Device
from ingot.lab.errors import StepFailed
from ingot.lab.farm import Farm
from ingot.lab.faults import Faults
from ingot.lab.settings import FarmSettings, Timings
from ingot.lab.views import Change
from ingot.services.environment import without_ours
from ingot.trust import client_context

PROGRAM = Path(__file__).with_name("real_agent.py")
PATIENCE = 120.0
MACS = ["52:54:00:00:00:10", "52:54:00:00:00:11"]
NODE_SENT = {"uuid": NODE, "properties": {}, "instance_info": {}}

DEVICES = [
    Device(
        key=str(number),
        name=f"/dev/sd{letter}",
        model=model,
        vendor="Ingot",
        size=size << 30,
        rotational=rotational,
        serial=f"S{number}",
        transport="sata",
        address=f"0:0:{number}:0",
    )
    for number, letter, model, size, rotational in (
        (1, "a", "Simulated SSD", 20, False),
        (2, "b", "Simulated HDD", 100, True),
        (3, "c", "Other HDD", 200, True),
    )
]
HINTS: list[dict[str, Any]] = [
    {"name": "s== /dev/sdb"},
    {"name": "/dev/sdc"},
    {"size": 100},
    {"size": ">= 50"},
    {"size": "> 100"},
    {"size": "<= 20"},
    {"rotational": True},
    {"rotational": "false"},
    {"model": "<in> HDD"},
    {"model": "<in> hdd", "size": "== 200"},
    {"model": "s== simulated hdd"},
    {"model": "<or> nothing <or> Other HDD"},
    {"model": "s!= simulated ssd"},
    {"serial": "S3"},
    {"hctl": "0:0:2:0"},
    {"wwn": DEVICES[2].wwn},
    {"vendor": "Nobody"},
    {"by_path": DEVICES[1].shown()["by_path"]},
]

STEP = {"interface": "deploy", "priority": 10, "reboot_requested": False, "abortable": True}


def step(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """A request to run a step, as Ironic sends it."""
    params = {"step": {"step": name, **STEP}, "node": NODE_SENT, "ports": [], **more}
    return command(f"{kind}.execute_{kind}_step", params, wait="true")


def command(name: str, params: Any = None, *, wait: str = "true", token: str = TOKEN) -> dict[str, Any]:
    body = {"name": name} if params is None else {"name": name, "params": params}
    query = {"wait": wait, "agent_token": token}
    return {"method": "POST", "path": "/v1/commands/", "query": query, "json": body}


ASKED = {"node": NODE_SENT, "ports": []}
OFFERS = [command(f"{kind}.get_{kind}_steps", ASKED) for kind in ("clean", "deploy", "service")]
PLAIN = [
    {"path": "/v1/status"},
    {"path": "/v1/commands/", "query": {}},
    {"path": "/v1/commands/", "query": {"agent_token": "wrong"}},
    command("clean.get_clean_steps"),
    command("get_clean_steps", {}),
    command("kitchen.cook", {}),
    command("image.explode", {}),
    command("clean.get_clean_steps", ASKED, token="wrong"),
    {"path": "/v1/commands/no-such-id", "query": {"agent_token": TOKEN}},
    command("standby.sync", {}),
    step("clean", "erase_pstore"),
    step("clean", "erase_devices_metadata"),
    step("clean", "no_such_step"),
    step("clean", "erase_pstore", clean_version={"generic_hardware_manager": "0.1"}),
    command("standby.get_partition_uuids", {}),
    command("clean.execute_clean_step", {"step": {"step": "erase_devices", **STEP}, **ASKED}, wait="false"),
    command("clean.get_clean_steps", ASKED),
    {"path": "/v1/commands/", "query": {"agent_token": TOKEN}},
]
"""Two of the hardware's steps are told to misbehave: one fails, one lasts until it is let go."""
NEXT = [{"then": "goes on"}, {"path": "/v1/commands/", "query": {"agent_token": TOKEN}}]


@dataclass
class Seen:
    """What each of the two did."""

    farms: list[Asked]
    reals: list[Asked]
    farm_said: list[Any]
    real_said: list[Any]
    farm_offers: list[Any]
    real_offers: list[Any]
    fields: dict[str, Any]
    chosen: list[str | None]
    inventory: dict[str, Any]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def seen(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Seen]:
    """Both agents before the same recorder, once for all tests."""
    state = tmp_path_factory.mktemp("agents")
    async with Recorder.running(state) as recorder:
        ca = str(state / "ca" / "ca.crt")
        common = {"macs": MACS, "ca": ca, "url": recorder.url, "token": TOKEN}
        orders = [
            {"do": "calls", "certificate": "PEM", **common},
            {"do": "answers", "requests": OFFERS, **common},
            {"do": "answers", "requests": PLAIN + NEXT, "state": "the disk is on fire", **common},
            {"do": "fields", **common},
            {"do": "hints", "devices": [device.shown() for device in DEVICES], "hints": HINTS, **common},
        ]
        _, real_offers, real_said, fields, chosen = await ask_the_real_agent(orders)
        reals, recorder.asked = recorder.asked, []
        async with farm_server(state, recorder) as server:
            farm_said = await server.answers(PLAIN + NEXT)
            farm_offers = await server.answers(OFFERS)
        farms = recorder.asked
    inventory = next(asked.body for asked in farms if asked.path.endswith("inspection"))["inventory"]
    yield Seen(farms, reals, farm_said, real_said, farm_offers, real_offers, fields, chosen, inventory)


async def ask_the_real_agent(orders: list[dict[str, Any]]) -> list[Any]:
    python = await asyncio.to_thread(agent_python)
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=without_ours(os.environ),
    )
    out, err = await asyncio.wait_for(process.communicate(json.dumps(orders).encode()), PATIENCE)
    assert process.returncode == 0, err.decode()[-4000:]
    return list(json.loads(out.splitlines()[-1]))  # the agent logs there too


class Server:
    """A server of the farm whose agent was heard."""

    def __init__(self, lab: Lab, recorder: Recorder) -> None:
        self._lab = lab
        self._recorder = recorder

    async def boot(self) -> None:
        plate = self._lab.file.servers[0]
        headers = {"Authorization": aiohttp.encode_basic_auth(plate.username, plate.password)}
        base = f"https://{plate.host}:{plate.bmc_port}/redfish/v1"
        system = f"{base}/Systems/{plate.system_id}"
        boot = {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}
        insert = f"{base}/Managers/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
        trusted = aiohttp.TCPConnector(ssl=client_context(self._lab.state / "ca" / "ca.crt"))
        async with aiohttp.ClientSession(headers=headers, connector=trusted) as session:
            for method, url, body in (
                ("POST", insert, {"Image": self._lab.file.ramdisk_url}),
                ("PATCH", system, {"Boot": boot}),
                ("POST", f"{system}/Actions/ComputerSystem.Reset", {"ResetType": "On"}),
            ):
                async with session.request(method, url, json=body) as answer:
                    assert answer.status < 300, await answer.text()
        self._recorder.heard.clear()
        await asyncio.wait_for(self._recorder.heard.wait(), PATIENCE)

    async def answers(self, requests: list[dict[str, Any]]) -> list[Any]:
        """What its agent says to each: status and body."""
        beat = next(asked.body for asked in self._recorder.asked if "heartbeat" in asked.path)
        context = ssl.create_default_context(cadata=beat["agent_verify_ca"])
        said: list[Any] = []
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            for request in requests:
                if "then" in request:
                    await self._lab.release(self._lab.file.servers[0].name)
                    await self._until_done(session, beat["callback_url"])
                    continue
                async with session.request(
                    request.get("method", "GET"),
                    beat["callback_url"] + request["path"],
                    params=request.get("query", {}),
                    json=request.get("json"),
                ) as answer:
                    said.append([answer.status, await answer.json()])
        return said

    async def _until_done(self, session: aiohttp.ClientSession, url: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                async with session.get(f"{url}/v1/commands/", params={"agent_token": TOKEN}) as answer:
                    if (await answer.json())["commands"][-1]["command_status"] != "RUNNING":
                        return
                await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def farm_server(state: Path, recorder: Recorder) -> AsyncIterator[Server]:
    timings = Timings(boot=0.0, boot_unwatched=0.1, step=0.0)
    settings = FarmSettings(state=state, servers=1, agent_api=recorder.url, timings=timings)
    async with Farm.running(settings), Lab.open(state) as lab:
        faults = Faults(fail_steps={"erase_devices_metadata": "disk on fire"})
        await lab.change("*", Change(faults=faults, hold="erase_devices"))
        server = Server(lab, recorder)
        await server.boot()
        yield server


def unlike(ours: Any, theirs: Any, where: str = "") -> list[str]:
    """Where two documents differ in what they have and in the kinds of values; what is null in one may be anything."""
    if ours is None or theirs is None:
        return []
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = [f"{where}.{key} is only in one" for key in ours.keys() ^ theirs.keys()]
        return found + [
            line
            for key in ours.keys() & theirs.keys()
            for line in unlike(ours[key], theirs[key], f"{where}.{key}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list):
        return unlike(ours[0], theirs[0], f"{where}[0]") if ours and theirs else []
    return [] if type(ours) is type(theirs) else [f"{where}: {ours!r} and {theirs!r}"]


def without_what_is_new_each_time(said: Any) -> Any:
    """Ids and times are not compared, nor that the farm's agent has a hardware manager more."""
    if isinstance(said, dict):
        return {
            key: "any" if key in ("id", "started_at") else without_what_is_new_each_time(value)
            for key, value in said.items()
        }
    if isinstance(said, list):
        return [without_what_is_new_each_time(one) for one in said]
    return said.replace(", 'ingot_coreos': '1'", "") if isinstance(said, str) else said


same_loop = pytest.mark.asyncio(loop_scope="module")


@same_loop
async def test_the_farms_agent_asks_ironic_what_the_real_one_asks(seen: Seen) -> None:
    assert [(asked.method, asked.path) for asked in seen.farms] == [
        (asked.method, asked.path) for asked in seen.reals
    ]
    for farms, reals in zip(seen.farms, seen.reals, strict=True):
        assert farms.query.keys() == reals.query.keys(), farms.path
        assert farms.headers == reals.headers, farms.path
        assert unlike(farms.body, reals.body, farms.path) == []


@same_loop
async def test_its_inventory_has_what_the_real_ones_classes_have(seen: Seen) -> None:
    assert sorted(seen.inventory) == seen.fields["inventory"]
    for name, part in (
        ("interface", seen.inventory["interfaces"][0]),
        ("disk", seen.inventory["disks"][0]),
        ("cpu", seen.inventory["cpu"]),
        ("memory", seen.inventory["memory"]),
        ("system_vendor", seen.inventory["system_vendor"]),
        ("firmware", seen.inventory["system_vendor"]["firmware"]),
        ("boot", seen.inventory["boot"]),
    ):
        assert sorted(part) == sorted(seen.fields[name]), name


@same_loop
async def test_it_answers_commands_and_wrong_requests_as_the_real_one_does(seen: Seen) -> None:
    asked = [request for request in PLAIN + NEXT if "path" in request]
    for request, farms, reals in zip(asked, seen.farm_said, seen.real_said, strict=True):
        assert without_what_is_new_each_time(farms) == without_what_is_new_each_time(reals), request


@same_loop
async def test_what_it_offers_the_real_one_offers_in_the_same_words(seen: Seen) -> None:
    for kind, (_, farms), (_, reals) in zip(
        ("clean", "deploy", "service"), seen.farm_offers, seen.real_offers, strict=True
    ):
        theirs = {
            one["step"]: one for one in reals["command_result"][f"{kind}_steps"]["GenericHardwareManager"]
        }
        ours = farms["command_result"][f"{kind}_steps"]["GenericHardwareManager"]
        assert ours
        for offered in ours:
            real = theirs[offered["step"]]
            assert unlike(offered, real, offered["step"]) == []
            assert {key: offered[key] for key in offered if key != "argsinfo"} == {
                key: real[key] for key in real if key != "argsinfo"
            }
        assert (
            reals["command_result"]["hardware_manager_version"].items()
            <= farms["command_result"]["hardware_manager_version"].items()
        )


@same_loop
async def test_it_chooses_the_disk_that_the_real_one_chooses(seen: Seen) -> None:
    for wanted, real in zip(HINTS, seen.chosen, strict=True):
        if real is not None:
            assert root_device(DEVICES, wanted).name == real, wanted
            continue
        with pytest.raises(StepFailed, match="No suitable device was found"):
            root_device(DEVICES, wanted)


@same_loop
async def test_a_wrong_checksum_is_told_in_the_real_ones_words(seen: Seen) -> None:
    failed = checksum_wrong(url="https://x/disk.raw", image="the-id", wanted="aa", found="bb")
    assert seen.fields["checksum"] == {
        "type": failed.kind,
        "code": failed.code,
        "message": failed.summary,
        "details": failed.details,
    }


@contextlib.asynccontextmanager
async def real_agent(room: Room, macs: list[str], *, inspects: bool) -> AsyncIterator[None]:
    """The real agent, as it comes up on a machine with these network cards."""
    order = {
        "do": "live",
        "macs": macs,
        "ca": str(room.settings.ca_file),
        "url": room.settings.base_url,
        "inspects": inspects,
        "port": free_ports(1)[0],
    }
    python = await asyncio.to_thread(agent_python)
    with (room.state / "real-agent.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(str(python), str(PROGRAM)),
            stdin=asyncio.subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=without_ours(os.environ),
        )
    assert process.stdin is not None
    process.stdin.write(json.dumps([order]).encode())
    process.stdin.close()
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.wait()


@story
async def test_the_real_agent_is_inspected_and_cleaned_by_our_ironic(room: Room) -> None:
    host = room.server()
    await host.hold("boot")  # the machine itself stays in its firmware: the real agent speaks for it
    await host.create(automatedCleaningMode="metadata", image=host.image())
    await host.until_node(lambda node: node.provision_state == "inspect wait", "waiting for its inspection")
    async with real_agent(room, host.plate.macs, inspects=True):
        await host.until_node(lambda node: node.provision_state == "clean wait", "waiting to be cleaned")
    async with real_agent(room, host.plate.macs, inspects=False):
        await host.until_node(lambda node: node.provision_state == "wait call-back", "waiting for its image")
    seen = await host.seen()
    assert (seen.booted_into, seen.deployments, seen.cleanings) == ("nothing", 0, 0)
    await host.hold("")  # now its own agent speaks
    await host.reaches("provisioned")
    assert ((await host.seen()).deployments, (await host.seen()).cleanings) == (1, 0)
