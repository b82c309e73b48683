"""What is in use is read again in the background: slowly, and whatever it came from."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path

from ingot.images.controller.checking import BackgroundCheck, Hashed
from ingot.images.region import Region


class Reports:
    """What the check in the background told, and waiting for it."""

    def __init__(self) -> None:
        self.told: list[tuple[Hashed, str]] = []
        self._more = threading.Condition()

    def __call__(self, hashed: Hashed, problem: str) -> None:
        with self._more:
            self.told.append((hashed, problem))
            self._more.notify_all()

    def after(self, count: int) -> list[tuple[Hashed, str]]:
        with self._more:
            assert self._more.wait_for(lambda: len(self.told) >= count, 60)
            return list(self.told)

    def until(self, words: str) -> None:
        with self._more:
            assert self._more.wait_for(lambda: words in self.told[-1][1], 60)


def saved(path: Path, content: bytes) -> Hashed:
    """All but the first and the last byte of a file count."""
    path.write_bytes(b"<" + content + b">")
    return Hashed(Region(path, 1, len(content)), hashlib.sha256(content).hexdigest())


def test_the_background_notices_damage_and_that_it_was_mended(tmp_path: Path) -> None:
    hashed = saved(tmp_path / "a", b"image")
    reports = Reports()
    with BackgroundCheck(lambda: [hashed], reports, every=0.01):
        assert reports.after(1)[0] == (hashed, "")
        saved(tmp_path / "a", b"imagE")
        reports.until("was changed")
        (tmp_path / "a").unlink()
        reports.until("cannot be read")
        saved(tmp_path / "a", b"image")
        seen = len(reports.told) + 1
        assert reports.after(seen + 1)[seen] == (hashed, "")


def test_each_round_reads_what_is_in_use_by_then(tmp_path: Path) -> None:
    first, second = saved(tmp_path / "a", b"first"), saved(tmp_path / "b", b"second")
    in_use = [first]
    reports = Reports()
    with BackgroundCheck(lambda: in_use, reports, every=0.01):
        reports.after(1)
        in_use = [second]
        seen = len(reports.told) + 1
        assert reports.after(seen + 1)[seen] == (second, "")


def test_the_background_reads_no_faster_than_it_may_and_stops_in_the_middle(tmp_path: Path) -> None:
    hashed = saved(tmp_path / "a", bytes(5 << 20))
    reports = Reports()
    check = BackgroundCheck(lambda: [hashed], reports, rate=1.0, every=0.0)
    check.start()
    time.sleep(0.2)
    check.stop()
    assert reports.told == []
