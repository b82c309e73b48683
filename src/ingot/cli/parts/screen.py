"""Progress on a terminal: one live picture of parts and hosts, redrawn in place. Imports rich, so it is imported on use."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ingot.cli.parts.progress import HostView
from ingot.cli.parts.show import STOPPING
from ingot.embedded.supervisor import PartStatus, State, Status

_LOOK: Final = {
    State.READY: ("●", "green"),
    State.FAILED: ("●", "red"),
    State.RESTARTING: ("●", "yellow"),
    State.STARTING: ("○", "cyan"),
    State.WAITING: ("○", "dim"),
    State.STOPPING: ("○", "cyan"),
    State.STOPPED: ("○", "dim"),
}


class Screen:
    def __init__(self, console: Console | None = None) -> None:
        self._status: Status | None = None
        self._ready_after: dict[str, float] = {}
        self._hosts: Sequence[HostView] = ()
        self._below: Sequence[str] = ()
        # Drawn once while it is made, so it comes last.
        self._console = console or Console()
        self._live = Live(
            console=self._console, refresh_per_second=4, get_renderable=self.picture, transient=False
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)

    def parts(self, status: Status) -> None:
        self._status = status
        for part in status.parts:
            if part.state is State.READY:
                self._ready_after.setdefault(part.name, part.since - status.since)

    def hosts(self, hosts: Sequence[HostView]) -> None:
        self._hosts = hosts

    def advise(self, lines: Sequence[str]) -> None:
        self._below = lines

    def stopping(self) -> None:
        # The advice was for what runs.
        self._below = [STOPPING]

    def picture(self) -> RenderableType:
        pieces: list[RenderableType] = []
        if self._status is not None:
            pieces.append(self._parts_table(self._status))
        if self._hosts:
            pieces += [Text(), self._hosts_table()]
        if self._below and not self._all_stopped():
            pieces += [Text(), Text("\n".join(self._below))]
        return Group(*pieces)

    def _all_stopped(self) -> bool:
        return self._status is not None and all(part.state is State.STOPPED for part in self._status.parts)

    def _parts_table(self, status: Status) -> Table:
        table = _table("part", "state", "after", "where, or why not")
        for part in status.parts:
            mark, style = _LOOK[part.state]
            table.add_row(
                Text(mark, style),
                part.name,
                Text(part.state, style),
                self._time(part),
                Text(part.why or part.address),
            )
        return table

    def _time(self, part: PartStatus) -> str:
        if part.state is State.STARTING:
            return f"{time.time() - part.since:.0f} s …"
        return f"{self._ready_after[part.name]:.1f} s" if part.name in self._ready_after else ""

    def _hosts_table(self) -> Table:
        table = _table("host", "state", "", "")
        shown, left_out = fitting(self._hosts, self._room_for_hosts())
        for host in shown:
            style = "red" if host.failed else "green" if host.arrived else "cyan"
            mark = "●" if host.failed or host.arrived else "○"
            table.add_row(Text(mark, style), str(host.key), Text(host.state, style), "", Text(host.sentence))
        if left_out:
            table.add_row("", Text(f"and {left_out} more", "dim"))
        return table

    def _room_for_hosts(self) -> int:
        """Lines that the terminal has left. What does not fit would be cut off below, and the advice with it."""
        parts = len(self._status.parts) if self._status is not None else 0
        headings_and_gaps = 6
        return max(3, self._console.size.height - parts - len(self._below) - headings_and_gaps)


def fitting(hosts: Sequence[HostView], room: int) -> tuple[Sequence[HostView], int]:
    """The hosts to show in so many lines, and how many are left out: those that arrived go first, in their usual order."""
    if len(hosts) <= room:
        return hosts, 0
    # One line says how many are missing.
    chosen = {
        host.key for host in sorted(hosts, key=lambda host: (not host.failed, host.arrived))[: room - 1]
    }
    return [host for host in hosts if host.key in chosen], len(hosts) - len(chosen)


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", width=1)
    for title, width in zip(titles, (24, 14, 8), strict=False):
        table.add_column(title, min_width=width, no_wrap=True)
    table.add_column(titles[-1], overflow="fold")
    return table
