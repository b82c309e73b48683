"""Booting: what the server boots from, and what it says when it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web
from lab_bench import FAST, Bench, config_drive, until
from lab_ironic import LabIronic

from ingot.lab.client import Lab
from ingot.lab.farm import Farm
from ingot.lab.firmware import after_boot, boot_target
from ingot.lab.record import Override
from ingot.lab.settings import FarmSettings
from ingot.trust import Authority


@pytest.mark.parametrize(
    ("override", "boots", "then"),
    [
        (Override(), "Hdd", Override()),
        (Override(target="Cd", enabled="Once"), "Cd", Override()),
        (Override(target="Cd", enabled="Once", mode="Legacy"), "Cd", Override(mode="Legacy")),
        (Override(target="Hdd", enabled="Continuous"), "Hdd", Override(target="Hdd", enabled="Continuous")),
        (Override(target="Cd", enabled="Continuous"), "Cd", Override(target="Cd", enabled="Continuous")),
        (Override(target="Cd", enabled="Disabled"), "Hdd", Override(target="Cd", enabled="Disabled")),
    ],
)
def test_once_means_once(override: Override, boots: str, then: Override) -> None:
    assert boot_target(override) == boots
    assert after_boot(override) == then


async def test_the_ramdisk_boots_from_the_virtual_cd_and_its_agent_speaks(bench: Bench) -> None:
    await bench.boot_ramdisk()
    server = await bench.server()
    assert server.booted_into == "ramdisk"
    (posted,) = bench.ironic.inspections
    macs = [nic["mac_address"] for nic in posted["inventory"]["interfaces"]]
    assert macs == server.macs
    assert posted["inventory"]["boot"]["pxe_interface"] is None
    assert bench.ironic.lookups == [",".join(server.macs)]
    assert (await bench.bmc("GET"))[1]["Boot"]["BootSourceOverrideEnabled"] == "Disabled"


async def test_a_second_boot_goes_to_the_disk(bench: Bench) -> None:
    await bench.boot_ramdisk()
    await bench.reset("ForceRestart")
    await bench.said("the disk is not bootable")
    assert (await bench.server()).booted_into == "nothing"


async def test_without_a_medium_it_does_not_boot_and_says_so(bench: Bench) -> None:
    await bench.boot_next("Cd")
    await bench.reset("On")
    assert "no medium is inserted" in await bench.said("does not boot")
    server = await bench.server()
    assert (server.power, server.booted_into) == ("On", "nothing")


async def test_a_medium_that_is_no_iso_does_not_boot(bench: Bench) -> None:
    image = await bench.lab.add_image(b"x" * 100_000)
    await bench.boot_medium(image.url)
    assert "not an ISO 9660 image" in await bench.said("does not boot")


async def test_an_iso_without_a_boot_loader_does_not_boot(bench: Bench) -> None:
    image = await bench.lab.add_image(config_drive(user_data="", hostname=""), name="data.iso")
    await bench.boot_medium(image.url)
    assert "no configuration of a boot loader" in await bench.said("does not boot")


async def test_a_medium_that_is_gone_does_not_boot(bench: Bench) -> None:
    await bench.boot_medium(bench.lab.file.ramdisk_url.replace("ramdisk.iso", "other.iso"))
    assert "HTTP 404" in await bench.said("does not boot")


@pytest.fixture
async def stranger(tmp_path: Path) -> AsyncIterator[str]:
    """A server whose certificate another authority signed, and that cuts what it sends."""

    async def serve(_: web.Request) -> web.StreamResponse:
        return web.Response(body=b"x" * 1000)

    app = web.Application()
    app.router.add_get("/medium.iso", serve)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    made = Authority(tmp_path / "other-ca").issue(tmp_path / "other", "x", ["127.0.0.1"])
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=made.server_context()).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}/medium.iso"
    await runner.cleanup()


async def test_a_medium_from_a_server_that_nobody_vouches_for_does_not_boot(
    bench: Bench, stranger: str
) -> None:
    await bench.boot_medium(stranger)
    assert "CERTIFICATE_VERIFY_FAILED" in await bench.said("does not boot")


async def test_a_boot_waits_until_somebody_looks(tmp_path: Path, ironic: LabIronic) -> None:
    patient = replace(FAST, boot_unwatched=3600.0)
    settings = FarmSettings(state=tmp_path, servers=1, agent_api=ironic.url, timings=patient)
    async with Farm.running(settings), Lab.open(tmp_path) as lab:
        bench = Bench(tmp_path, lab, ironic)
        await bench.insert(lab.file.ramdisk_url)
        await bench.boot_next("Cd")
        await bench.bmc("GET")  # looking before the power is on does not count
        await bench.reset("On")
        await asyncio.sleep(0.3)
        assert (await bench.server()).booted_into == "nothing"
        await bench.bmc("GET")

        async def heard() -> bool:
            return bool(ironic.heartbeats)

        await until(heard, "a heartbeat")


async def test_switching_off_ends_the_agent_at_once(bench: Bench) -> None:
    await bench.boot_ramdisk()
    await bench.reset("ForceOff")
    with pytest.raises(OSError):
        await bench.ironic.results()
    assert (await bench.server()).booted_into == "nothing"
