"""The live picture of `ingot up`, drawn on a terminal that keeps what it was sent."""

from __future__ import annotations

import io

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


def test_the_last_picture_stays_on_the_terminal() -> None:
    console = terminal()
    with Screen(console) as screen:
        screen.say("making [an] environment")
        screen.parts(STATUS)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "making [an] environment" in shown
    assert "https://127.0.0.1:1" in shown
