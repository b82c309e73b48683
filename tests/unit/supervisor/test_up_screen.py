"""The live picture of `ingot up`, drawn on a terminal that keeps what it was sent."""

from __future__ import annotations

import io
import time

import msgspec
from rich.console import Console

from ingot.api.meta import Key
from ingot.cli.parts.progress import HostView
from ingot.cli.parts.screen import Screen
from ingot.embedded.supervisor import PartStatus, State, Status

STATUS = Status(
    supervisor_pid=1,
    boot_id="b",
    since=1000.0,
    parts=[
        PartStatus(name="api-server", state=State.READY, since=1002.5, address="https://127.0.0.1:1"),
        PartStatus(name="operator", state=State.WAITING, since=1000.0, why="waits for ironic"),
    ],
)
HOST = HostView(
    key=Key("default", "server-1"),
    state="inspecting",
    goal="available",
    sentence="reading [the] hardware",
    failed=False,
)


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=130, height=50, color_system=None)


def drawn(screen: Screen) -> list[str]:
    paper = terminal()
    paper.print(screen.picture())
    assert isinstance(paper.file, io.StringIO)
    return [" ".join(line.split()) for line in paper.file.getvalue().splitlines() if line.strip()]


def test_the_picture_shows_each_part_with_its_time_or_its_reason() -> None:
    screen = Screen(terminal())
    assert drawn(screen) == []
    screen.parts(STATUS)
    assert drawn(screen) == [
        "part state after where, or why not",
        "● api-server ready 2.5 s https://127.0.0.1:1",
        "○ operator waiting waits for ironic",
    ]


def test_the_time_of_a_part_stays_that_of_its_first_start() -> None:
    screen = Screen(terminal())
    screen.parts(STATUS)
    again = msgspec.structs.replace(STATUS.parts[0], since=1900.0)
    screen.parts(msgspec.structs.replace(STATUS, parts=[again]))
    assert "2.5 s" in drawn(screen)[1]
    restarted = msgspec.structs.replace(STATUS.parts[0], state=State.STARTING, since=time.time())
    screen.parts(msgspec.structs.replace(STATUS, parts=[restarted]))
    assert " s … " in drawn(screen)[1]


def test_hosts_and_advice_come_below() -> None:
    screen = Screen(terminal())
    screen.parts(STATUS)
    screen.hosts([HOST])
    screen.advise(["Everything is up.", "  export KUBECONFIG=/x"])
    assert drawn(screen)[3:] == [
        "host state",
        "○ default/server-1 inspecting reading [the] hardware",
        "Everything is up.",
        "export KUBECONFIG=/x",
    ]


def test_advice_is_for_what_runs_and_goes_when_it_stops() -> None:
    screen = Screen(terminal())
    screen.parts(STATUS)
    screen.advise(["Everything is up."])
    screen.stopping()
    assert "Everything is up." not in drawn(screen)
    assert drawn(screen)[-1].startswith("Stopping.")
    gone = [msgspec.structs.replace(part, state=State.STOPPED, why="") for part in STATUS.parts]
    screen.parts(msgspec.structs.replace(STATUS, parts=gone))
    assert drawn(screen)[-1] == "○ operator stopped"


def test_more_hosts_than_lines_do_not_push_the_advice_off_the_terminal() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=130, height=20, color_system=None)
    screen = Screen(console)
    screen.parts(STATUS)
    arrived = [HostView(Key("default", f"s{n:03}"), "available", "available", "", False) for n in range(60)]
    failed = HostView(Key("default", "z-last"), "registering", "available", "no such BMC", True)
    screen.hosts([*arrived, HOST, failed])
    screen.advise(["Everything is up."])
    shown = drawn(screen)
    assert len(shown) <= 20
    assert shown[-1] == "Everything is up."
    assert any("z-last" in line and "no such BMC" in line for line in shown)
    assert any("server-1" in line for line in shown)
    hosts_shown = sum("default/" in line for line in shown)
    assert f"and {62 - hosts_shown} more" in shown


def test_the_last_picture_stays_on_the_terminal() -> None:
    console = terminal()
    with Screen(console) as screen:
        screen.say("making [an] environment")
        screen.parts(STATUS)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "making [an] environment" in shown
    assert "https://127.0.0.1:1" in shown
