"""What is not as it should be with the back end although orders are taken: in the log, and in `ingot status`."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

import pytest

from ingot.cli.parts.backend_health import WHILE_WELL, BackendHealth
from ingot.cli.parts.state import StateFolder
from ingot.cli.status import Report, _print, notice_of
from ingot.provisioner import BackendUnavailable

SENTENCE = "Ironic does not push: its nodes are listed every 2 s while something is in flight"


class Backend:
    def __init__(self) -> None:
        self.says = ""
        self.away = False

    async def check(self) -> None:
        if self.away:
            raise BackendUnavailable("nobody answers")

    def notice(self) -> str:
        return self.says


@pytest.mark.looptime
async def test_a_notice_is_kept_for_status_until_it_is_over(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    state, backend = StateFolder(tmp_path), Backend()
    state.operator.mkdir()
    state.backend_notice.write_text("of an earlier life")
    health = BackendHealth(backend.check, backend.notice, state.backend_notice)
    running = asyncio.create_task(health.run())
    try:
        await asyncio.sleep(1)
        assert not state.backend_notice.exists()
        backend.says = SENTENCE
        await asyncio.sleep(WHILE_WELL)
        assert state.backend_notice.read_text().strip() == SENTENCE
        assert health.trouble == ""
        assert [one.levelno for one in caplog.records if one.message == SENTENCE] == [logging.WARNING]
        backend.away = True
        await asyncio.sleep(WHILE_WELL)
        # Who cannot take orders at all has said so.
        assert not state.backend_notice.exists()
        backend.away, backend.says = False, ""
        await asyncio.sleep(WHILE_WELL)
        assert not state.backend_notice.exists()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.looptime
async def test_a_notice_that_cannot_be_written_harms_nobody(tmp_path: Path):
    backend = Backend()
    backend.says = SENTENCE
    health = BackendHealth(backend.check, backend.notice, tmp_path / "nowhere" / "notice")
    running = asyncio.create_task(health.run())
    await asyncio.sleep(3 * WHILE_WELL)
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_only_what_parts_say_that_run_is_told(tmp_path: Path):
    state = StateFolder(tmp_path)
    for file, text in ((state.backend_notice, SENTENCE), (state.images_notice, "the payload is damaged")):
        file.parent.mkdir()
        file.write_text(f"{text}\n")
    assert notice_of(state, {"api-server", "operator"}) == SENTENCE
    assert notice_of(state, {"operator", "images"}) == f"{SENTENCE}; the payload is damaged"
    state.backend_notice.unlink()
    assert notice_of(state, {"operator", "images"}) == "the payload is damaged"


def test_status_shows_a_notice(capsys: pytest.CaptureFixture[str]):
    _print(
        Report(
            running=True,
            ready=True,
            pid=os.getpid(),
            state="s",
            kubeconfig="k",
            parts=[],
            hosts=[],
            hosts_unknown="",
            notice=SENTENCE,
        )
    )
    assert f"notice: {SENTENCE}" in capsys.readouterr().out
