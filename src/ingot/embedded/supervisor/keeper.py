"""Keeps one part running: waits for the parts before it, starts it, watches it, starts it again.

Owns the part's status. Process alive is not the same as well: a part that does not answer in time is ended and counts as dead.
Leaves the order of stopping, and what other parts do meanwhile, to the supervisor.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from ingot.embedded.supervisor.child import Child
from ingot.embedded.supervisor.errors import PartFailed
from ingot.embedded.supervisor.logs import Log
from ingot.embedded.supervisor.part import Part
from ingot.embedded.supervisor.restarts import Fortune
from ingot.embedded.supervisor.status import PartStatus, State

ASK_EVERY_WHILE_STARTING: Final = 0.2


class Keeper:
    def __init__(self, part: Part, run: Path, changed: Callable[[], None]) -> None:
        self.part = part
        self.status = PartStatus(
            name=part.name,
            since=time.time(),
            address=part.address,
            log=f"logs/{part.name}.log",
        )
        # Set when the part is ready for the first time; the parts after it wait for this.
        self.ready_once = asyncio.Event()
        self._run = run
        self._changed = changed
        self._log = Log(run / self.status.log, ready_line=part.ready_line)
        self._fortune = Fortune()
        self._child: Child | None = None
        self._ready_since: float | None = None

    async def keep(self, others: Mapping[str, Keeper]) -> None:
        """Runs until it is cancelled; raises PartFailed when the part cannot be started at all."""
        await self._wait_for([others[name] for name in self.part.after])
        while True:
            how = await self._one_life()
            self._fortune = self._fortune.ended(ready_for=self._ready_for())
            if self._fortune.hopeless:
                self._now(State.FAILED, f"it {how}", pid=0)
                raise PartFailed(
                    self.part.name,
                    tries=self._fortune.endings,
                    how=how,
                    log=self._log.path,
                    last_words=self._log.last_lines(),
                )
            pause = self._fortune.pause
            self._now(State.RESTARTING, f"it {how}; next start in {pause:g} s", pid=0, another=True)
            await asyncio.sleep(pause)

    async def stop(self) -> None:
        """End the process; call it once `keep` has been cancelled."""
        if self._child is not None:
            self._now(State.STOPPING, "")
            await self._child.end()
            await self._child.wait()
        # What failed stays failed: it is the reason why the others stop.
        if self.status.state is not State.FAILED:
            self._now(State.STOPPED, "", pid=0)
        self._log.close()

    def kill(self) -> None:
        """Make an ongoing `stop` short."""
        if self._child is not None:
            self._child.kill()

    async def _wait_for(self, before: list[Keeper]) -> None:
        async def tick_off(keeper: Keeper) -> None:
            await keeper.ready_once.wait()
            missing.remove(keeper.part.name)
            self._now(State.WAITING, f"waits for {', '.join(missing)}" if missing else "")

        missing = [keeper.part.name for keeper in before if not keeper.ready_once.is_set()]
        if missing:
            self._now(State.WAITING, f"waits for {', '.join(missing)}")
        async with asyncio.TaskGroup() as group:
            for keeper in before:
                if keeper.part.name in missing:
                    group.create_task(tick_off(keeper))

    async def _one_life(self) -> str:
        self._ready_since = None
        self._log.new_life()
        try:
            child = self._child = await Child.start(self.part, self._run, self._log)
        except OSError as problem:
            # No process or no memory to be had just now: weather, and no reason to end the other parts.
            return f"could not be started: {problem.strerror}"
        self._now(State.STARTING, "", pid=child.pid, started_ticks=child.started_ticks)
        watching = asyncio.create_task(self._watch(child))
        try:
            how = await child.wait()
        finally:
            watching.cancel()
        # Cleared only here: when this is cancelled instead, `stop` still has a process to end.
        self._child = None
        return how

    async def _watch(self, child: Child) -> None:
        """Ask again and again whether the part is well; end it when it has not been for too long."""
        clock = asyncio.get_running_loop().time
        well_at, allowed = clock(), self.part.start_within
        while True:
            missing = await self._missing()
            if not missing:
                well_at, allowed = clock(), self.part.silent_for
                self._is_well(well_at)
            elif clock() - well_at > allowed:
                self._now(State.STARTING, f"ended, because for {allowed:g} s {missing}")
                await child.end()
                return
            else:
                self._now(State.STARTING, missing)
            await asyncio.sleep(ASK_EVERY_WHILE_STARTING if missing else self.part.ask_every)

    async def _missing(self) -> str:
        if self.part.ready_line and not self._log.ready_line_seen.is_set():
            return f"it has not printed {self.part.ready_line!r} yet"
        try:
            return await self.part.probe() if self.part.probe else ""
        except Exception as problem:  # whatever a probe stumbles over, the answer it was to bring is missing
            return f"asking whether it is well failed: {problem!r}"

    def _is_well(self, now: float) -> None:
        if self._ready_since is None:
            self._ready_since = now
        self._fortune = self._fortune.became_ready()
        self._now(State.READY, "")
        self.ready_once.set()

    def _ready_for(self) -> float:
        if self._ready_since is None:
            return 0.0
        return asyncio.get_running_loop().time() - self._ready_since

    def _now(
        self,
        state: State,
        why: str,
        *,
        pid: int | None = None,
        started_ticks: int | None = None,
        another: bool = False,
    ) -> None:
        before = self.status
        after = msgspec.structs.replace(
            before,
            state=state,
            why=why,
            since=time.time() if state is not before.state else before.since,
            pid=before.pid if pid is None else pid,
            started_ticks=before.started_ticks if started_ticks is None else started_ticks,
            restarts=before.restarts + another,
        )
        if after != before:
            self.status = after
            self._changed()
