"""The farm's BMCs as sushy sees them, the library that Ironic has: farm and client must not share a misreading.

Starting sushy is dear, so one process tells all stories to one farm with a server of each vendor, and each test reads its part.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from lab_bench import FAST, serving
from lab_ironic import DEADLINE

from ingot.lab.client import Lab
from ingot.lab.farm import Farm
from ingot.lab.hardware import STANDARD
from ingot.lab.labfile import LabFile, Plate
from ingot.lab.profiles import PROFILES
from ingot.lab.settings import FarmSettings
from ingot.services.environment import ensure

SCRIPT = Path(__file__).with_name("sushy_client.py")
IMAGE = "https://127.0.0.1:1/boot.iso"
BIOS = {"ProcVirtualization": "Disabled", "BootTimeout": 30, "QuietBoot": False}
Order = tuple[str, str, dict[str, Any]]


@dataclass
class Stories:
    """What sushy saw, by vendor and story; what the BMCs fetched."""

    lab: LabFile
    told: dict[tuple[str, str], Any]
    fetched: list[str]

    def plate(self, profile: str) -> Plate:
        return _plate(self.lab, profile)


def _plate(lab: LabFile, profile: str) -> Plate:
    return next(plate for plate in lab.servers if plate.profile == profile)


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Stories:
    return asyncio.run(_tell(tmp_path_factory.mktemp("sushy")))


async def _tell(state: Path) -> Stories:
    fetched: list[str] = []

    async def firmware(request: web.Request) -> web.Response:
        fetched.append(request.path)
        return web.Response(body=b"ingot-firmware bios 2.5.0\n" + bytes(1000))

    settings = FarmSettings(
        state=state,
        servers=len(PROFILES),
        profiles=tuple(PROFILES),
        agent_api="https://127.0.0.1:1",
        timings=FAST,
    )
    async with Farm.running(settings), Lab.open(state) as lab, serving(state, firmware) as url:
        orders: list[Order] = [
            *((name, "look", {}) for name in ("generic", "dell")),
            ("lenovo", "small_things", {"time": "2030-01-02T03:04:05+00:00"}),
            *((name, "boot", {"image": IMAGE}) for name in PROFILES),
            *((name, "configure", {"bios": BIOS}) for name in ("generic", "dell")),
            ("generic", "http_boot", {"image": IMAGE}),
            *((name, "volumes", {"drives": ["2", "3"]}) for name in ("generic", "dell", "hpe")),
            *((name, "update", {"image": url}) for name in ("generic", "dell")),
            ("generic", "subscribe", {"destination": url}),
            ("generic", "unsubscribe", {}),
            ("dell", "idrac", {}),
        ]
        told = await _sushy(state, lab.file, orders)
        names = [(profile, story) for profile, story, _ in orders]
        return Stories(lab.file, dict(zip(names, told, strict=True)), fetched)


async def _sushy(state: Path, lab: LabFile, orders: list[Order]) -> list[Any]:
    wanted = []
    for profile, story, needs in orders:
        plate = _plate(lab, profile)
        login = {"username": plate.username, "password": plate.password, "system": plate.system_id}
        where = {"url": f"https://{plate.host}:{plate.bmc_port}/", "ca": str(state / "ca" / "ca.crt")}
        wanted.append({"story": story, "with": needs, **where, **login})
    process = await asyncio.create_subprocess_exec(
        str((await asyncio.to_thread(ensure)).python),
        str(SCRIPT),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={},
    )
    try:
        async with asyncio.timeout(DEADLINE):
            out, err = await process.communicate(json.dumps(wanted).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    told: list[Any] = json.loads(out)
    return told


@pytest.mark.parametrize("name", ["generic", "dell"])
def test_sushy_reads_a_server_as_it_was_built(stories: Stories, name: str) -> None:
    seen, plate, profile = stories.told[name, "look"], stories.plate(name), PROFILES[name]
    assert (seen["uuid"], seen["power"], seen["health"]) == (plate.system_id, "Off", "OK")
    assert (seen["manufacturer"], seen["model"]) == (profile.manufacturer, profile.model)
    assert (seen["cpus"], seen["memory_gib"]) == (STANDARD.cpus, STANDARD.memory_mib // 1024)
    assert seen["macs"] == sorted(plate.macs)
    assert seen["drives"] == sorted(drive.size for drive in STANDARD.drives)
    assert seen["free_drives"] == [drive.id for drive in STANDARD.drives]
    assert seen["raid_types"] == list(STANDARD.storages[0].raid_types)
    assert set(seen["registry"]) == set(seen["bios"])
    assert (seen["pending"], seen["apply_times"]) == ({}, ["OnReset"])
    assert seen["bmc"] == {"model": profile.bmc_model, "version": profile.bmc_version}
    assert seen["firmware"]["BIOS"] == profile.bios_version
    assert seen["nic_firmware"] == [profile.nic_version]
    assert sorted(seen["media"]) == sorted([slot.id, list(slot.types)] for slot in profile.slots)
    assert (seen["expanded_storage"], seen["expanded_chassis"]) == (1, [profile.chassis])
    assert (seen["tasks"], seen["subscriptions"]) == (0, 0)


@pytest.mark.parametrize("name", list(PROFILES))
def test_sushy_boots_a_server_of_every_vendor_from_a_virtual_medium(stories: Stories, name: str) -> None:
    target = "UsbCd" if name == "supermicro" else "Cd"
    assert stories.told[name, "boot"] == {
        "inserted": [True, IMAGE],
        "armed": [target, "Once"],
        "ejected": [False, None],
    }


def test_sushy_boots_a_server_by_http(stories: Stories) -> None:
    assert stories.told["generic", "http_boot"] == {"target": "UefiHttp", "url": IMAGE}


@pytest.mark.parametrize("name", ["generic", "dell"])
def test_sushy_sees_bios_settings_and_secure_boot_wait_for_the_boot(stories: Stories, name: str) -> None:
    seen = stories.told[name, "configure"]
    now, pending = seen["before"]
    assert (now["ProcVirtualization"], pending) == ("Enabled", BIOS)
    now, pending = seen["after"]
    assert ({name: now[name] for name in BIOS}, pending) == (BIOS, {})
    assert seen["secure"] == [True, "Enabled"]


@pytest.mark.parametrize("name", ["generic", "dell", "hpe"])
def test_sushy_makes_and_removes_volumes_at_once_by_a_task_and_at_a_boot(stories: Stories, name: str) -> None:
    seen = stories.told[name, "volumes"]
    assert seen["volumes"] == [["root", "RAID1", STANDARD.drives[1].size]]
    assert (seen["free"], seen["left"]) == (["1"], 0)
    if name == "hpe":
        assert (seen["waits"], seen["task"]) == (True, "Completed")
    else:
        assert seen["answer"] == "Volume"


@pytest.mark.parametrize("name", ["generic", "dell"])
def test_sushy_updates_firmware_that_the_bmc_really_fetches(stories: Stories, name: str) -> None:
    assert stories.told[name, "update"] == {
        "waiting": ["Pending", True],
        "ended": ["Completed", 100],
        "version": "2.5.0",
    }
    assert stories.fetched == ["/file", "/file"]


def test_sushy_subscribes_to_events_and_ends_it(stories: Stories) -> None:
    assert stories.told["generic", "subscribe"]["context"] == "told"
    assert stories.told["generic", "unsubscribe"] == {"left": 0}


def test_sushy_switches_lights_and_sets_the_clock(stories: Stories) -> None:
    seen = stories.told["lenovo", "small_things"]
    assert seen["lights"] == ["Blinking", "Blinking", "Blinking"]
    assert seen["time"].startswith("2030-01-02")
    assert seen["power"] == "Off"


def test_sushy_does_what_the_idrac_driver_does(stories: Stories) -> None:
    seen = stories.told["dell", "idrac"]
    assert seen["armed"] == ["Cd", "Once"]
    assert seen["pxe_macs"] == [stories.plate("dell").macs[0]]
    assert seen["ready"] is True
    assert seen["jobs"][-2:] == ["ImportConfiguration", "ExportConfiguration"]
    assert (seen["unfinished"], seen["cleared"], seen["foreign"]) == ([], 0, 0)
