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
        self._advice: Sequence[str] = ()
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
        self._advice = lines

    def picture(self) -> RenderableType:
        pieces: list[RenderableType] = []
        if self._status is not None:
            pieces.append(self._parts_table(self._status))
        if self._hosts:
            pieces += [Text(), self._hosts_table()]
        if self._advice:
            pieces += [Text(), Text("\n".join(self._advice))]
        return Group(*pieces)

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
        if part.name in self._ready_after:
            return f"{self._ready_after[part.name]:.1f} s"
        return f"{time.time() - part.since:.0f} s …" if part.state is State.STARTING else ""

    def _hosts_table(self) -> Table:
        table = _table("host", "state", "", "")
        for host in self._hosts:
            style = "red" if host.failed else "green" if host.arrived else "cyan"
            mark = "●" if host.failed or host.arrived else "○"
            table.add_row(Text(mark, style), str(host.key), Text(host.state, style), "", Text(host.sentence))
        return table


def _table(*titles: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", width=1)
    for title, width in zip(titles, (24, 14, 8), strict=False):
        table.add_column(title, min_width=width, no_wrap=True)
    table.add_column(titles[-1], overflow="fold")
    return table
