"""How far downloads are, and what holds them up, for a person who watches. All of it on standard error."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ingot.images.fetching.wanted import Progress, Tell


@contextlib.contextmanager
def shown_progress() -> Iterator[Tell | None]:
    """A bar for each file on a terminal; in a log only what holds them up."""
    if not sys.stderr.isatty():
        with _notes(lambda text: click.echo(text, err=True)):
            yield None
        return
    from rich import progress as parts
    from rich.console import Console
    from rich.table import Column

    # Names are long; on a narrow terminal they give way, the numbers do not.
    columns = (
        parts.TextColumn(
            "{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
        ),
        parts.BarColumn(bar_width=16),
        parts.DownloadColumn(table_column=Column(no_wrap=True)),
        parts.TransferSpeedColumn(table_column=Column(no_wrap=True)),
        parts.TimeRemainingColumn(),
    )
    with parts.Progress(*columns, console=Console(stderr=True), expand=True) as bars:
        tasks: dict[str, parts.TaskID] = {}

        def tell(progress: Progress) -> None:
            if progress.name not in tasks:
                tasks[progress.name] = bars.add_task(progress.name, total=progress.total)
            bars.update(tasks[progress.name], completed=progress.done, total=progress.total)

        with _notes(lambda text: bars.console.print(text, markup=False, highlight=False)):
            yield tell


@contextlib.contextmanager
def _notes(show: Callable[[str], None]) -> Iterator[None]:
    """What fetching and copying say on the way (the next try, a missing signature) is for the person too."""

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            show(record.getMessage())

    log, handler = logging.getLogger("ingot.images"), Shown()
    before = log.level
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
