"""The commands that talk to a running farm: what a person types, and what that person reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from lab_bench import FAST

from ingot.cli.lab import lab as lab_command
from ingot.lab.client import Lab
from ingot.lab.farm import Farm
from ingot.lab.faults import Faults, Planned
from ingot.lab.settings import FarmSettings

Type = Callable[..., Awaitable[Result]]


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    settings = FarmSettings(
        state=tmp_path,
        servers=7,
        agent_api="https://127.0.0.1:1",
        timings=FAST,
        profiles=("generic", "dell"),
    )
    async with Farm.running(settings), Lab.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def typed(lab: Lab) -> Type:
    async def run(*words: str, given: str | None = None) -> Result:
        arguments = [*words, "--state", str(lab.state)]
        return await asyncio.to_thread(CliRunner().invoke, lab_command, arguments, given)

    return run


async def test_faults_are_given_by_name_and_taken_back_by_naming_none(lab: Lab, typed: Type) -> None:
    told = await typed("fault", "server-[12]", "bmc_down", "slow_seconds=3", "fail_steps={write_image: full}")
    assert told.output == "server-1, server-2: bmc_down, slow_seconds, fail_steps\n"
    wanted = Faults(bmc_down=True, slow_seconds=3, fail_steps={"write_image": "full"})
    assert [server.faults for server in await lab.servers("server-[123]")] == [wanted, wanted, Faults()]
    shown = await typed("list", "server-1")
    assert "bmc_down,fail_steps,slow_seconds" in shown.output
    told = await typed("fault", "*")
    assert told.output == "server-1, server-2, server-3 and 4 more: good behaviour\n"
    assert (await lab.server("server-1")).faults == Faults()


async def test_words_are_words_also_where_yaml_knows_better(lab: Lab, typed: Type) -> None:
    faults = ["power_lie=On", "fail_tasks=no", "fail_steps={write_image: off}", "bios_ignored=false"]
    told = await typed("fault", "server-1", *faults)
    assert told.exit_code == 0, told.output
    wanted = Faults(power_lie="On", fail_tasks="no", fail_steps={"write_image": "off"})
    assert (await lab.server("server-1")).faults == wanted
    await typed("plan", "server-1", "-", given="[{faults: {power_lie: Off, bmc_down: true}}]")
    assert (await lab.server("server-1")).plan == [Planned(faults=Faults(power_lie="Off", bmc_down=True))]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["explode"], "'explode' is no fault; there are bmc_down"),
        (["slow_seconds=fast"], "'fast' is no value for slow_seconds"),
        (["power_lie=Perhaps"], "'Perhaps' is no value for power_lie"),
        (["fail_steps={"], "is no value for fail_steps"),
    ],
)
async def test_a_fault_that_does_not_exist_is_named(typed: Type, words: list[str], told: str) -> None:
    done = await typed("fault", "server-1", *words)
    assert done.exit_code == 2
    assert told in done.output


async def test_a_plan_is_read_from_a_file_or_from_standard_input(
    lab: Lab, typed: Type, tmp_path: Path
) -> None:
    text = "- {after: 3600, lasts: 30, faults: {bmc_down: true}}\n"
    (tmp_path / "plan.yaml").write_text(text)
    told = await typed("plan", "server-1", str(tmp_path / "plan.yaml"))
    assert told.output == "server-1: 1 planned from now on\n"
    planned = [Planned(after=3600, lasts=30, faults=Faults(bmc_down=True))]
    assert (await lab.server("server-1")).plan == planned
    await typed("plan", "server-2", "-", given=text)
    assert (await lab.server("server-2")).plan == planned
    assert "Planned:      after 3600 s, for 30 s: bmc_down" in (await typed("show", "server-2")).output
    told = await typed("plan", "server-1")
    assert told.output == "server-1: nothing planned\n"
    assert (await lab.server("server-1")).plan == []
    wrong = await typed("plan", "server-1", "-", given="- {when: 5}")
    assert (wrong.exit_code, "the plan cannot be used" in wrong.output) == (1, True)


async def test_servers_are_held_and_released(lab: Lab, typed: Type) -> None:
    assert (await typed("hold", "server-1", "boot")).output == "server-1: held when at boot\n"
    assert (await lab.server("server-1")).hold == "boot"
    assert (await typed("release", "server-*")).exit_code == 0
    assert (await lab.server("server-1")).hold == ""


async def test_a_password_is_read_from_standard_input_or_made_up(lab: Lab, typed: Type) -> None:
    told = await typed("password", "server-1", given="new secret\n")
    assert told.output == "server-1: the BMC has another password\n"
    assert lab.file.servers[0].password == "new secret"
    await typed("password", "server-1", "--random")
    assert len(lab.file.servers[0].password) == 20


async def test_an_image_is_served_and_described(lab: Lab, typed: Type, tmp_path: Path) -> None:
    (tmp_path / "small.raw").write_bytes(b"hello")
    told = await typed("image", str(tmp_path / "small.raw"))
    assert told.output.splitlines()[0].endswith("/small.raw")
    as_json = json.loads((await typed("image", str(tmp_path / "small.raw"), "-o", "json")).output)
    assert as_json["size"] == 5


async def test_one_server_is_shown_with_its_log(lab: Lab, typed: Type) -> None:
    told = await typed("reset-bmc", "server-2", "--seconds", "0")
    assert told.output == "server-2: the BMC restarts and is back in 0 s\n"
    shown = (await typed("show", "server-2")).output
    assert "profile dell" in shown
    assert "Power:        Off" in shown
    assert "the BMC restarts" in shown
    assert json.loads((await typed("show", "server-2", "-o", "json")).output)["profile"] == "dell"


async def test_a_server_that_is_not_there_is_named(typed: Type) -> None:
    for words in (["show", "server-99"], ["fault", "rack-*"], ["hold", "rack-*", "boot"]):
        done = await typed(*words)
        assert done.exit_code == 1
        assert done.output.startswith("Error: the lab has no server")
