"""The logs of ramdisks do not fill the disk."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ingot.services.agent_logs import keep_pruned, prune

NODE = "0b7f4c1e-93cf-4b6a-8f25-6a0f6f5d2f11"
SIZE = 1000


def archive(folder: Path, minute: int, size: int = SIZE) -> Path:
    file = folder / f"{NODE}_rack~h1_cleaning_2026-11-16-21-{minute:02}-00.tar.gz"
    file.write_bytes(b"x" * size)
    os.utime(file, (minute * 60, minute * 60))
    return file


def test_the_newest_archives_are_kept_up_to_a_size(tmp_path: Path) -> None:
    files = [archive(tmp_path, minute) for minute in range(10)]
    assert prune(tmp_path, 3 * SIZE) == 7
    assert sorted(tmp_path.iterdir()) == files[7:]
    assert prune(tmp_path, 3 * SIZE) == 0


def test_the_newest_one_is_kept_however_large_it_is(tmp_path: Path) -> None:
    archive(tmp_path, 1)
    large = archive(tmp_path, 2, size=10 * SIZE)
    assert prune(tmp_path, SIZE) == 1
    assert list(tmp_path.iterdir()) == [large]


def test_what_is_no_archive_is_never_removed(tmp_path: Path) -> None:
    notes = archive(tmp_path, 0).rename(tmp_path / "notes.tar.gz")
    (tmp_path / f"{NODE}_folder.tar.gz").mkdir()
    (tmp_path / f"{NODE}_link.tar.gz").symlink_to(notes)
    (tmp_path / f"{NODE}_notes.txt").write_bytes(b"x" * SIZE)
    others = set(tmp_path.iterdir())
    archive(tmp_path, 1)
    newest = archive(tmp_path, 2)
    assert prune(tmp_path, 1) == 1
    assert set(tmp_path.iterdir()) == others | {newest}


async def test_it_is_done_again_and_again_also_where_the_folder_is_made_later(tmp_path: Path) -> None:
    folder = tmp_path / "agent-logs"
    pruning = asyncio.create_task(keep_pruned(folder, 2 * SIZE, every=0.01))
    try:
        await asyncio.sleep(0.05)
        folder.mkdir()
        for minutes in (range(5), range(10, 15)):
            made = [archive(folder, minute) for minute in minutes]
            async with asyncio.timeout(30):
                while sorted(folder.iterdir()) != made[-2:]:  # noqa: ASYNC110 - polls on purpose
                    await asyncio.sleep(0.01)
    finally:
        pruning.cancel()
