"""The back ends that keep the contract, each on its stage."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from contract import KEY, Stage
from ironic_stage import IronicStage

from ingot.provisioner import Census
from ingot.provisioner.demo import Behaviour, DemoProvisioner, HostScript, Script

ATTEMPTS = {"power off": "power_off", "power on": "power_on", "data image": "data_image"}


class DemoStage(Stage):
    """The demo back end, over a file or only in memory."""

    backend: DemoProvisioner

    def __init__(self, path: Path | None, script: Script, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._script = script
        self._clock = clock

    async def open(self) -> None:
        self.backend = DemoProvisioner(self._path, self._script, clock=self._clock, orphaned_after=0)
        await self.backend.__aenter__()

    async def close(self) -> None:
        await self.backend.__aexit__(None, None, None)

    def done(self, deed: str) -> int:
        done = self.backend.machine(KEY).done
        return sum(times for name, times in done.items() if name.startswith(deed))

    def powered_on(self) -> bool:
        return self.backend.machine(KEY).powered_on

    def on_disk(self) -> str:
        disk = self.backend.machine(KEY).disk
        return disk.image if disk is not None else ""

    def will_fail(self, verb: str, times: int = 1) -> None:
        field = ATTEMPTS.get(verb, verb)
        before = self.backend.machine(KEY).attempts.get(field, 0)
        spoilt = HostScript(**{field: Behaviour(fails=before + times)})
        self._script = Script(default=self._script.default, hosts={str(KEY): spoilt})
        self.backend.play(self._script)

    async def lose_memory(self) -> None:
        self.backend.lose_memory()

    async def all_told(self) -> None:
        """It tells at once."""

    async def look_around(self, census: Census) -> None:
        # It looks as soon as it is told whom there is.
        self.backend.follow(census)
        await asyncio.sleep(0.05)

    def away(self, away: bool) -> None:
        if away:
            self.backend.go_away("gone for a test")
        else:
            self.backend.come_back()


def _each_lasting(seconds: float) -> Script:
    return Script(default=HostScript(others=Behaviour(seconds=seconds)))


STAGES: dict[str, Callable[[Path], Stage]] = {
    "demo": lambda folder: DemoStage(folder / "demo.sqlite", _each_lasting(0.02)),
    "ironic": IronicStage,
    "demo-at-once": lambda folder: DemoStage(folder / "demo.sqlite", _each_lasting(0)),
}
