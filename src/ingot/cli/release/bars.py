"""How far downloads are, for a person who watches."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingot.images.fetching.wanted import Progress, Tell


@contextlib.contextmanager
def shown_progress() -> Iterator[Tell | None]:
    """A bar for each file on a terminal; nothing in a log."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as parts
    from rich.console import Console

    columns = (
        parts.TextColumn("{task.description}"),
        parts.BarColumn(),
        parts.DownloadColumn(),
        parts.TransferSpeedColumn(),
        parts.TimeRemainingColumn(),
    )
    with parts.Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, parts.TaskID] = {}

        def tell(progress: Progress) -> None:
            if progress.name not in tasks:
                tasks[progress.name] = bars.add_task(progress.name, total=progress.total)
            bars.update(tasks[progress.name], completed=progress.done, total=progress.total)

        yield tell
