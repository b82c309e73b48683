"""The farm's clock for fault plans: a listener that a plan closes must close at that moment, though nobody asks for anything.

All other faults are looked up when they matter and need no clock. Plans count from the moment they were set, by the wall clock,
so they go on when the farm was away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

from ingot.lab.chassis import Chassis
from ingot.lab.errors import LabError

_MARGIN: Final = 0.01
"""Sleep goes by another clock than the plan, and must not end before its moment has come."""


class Planner:
    """`changed` is called with a server whose plan has come to another part."""

    def __init__(self, changed: Callable[[Chassis], Awaitable[None]]) -> None:
        self._changed = changed
        self._clocks: dict[str, asyncio.Task[None]] = {}

    def follow(self, chassis: Chassis) -> None:
        """Follow the plan that the server has now, and no other."""
        name = chassis.plate.name
        before = self._clocks.pop(name, None)
        if before is not None:
            before.cancel()
        if chassis.record.plan is not None:
            self._clocks[name] = asyncio.create_task(self._run(chassis), name=f"{name}: its fault plan")

    async def stop(self) -> None:
        clocks, self._clocks = list(self._clocks.values()), {}
        for clock in clocks:
            clock.cancel()
        if clocks:
            await asyncio.wait(clocks)

    async def _run(self, chassis: Chassis) -> None:
        plan = chassis.record.plan
        while plan is not None and (edge := plan.next_change(now := datetime.now(UTC))) is not None:
            await asyncio.sleep((edge - now).total_seconds() + _MARGIN)
            faults = sorted(msgspec.to_builtins(chassis.faults))
            chassis.note(f"its plan: {', '.join(faults) or 'good behaviour'} from now on")
            try:
                await self._changed(chassis)
            except LabError as error:
                chassis.note(f"its plan cannot be followed: {error}")
