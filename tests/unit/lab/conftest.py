"""The bench fixture: a real farm with one server, its control client, and an Ironic that the agent can call.

The agent's part is a distribution of its own; its sources are put on the path, so that the simulated one is compared with it.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lab_bench import FAST, Bench
from lab_ironic import LabIronic

from ingot.lab.client import Lab
from ingot.lab.farm import Farm
from ingot.lab.settings import FarmSettings

sys.path.insert(0, str(Path(__file__).parents[3] / "agent" / "src"))


@pytest.fixture
async def ironic(tmp_path: Path) -> AsyncIterator[LabIronic]:
    ironic = LabIronic()
    await ironic.start(tmp_path)
    yield ironic
    await ironic.stop()


@pytest.fixture
async def bench(tmp_path: Path, ironic: LabIronic) -> AsyncIterator[Bench]:
    settings = FarmSettings(state=tmp_path, servers=1, agent_api=ironic.url, timings=FAST)
    async with Farm.running(settings), Lab.open(tmp_path) as lab:
        yield Bench(tmp_path, lab, ironic)
