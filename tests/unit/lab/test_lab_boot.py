"""Booting: what the server boots from, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web
from lab_bench import FAST, Bench, config_drive, serving, until
from lab_ironic import LabIronic

from ingot.formats.boot_parameters import grub_config
from ingot.formats.iso9660 import build_iso
from ingot.lab.client import Lab
from ingot.lab.farm import Farm
from ingot.lab.firmware import after_boot, boot_target
from ingot.lab.medium import CA_IN_RAMDISK
from ingot.lab.record import Override
from ingot.lab.samples import ramdisk_iso
from ingot.lab.settings import FarmSettings
from ingot.trust import HIDDEN


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
    assert "neither a boot record nor the configuration of a boot loader" in await bench.said("does not boot")


async def test_a_medium_that_is_gone_does_not_boot(bench: Bench) -> None:
    await bench.boot_medium(bench.lab.file.ramdisk_url.replace("ramdisk.iso", "other.iso"))
    assert "HTTP 404" in await bench.said("does not boot")


async def test_a_medium_from_a_server_that_nobody_vouches_for_does_not_boot(bench: Bench) -> None:
    async def serve(_: web.Request) -> web.Response:
        return web.Response(body=b"never read")

    async with serving(bench.state, serve, ca="other-ca") as url:
        await bench.boot_medium(url)
        assert "CERTIFICATE_VERIFY_FAILED" in await bench.said("does not boot")


async def test_a_medium_that_is_cut_short_does_not_boot(bench: Bench) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": "1000000"})
        await answer.prepare(request)
        await answer.write(b"x" * 1000)
        assert request.transport is not None
        request.transport.abort()
        return answer

    async with serving(bench.state, cut) as url:
        await bench.boot_medium(url)
        assert "cannot be fetched" in await bench.said("does not boot")


async def test_a_ramdisk_whose_authority_cannot_be_read_says_so(bench: Bench) -> None:
    iso = ramdisk_iso(agent_api="https://127.0.0.1:1", ca=b"no certificate")
    image = await bench.lab.add_image(iso, name="odd.iso")
    await bench.boot_medium(image.url)
    assert "the CA certificate in the ramdisk cannot be read" in await bench.said("does not boot")


async def test_a_token_on_the_medium_wins_over_the_one_from_look_up(bench: Bench) -> None:
    config = grub_config(
        kernel="/vmlinuz",
        initrd="/initrd",
        values={"ipa-api-url": bench.ironic.url, "ipa-agent-token": "from-the-medium"},
    )
    ca = (bench.state / "ca" / "ca.crt").read_bytes()
    files = {"/boot/grub/grub.cfg": config.encode(), CA_IN_RAMDISK: ca}
    iso = build_iso(files, label="R", made_at=datetime(2026, 1, 1, tzinfo=UTC))
    bench.ironic.token = "******"
    medium = await bench.lab.add_image(iso, name="own.iso")
    await bench.boot_medium(medium.url)

    async def heard() -> bool:
        return bool(bench.ironic.heartbeats)

    await until(heard, "a heartbeat")
    assert bench.ironic.heartbeats[0]["agent_token"] == "from-the-medium"
    assert bench.ironic.inspection_tries == 0  # the medium names no address for it
    booted = (await bench.server()).booted
    assert booted is not None
    assert (booted.url, booted.sha256) == (medium.url, medium.sha256)
    assert booted.parameters == {"ipa-api-url": bench.ironic.url, "ipa-agent-token": HIDDEN}
    assert booted.ca_sha256 == hashlib.sha256(ca).hexdigest()


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
