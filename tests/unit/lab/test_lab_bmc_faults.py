"""A BMC that misbehaves: each fault is acted out, and ends."""

from __future__ import annotations

import json

import pytest
from lab_bench import Bench

from ingot.lab.faults import Faults

CD = "/redfish/v1/Managers/1/VirtualMedia/Cd"
SESSIONS = "/redfish/v1/SessionService/Sessions"


async def misbehave(bench: Bench, faults: Faults) -> None:
    await bench.lab.set_faults(bench.plate.name, faults)


async def test_a_busy_bmc_answers_503_so_many_times(bench: Bench) -> None:
    await misbehave(bench, Faults(unavailable=2))
    seen = [(await bench.bmc("GET"))[0] for _ in range(3)]
    assert seen == [503, 503, 200]
    await misbehave(bench, Faults(unavailable=-1))
    assert [(await bench.bmc("GET"))[0] for _ in range(3)] == [503, 503, 503]


async def test_errors_without_a_body(bench: Bench) -> None:
    await misbehave(bench, Faults(no_json_errors=True, fail_insert_media=True))
    status, body, _ = await bench.bmc(
        "POST", f"{CD}/Actions/VirtualMedia.InsertMedia", {"Image": "https://x/"}
    )
    assert (status, body) == (500, None)
    assert (await bench.bmc("GET"))[1]["PowerState"] == "Off"


async def test_answers_that_end_in_the_middle(bench: Bench) -> None:
    await misbehave(bench, Faults(broken_json=True))
    with pytest.raises(json.JSONDecodeError):
        await bench.bmc("GET")


async def test_power_that_is_stuck_is_answered_well(bench: Bench) -> None:
    await misbehave(bench, Faults(power_stuck=True))
    await bench.reset("On")
    assert (await bench.bmc("GET"))[1]["PowerState"] == "Off"
    assert (await bench.server()).power_actions == []
    await misbehave(bench, Faults())
    await bench.reset("On")
    assert (await bench.bmc("GET"))[1]["PowerState"] == "On"


async def test_a_bmc_that_lies_about_the_power(bench: Bench) -> None:
    await misbehave(bench, Faults(power_lie="On"))
    assert (await bench.bmc("GET"))[1]["PowerState"] == "On"
    assert (await bench.server()).power == "Off"


async def test_a_medium_that_does_not_come_out(bench: Bench) -> None:
    await bench.insert("https://127.0.0.1:1/x.iso")
    await misbehave(bench, Faults(media_stuck=True))
    assert (await bench.bmc("POST", f"{CD}/Actions/VirtualMedia.EjectMedia"))[0] == 500
    assert (await bench.bmc("POST", f"{CD}/Actions/VirtualMedia.InsertMedia", {"Image": "https://y/"}))[
        0
    ] == 400
    assert (await bench.server()).media == {"Cd": "https://127.0.0.1:1/x.iso"}
    await misbehave(bench, Faults())
    assert (await bench.bmc("POST", f"{CD}/Actions/VirtualMedia.EjectMedia"))[0] == 204


async def test_a_password_that_has_expired_must_be_changed_first(bench: Bench) -> None:
    await misbehave(bench, Faults(password_expired=True))
    login = {"UserName": bench.plate.username, "Password": bench.plate.password}
    for answer in (await bench.bmc("GET"), await bench.bmc("POST", SESSIONS, login, auth=None)):
        status, body, _ = answer
        assert status == 403
        assert body["error"]["code"].endswith("PasswordChangeRequired")
    assert (await bench.bmc("GET", auth=("admin", "wrong")))[0] == 401


async def test_bios_settings_that_are_taken_and_never_applied(bench: Bench) -> None:
    await misbehave(bench, Faults(bios_ignored=True))
    assert (await bench.bmc("PATCH", "Bios/Settings", {"Attributes": {"BootTimeout": 9}}))[0] == 200
    await bench.reset("On")
    assert (await bench.bmc("GET", "Bios"))[1]["Attributes"]["BootTimeout"] == 5
    assert (await bench.bmc("GET", "Bios/Settings"))[1]["Attributes"] == {"BootTimeout": 9}
    await misbehave(bench, Faults())
    await bench.reset("ForceRestart")
    assert (await bench.bmc("GET", "Bios"))[1]["Attributes"]["BootTimeout"] == 9
