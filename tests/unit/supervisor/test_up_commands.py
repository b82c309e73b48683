"""`ingot up`, `down` and `status` as a person calls them, with a supervisor of small processes in the state folder."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from supervised import end, lives

from ingot.cli.main import main
from ingot.embedded.supervisor import hold, holder

PROGRAM = Path(__file__).with_name("supervised.py")


def ingot(*arguments: str, answer: str = "") -> Result:
    return CliRunner().invoke(main, arguments, input=answer)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def supervisor(state: Path) -> Iterator[subprocess.Popen[str]]:
    """A running supervisor of this state folder."""
    (state / "run").mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(state / "run")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        _part, child = map(int, process.stdout.readline().split())
        try:
            yield process
        finally:
            process.terminate()
            process.wait()
            end(child)


def test_down_stops_what_runs_and_waits_for_it(state: Path, supervisor: subprocess.Popen[str]) -> None:
    result = ingot("down", "--state", str(state))
    assert result.exit_code == 0, result.output
    assert "Everything has stopped" in result.output
    assert holder(state / "run") is None
    assert supervisor.wait(60) == 0


def test_down_signals_nobody_when_the_holder_cannot_be_named(state: Path) -> None:
    with hold(state / "run"):
        (state / "run/lock").write_text("0\n")
        result = ingot("down", "--state", str(state))
    assert result.exit_code == 1
    assert "not as a process that can be seen from here" in result.output


def test_down_says_when_nothing_runs_and_that_is_no_error(state: Path) -> None:
    for _ in range(2):
        result = ingot("down", "--state", str(state))
        assert (result.exit_code, result.output) == (0, f"Nothing runs in {state}.\n")


def test_down_ends_what_a_killed_supervisor_left(state: Path, supervisor: subprocess.Popen[str]) -> None:
    child = int((state / "run/logs/parent.log").read_text().split()[-1])
    supervisor.kill()
    supervisor.wait()
    result = ingot("down", "--state", str(state))
    # The part itself dies with its supervisor, sooner or later; its child does not.
    assert re.search(r"but [12] leftovers of a run that was killed", result.output)
    assert not lives(child)


def test_wipe_stops_and_removes_the_folder(state: Path, supervisor: subprocess.Popen[str]) -> None:
    (state / "ca").mkdir()
    result = ingot("down", "--state", str(state), "--wipe", "--yes")
    assert result.exit_code == 0, result.output
    assert supervisor.wait(60) == 0
    assert not state.exists()


def test_wipe_asks_first(state: Path) -> None:
    (state / "ca").mkdir(parents=True)
    result = ingot("down", "--state", str(state), "--wipe", answer="n\n")
    assert result.exit_code == 1
    assert "There is no way back" in result.output
    assert (state / "ca").exists()


def test_wipe_refuses_a_folder_with_something_else_in_it(
    state: Path, supervisor: subprocess.Popen[str]
) -> None:
    (state / "thesis.odt").touch()
    result = ingot("down", "--state", str(state), "--wipe", "--yes")
    assert result.exit_code == 1
    assert "thesis.odt" in result.output
    assert (state / "thesis.odt").exists()
    assert supervisor.poll() is None, "a refusal changes nothing"


def test_up_refuses_a_folder_that_belongs_to_somebody_else(state: Path) -> None:
    state.mkdir()
    (state / "thesis.odt").touch()
    result = ingot("up", "--state", str(state))
    assert result.exit_code == 1
    assert "holds 'thesis.odt' and nothing of Ingot's" in result.output
    assert [path.name for path in state.iterdir()] == ["thesis.odt"]


def test_a_second_up_is_refused_and_told_who_runs(state: Path, supervisor: subprocess.Popen[str]) -> None:
    result = ingot("up", "--state", str(state))
    assert result.exit_code == 1
    assert f"process {supervisor.pid} already runs this installation" in result.output


def test_status_tells_each_part(state: Path, supervisor: subprocess.Popen[str]) -> None:
    result = ingot("status", "--state", str(state), "-o", "json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert (told["running"], told["ready"], told["pid"]) == (True, True, supervisor.pid)
    (part,) = told["parts"]
    assert (part["name"], part["state"], part["restarts"]) == ("parent", "ready", 0)
    assert lives(part["pid"])
    assert Path(part["log"]).exists()
    assert told["hostsUnknown"], "there is no API in this folder"
    text = ingot("status", "--state", str(state)).output
    assert f"running as process {supervisor.pid}, everything is ready" in text
    assert "parent" in text


def test_status_of_a_killed_supervisor_does_not_claim_that_its_parts_run(
    state: Path, supervisor: subprocess.Popen[str]
) -> None:
    supervisor.send_signal(signal.SIGKILL)
    supervisor.wait()
    told = json.loads(ingot("status", "--state", str(state), "-o", "json").output)
    assert (told["running"], told["ready"]) == (False, False)
    assert {(part["state"], part["pid"]) for part in told["parts"]} <= {("stopped", 0)}


def test_the_state_folder_can_come_from_the_environment(state: Path) -> None:
    result = CliRunner().invoke(main, ["status"], env={"INGOT_STATE": str(state)})
    assert str(state) in result.output
