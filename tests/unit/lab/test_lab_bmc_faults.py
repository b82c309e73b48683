"""A BMC that misbehaves: each fault is acted out, and ends."""

from __future__ import annotations

import json
from typing import Literal

import aiohttp
import pytest
from lab_bench import Bench, until

from ingot.lab.faults import Faults, Planned

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


async def test_a_fault_that_nobody_came_across_was_not_acted_out_and_one_that_was_is_counted(
    bench: Bench,
) -> None:
    await misbehave(bench, Faults(fail_power=True, unavailable=1, media_stuck=True))
    assert (await bench.server()).acted_out == {}
    on = {"ResetType": "On"}
    answers = [(await bench.bmc("POST", "Actions/ComputerSystem.Reset", on))[0] for _ in range(3)]
    assert answers == [503, 500, 500]
    await misbehave(bench, Faults())
    await bench.bmc("GET")
    assert (await bench.server()).acted_out == {"unavailable": 1, "fail_power": 2}


async def test_a_lie_that_is_true_is_none(bench: Bench) -> None:
    await misbehave(bench, Faults(power_lie="Off"))
    await bench.bmc("GET")
    assert (await bench.server()).acted_out == {}
    await bench.reset("On")
    await bench.bmc("GET")
    assert (await bench.server()).acted_out["power_lie"] >= 1


async def test_who_logs_in_is_in_the_log(bench: Bench) -> None:
    login = {"UserName": bench.plate.username, "Password": bench.plate.password}
    for _ in range(2):
        await bench.bmc("POST", SESSIONS, login, auth=None)
    lines = [line.text for line in (await bench.server()).log]
    assert lines == ["session 1 of the BMC is opened", "session 2 of the BMC is opened"]


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


@pytest.mark.parametrize("health", ["Warning", "Critical"])
async def test_a_server_that_is_not_well_says_so_and_is_well_again(
    bench: Bench, health: Literal["Warning", "Critical"]
) -> None:
    async def told() -> tuple[str, str]:
        shown = (await bench.bmc("GET"))[1]["Status"]
        return shown["Health"], shown["HealthRollup"]

    assert await told() == ("OK", "OK")
    await misbehave(bench, Faults(health=health))
    assert await told() == (health, health)
    await misbehave(bench, Faults())
    assert await told() == ("OK", "OK")


async def test_a_bmc_that_restarts_by_plan_is_away_for_as_long_and_forgets_who_was_logged_in(
    bench: Bench,
) -> None:
    login = {"UserName": bench.plate.username, "Password": bench.plate.password}
    opened = (await bench.bmc("POST", SESSIONS, login, auth=None))[2]
    session = {"X-Auth-Token": opened["X-Auth-Token"]}
    assert (await bench.bmc("GET", headers=session, auth=None))[0] == 200

    # Without an end first: a busy machine could miss a short one.
    await bench.lab.set_plan(bench.plate.name, Planned(after=0.1, faults=Faults(bmc_restarting=True)))

    async def answers() -> bool:
        try:
            return (await bench.bmc("GET"))[0] == 200
        except aiohttp.ClientConnectorError:
            return False

    async def away() -> bool:
        return not await answers()

    await until(away, "the BMC to be away")
    await bench.lab.set_plan(bench.plate.name, Planned(lasts=0.1, faults=Faults(bmc_restarting=True)))
    await until(answers, "the BMC to be back")
    assert (await bench.bmc("GET", headers=session, auth=None))[0] == 401


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
