"""The supervisor with real processes that die, hang, refuse to stop and print without end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from supervised import lives

from ingot.embedded.supervisor import (
    Part,
    PartFailed,
    State,
    Supervisor,
    SupervisorError,
    read_status,
)

FOREVER = "import time; print('ready', flush=True); time.sleep(600)"


def part(name: str, program: str, *arguments: str, **more: object) -> Part:
    settings: dict[str, object] = {"ready_line": "ready", "grace": 5.0, **more}
    return Part(name=name, argv=[sys.executable, "-S", "-c", program, *arguments], **settings)  # type: ignore[arg-type]


def state(supervisor: Supervisor, name: str) -> State:
    return next(status.state for status in supervisor.status.parts if status.name == name)


def pid(supervisor: Supervisor, name: str) -> int:
    return next(status.pid for status in supervisor.status.parts if status.name == name)


async def until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - other processes give no event to wait for
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"never happened: {what}") from None


async def ready(supervisor: Supervisor) -> None:
    await until(lambda: supervisor.status.all_ready, f"all ready: {supervisor.status.parts}")


@asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(supervisor.run())
    try:
        yield task
    finally:
        supervisor.stop()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_part_starts_only_when_the_ones_before_it_are_ready(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    waits = (
        "import pathlib, sys, time\n"
        "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.02)\n"
        "print('ready', flush=True); time.sleep(600)"
    )
    supervisor = Supervisor(
        tmp_path / "run",
        [part("second", FOREVER, after=["first"]), part("first", waits, str(gate))],
    )
    async with running(supervisor):
        await until(lambda: pid(supervisor, "first") > 0, "first runs")
        second = next(status for status in supervisor.status.parts if status.name == "second")
        assert (second.state, second.pid) == (State.WAITING, 0)
        assert second.why == "waits for first"
        gate.touch()
        await ready(supervisor)


async def test_a_part_that_is_killed_is_started_again_and_counted(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path / "run", [part("server", FOREVER)])
    async with running(supervisor):
        await ready(supervisor)
        before = pid(supervisor, "server")
        os.kill(before, signal.SIGKILL)
        await until(lambda: pid(supervisor, "server") not in (0, before), "a new process")
        await ready(supervisor)
        assert supervisor.status.parts[0].restarts == 1


async def test_a_part_that_dies_does_not_restart_the_ones_after_it(tmp_path: Path) -> None:
    supervisor = Supervisor(
        tmp_path / "run", [part("api", FOREVER), part("operator", FOREVER, after=["api"])]
    )
    async with running(supervisor):
        await ready(supervisor)
        operator, api = pid(supervisor, "operator"), pid(supervisor, "api")
        os.kill(api, signal.SIGKILL)
        await until(lambda: pid(supervisor, "api") not in (0, api), "a new api")
        await ready(supervisor)
        assert pid(supervisor, "operator") == operator


async def test_a_part_that_can_never_start_fails_with_its_last_words_and_ends_the_others(
    tmp_path: Path,
) -> None:
    broken = "import sys; print('the port is taken'); sys.exit(3)"
    supervisor = Supervisor(tmp_path / "run", [part("well", FOREVER), part("broken", broken)])
    with pytest.raises(PartFailed) as failure:
        await supervisor.run()
    assert "broken was started 5 times" in str(failure.value)
    assert "exited with code 3" in str(failure.value)
    assert "the port is taken" in str(failure.value)
    assert str(tmp_path / "run/logs/broken.log") in str(failure.value)
    assert [status.pid for status in supervisor.status.parts] == [0, 0]
    assert state(supervisor, "broken") is State.FAILED


async def test_a_command_that_does_not_exist_fails_with_a_sentence(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path / "run", [Part(name="ghost", argv=["no-such-command"], ready_line="x")])
    with pytest.raises(PartFailed, match="cannot start no-such-command: No such file or directory"):
        await supervisor.run()


async def test_a_part_that_refuses_to_stop_is_killed_after_its_grace(tmp_path: Path) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('ready', flush=True); time.sleep(600)"
    )
    supervisor = Supervisor(tmp_path / "run", [part("stubborn", stubborn, grace=0.2)])
    async with running(supervisor):
        await ready(supervisor)
        number = pid(supervisor, "stubborn")
    assert not lives(number)
    assert state(supervisor, "stubborn") is State.STOPPED


async def test_a_stop_can_be_made_short(tmp_path: Path) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "print('ready', flush=True); time.sleep(600)"
    )
    supervisor = Supervisor(tmp_path / "run", [part("stubborn", stubborn, grace=3600.0)])
    async with running(supervisor) as task:
        await ready(supervisor)
        supervisor.stop()
        await until(lambda: state(supervisor, "stubborn") is State.STOPPING, "it stops")
        supervisor.stop_now()
        await asyncio.wait_for(task, 60)
    assert state(supervisor, "stubborn") is State.STOPPED


async def test_children_of_a_part_do_not_outlive_it(tmp_path: Path) -> None:
    parent = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'])\n"
        "print('child', child.pid, flush=True); print('ready', flush=True); time.sleep(600)"
    )
    supervisor = Supervisor(tmp_path / "run", [part("parent", parent)])
    log = tmp_path / "run/logs/parent.log"
    async with running(supervisor):
        await ready(supervisor)
        child = int(log.read_text().split()[1])
        assert lives(child)
        os.kill(pid(supervisor, "parent"), signal.SIGKILL)
        await until(lambda: not lives(child), "the child of the killed part is gone")


async def test_parts_stop_in_reverse_order(tmp_path: Path) -> None:
    said = tmp_path / "said"
    tells = (
        "import signal, sys, time\n"
        "def stop(*_):\n"
        "    time.sleep(0.2)\n"
        "    open(sys.argv[1], 'a').write(sys.argv[2] + '\\n'); sys.exit()\n"
        "signal.signal(signal.SIGTERM, stop)\n"
        "print('ready', flush=True); time.sleep(600)"
    )
    supervisor = Supervisor(
        tmp_path / "run",
        [
            part("api", tells, str(said), "api"),
            part("ironic", tells, str(said), "ironic", after=["api"]),
            part("operator", tells, str(said), "operator", after=["ironic", "api"]),
        ],
    )
    async with running(supervisor):
        await ready(supervisor)
    assert said.read_text().split() == ["operator", "ironic", "api"]


async def test_a_part_that_stops_answering_is_restarted(tmp_path: Path) -> None:
    answer = {"missing": ""}

    async def probe() -> str:
        return answer["missing"]

    supervisor = Supervisor(
        tmp_path / "run", [part("server", FOREVER, probe=probe, silent_for=0.5, ask_every=0.1)]
    )
    async with running(supervisor):
        await ready(supervisor)
        before = pid(supervisor, "server")
        answer["missing"] = "it does not answer"
        await until(lambda: pid(supervisor, "server") not in (0, before), "a new process")
        answer["missing"] = ""
        await ready(supervisor)


async def test_a_probe_that_raises_is_an_answer_too(tmp_path: Path) -> None:
    async def probe() -> str:
        raise RuntimeError("no such thing")

    supervisor = Supervisor(tmp_path / "run", [part("server", FOREVER, probe=probe)])
    async with running(supervisor):
        await until(lambda: "no such thing" in supervisor.status.parts[0].why, "the reason is told")
        assert state(supervisor, "server") is State.STARTING


async def test_the_status_file_tells_what_the_supervisor_knows(tmp_path: Path) -> None:
    supervisor = Supervisor(tmp_path / "run", [part("server", FOREVER, address="https://127.0.0.1:1")])
    async with running(supervisor):
        await ready(supervisor)
        await until(lambda: read_status(tmp_path / "run") == supervisor.status, "the file follows")
    after = read_status(tmp_path / "run")
    assert after is not None
    assert [(status.state, status.pid) for status in after.parts] == [(State.STOPPED, 0)]


async def test_what_is_known_late_is_asked_for_at_each_start(tmp_path: Path) -> None:
    known = {"URL": "one"}
    shows = "import os, time; print(os.environ['URL']); print('ready', flush=True); time.sleep(600)"
    supervisor = Supervisor(tmp_path / "run", [part("operator", shows, late_environment=lambda: dict(known))])
    log = tmp_path / "run/logs/operator.log"
    async with running(supervisor):
        await ready(supervisor)
        assert "one" in log.read_text()
        known["URL"] = "two"
        os.kill(pid(supervisor, "operator"), signal.SIGKILL)
        await until(lambda: "two" in log.read_text(), "the new value reaches the new process")


async def test_a_part_that_prints_without_end_is_drained_and_kept_small(tmp_path: Path) -> None:
    floods = (
        "import sys, time\n"
        "for number in range(12000): sys.stdout.write('x' * 1023 + '\\n')\n"
        "print('ready', flush=True); time.sleep(600)"
    )
    supervisor = Supervisor(tmp_path / "run", [part("flood", floods)])
    async with running(supervisor):
        await ready(supervisor)
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "run/logs").iterdir()}
    assert set(sizes) == {"flood.log", "flood.log.1", "flood.log.2"}
    assert max(sizes.values()) <= 4 * 1024 * 1024
    assert sum(sizes.values()) == 12000 * 1024 + len("ready\n")


async def test_a_stop_that_meets_a_part_just_as_it_dies_comes_to_an_end(tmp_path: Path) -> None:
    # Its child has left the session and holds the pipe open, so what the dead part still has to say is waited for.
    dies = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        "print('child', child.pid, flush=True); print('ready', flush=True); sys.stdin.read(); sys.exit(1)"
    )
    supervisor = Supervisor(tmp_path / "run", [part("dies", dies), part("api", FOREVER, after=[])])
    log = tmp_path / "run/logs/dies.log"
    async with running(supervisor) as task:
        await until(lambda: log.exists() and "ready" in log.read_text(), "it runs")
        dead = pid(supervisor, "dies")
        await until(lambda: not lives(dead), "it is gone")
        try:
            supervisor.stop()
            await asyncio.wait_for(task, 60)
        finally:
            os.kill(int(log.read_text().split()[1]), signal.SIGKILL)
    assert state(supervisor, "dies") is State.STOPPED


async def test_a_part_says_which_of_the_parts_before_it_are_still_missing(tmp_path: Path) -> None:
    waits = (
        "import pathlib, sys, time\n"
        "while not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.02)\n"
        "print('ready', flush=True); time.sleep(600)"
    )
    supervisor = Supervisor(
        tmp_path / "run",
        [
            part("slow", waits, str(tmp_path / "slow")),
            part("quick", waits, str(tmp_path / "quick")),
            part("last", FOREVER, after=["slow", "quick"]),
        ],
    )
    async with running(supervisor):
        await until(lambda: supervisor.status.parts[2].why == "waits for slow, quick", "it waits for both")
        (tmp_path / "quick").touch()
        await until(lambda: supervisor.status.parts[2].why == "waits for slow", "it waits for one")
        (tmp_path / "slow").touch()
        await ready(supervisor)


async def test_a_full_disk_costs_the_log_and_not_the_part(tmp_path: Path) -> None:
    chatters = (
        "import pathlib, sys, time\n"
        "print('ready', flush=True)\n"
        "for _ in range(50): print('word', flush=True); time.sleep(0.01)\n"
        "pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"
    )
    logs = tmp_path / "run/logs"
    logs.mkdir(parents=True)
    (logs / "server.log").symlink_to("/dev/full")
    supervisor = Supervisor(tmp_path / "run", [part("server", chatters, str(tmp_path / "said it all"))])
    async with running(supervisor):
        await ready(supervisor)
        await until((tmp_path / "said it all").exists, "it says all it has to say")
        assert (state(supervisor, "server"), supervisor.status.parts[0].restarts) == (State.READY, 0)


async def test_a_status_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    run = tmp_path / "run"
    supervisor = Supervisor(run, [part("server", FOREVER)])
    # A folder in its place refuses the file, as a full disk would.
    (run / "status.json").mkdir(parents=True)
    async with running(supervisor):
        await ready(supervisor)
        (run / "status.json").rmdir()
        await until(lambda: read_status(run) == supervisor.status, "the file follows again")


async def test_a_machine_that_cannot_start_a_process_just_now_is_asked_again(tmp_path: Path) -> None:
    refusals = iter([BlockingIOError(11, "Resource temporarily unavailable")])

    def environment() -> dict[str, str]:
        # Asked at the place where the process is started.
        for refusal in refusals:
            raise refusal
        return {}

    supervisor = Supervisor(tmp_path / "run", [part("server", FOREVER, late_environment=environment)])
    async with running(supervisor):
        await ready(supervisor)
        assert supervisor.status.parts[0].restarts == 1


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ({"a": ["b"], "b": ["a"]}, "wait for each other"),
        ({"a": ["nobody"]}, "a part that does not exist"),
    ],
)
async def test_parts_that_wait_in_vain_are_refused(
    tmp_path: Path, after: dict[str, list[str]], message: str
) -> None:
    parts = [part(name, FOREVER, after=names) for name, names in after.items()]
    with pytest.raises(SupervisorError, match=message):
        Supervisor(tmp_path / "run", parts)


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b"])
def test_a_name_that_would_not_name_a_log_file_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no name for a part"):
        Part(name=name, argv=["true"])
