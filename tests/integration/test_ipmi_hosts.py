"""Hosts that are reached over IPMI: the real Ironic, the real ipmitool, and BMCs that check passwords and keep their power state.

The BMCs know cipher suite 3 only, so that each of these stories is also one of a BMC that lacks the suite which is preferred.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from ipmi_bmc import PASSWORD, PROGRAM, Bmc
from ipmi_room import IPMITOOL, IpmiRoom
from ironic_room import NEEDS, Host, can_run
from stories import Stories

from ingot.api.baremetalhost import Annotation

stories = Stories()
story = stories.story

WRONG = "of-another-1"
ABSENT = 4
"""More than one, so that the one that is there would have to wait for them."""
TOLD_WITHIN = 180.0
"""Seconds. Ironic gives up after half a minute; the rest is for a machine that is busy."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def room(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[IpmiRoom]:
    if not can_run():
        pytest.skip(f"Ironic builds config drives with one of {', '.join(NEEDS)}, and none is installed")
    if missing := [name for name in (IPMITOOL, PROGRAM) if shutil.which(name) is None]:
        pytest.skip(f"not on PATH: {', '.join(missing)} (`make setup` fetches them, from Debian's packages)")
    async with IpmiRoom.open(tmp_path_factory.mktemp("ipmi"), servers=10) as room:
        assert isinstance(room, IpmiRoom)
        yield room
        await stories.end()


async def running(host: Host, bmc: Bmc) -> None:
    """Somebody's machine, which is only switched."""
    await host.create(address=bmc.address, password=PASSWORD, externallyProvisioned=True, online=False)
    await host.reaches("externally provisioned")


@story
async def test_a_host_is_registered_and_its_bmc_switches_it_softly_and_hard(room: IpmiRoom) -> None:
    host = room.server()
    with room.bmc_of(host) as bmc:
        await running(host, bmc)
        assert bmc.told == [], "registering asks, and changes nothing"

        await host.change(online=True)
        await host.until_power(on=True)
        assert bmc.told == ["power 1"]

        await host.change(online=False)
        await host.until_power(on=False)
        assert bmc.told[1:] == ["shutdown 1"]
        await host.change(online=True)
        await host.until_power(on=True)

        await host.annotate(Annotation.REBOOT, json.dumps({"mode": "hard"}))
        await host.until(lambda _: len(bmc.told) == 5, "switched off and on")
        await host.until(lambda found: Annotation.REBOOT not in found.metadata.annotations, "rebooted")
        await host.until_power(on=True)
        assert bmc.told[2:] == ["power 1", "power 0", "power 1"]
        assert bmc.is_on
        assert await host.troubles() == []


@story
async def test_a_host_that_is_inspected_is_told_to_boot_from_the_network_and_switched_on(
    room: IpmiRoom,
) -> None:
    host = room.server()
    with room.bmc_of(host) as bmc:
        await host.create(address=bmc.address, password=PASSWORD)
        await host.until(lambda _: bmc.is_on, "switched on for its inspection")
        assert bmc.told == ["boot pxe", "power 1"]


@story
async def test_a_wrong_password_is_told_in_words_and_the_host_goes_on_with_the_right_one(
    room: IpmiRoom,
) -> None:
    host = room.server()
    with room.bmc_of(host) as bmc:
        await host.create(address=bmc.address, password=WRONG, externallyProvisioned=True, online=False)
        told = (await host.until_error("refused the user name or password")).status
        assert told.error_type == "registration error"
        assert told.error_message.startswith(f"the BMC at {bmc.host} refused the user name or password.")
        assert f"Correct Secret {host.name}-bmc" in told.error_message
        assert WRONG not in told.error_message
        assert WRONG not in str(await host.troubles())

        await host.set_secret(f"{host.name}-bmc", password=PASSWORD)
        await host.until_well("externally provisioned")
        assert bmc.told == []


@story
async def test_bmcs_that_are_not_there_are_told_soon_and_hold_nobody_up(room: IpmiRoom) -> None:
    began = time.monotonic()
    absent = {room.loopback(): room.server() for _ in range(ABSENT)}
    for address, host in absent.items():
        await host.create(address=f"ipmi://{address}:6230", password=PASSWORD)

    there = room.server()
    with room.bmc_of(there) as bmc:
        await running(there, bmc)

    first = next(iter(absent))
    await absent[first].until_error("does not answer over IPMI")
    calls = room.called()
    assert first in calls[calls.index(bmc.host) :], "who is there is called while the others are tried"
    for host in absent.values():
        told = (await host.until_error("does not answer over IPMI")).status
        assert told.error_type == "registration error"
        assert "password" not in told.error_message, "which nobody could have refused"
    assert time.monotonic() - began < TOLD_WITHIN


@pytest.mark.asyncio(loop_scope="session")
async def test_passwords_are_in_no_command_line_and_in_no_log(
    room: IpmiRoom, request: pytest.FixtureRequest
) -> None:
    await stories.all_told(room, request.session.items)
    commands = room.commands()
    assert commands, "ipmitool was started"
    assert all(" -f " in command for command in commands)
    logs = [log.read_text(errors="replace") for log in room.state.glob("*.log")]
    for password in (PASSWORD, WRONG):
        assert not [text for text in (*commands, *logs) if password in text]
