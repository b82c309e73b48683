"""A server: power, boot, and what runs on it.

Owns the one task that is "what runs": the boot, then the ramdisk's agent or the instance. Switching off ends the task,
switching on starts it. Every change is saved before it is acknowledged, so a farm that is killed finds the server as it was:
a boot that was under way starts again from the same source, an agent goes on with its token, certificate and commands, an
instance runs on.
Leaves the words of Redfish to `redfish`, the boot medium to `firmware`, the agent's protocol to `agent`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import ssl
from typing import Literal

from ingot.lab.agent import Agent
from ingot.lab.chassis import Chassis
from ingot.lab.disk import in_thread
from ingot.lab.errors import BootFailure
from ingot.lab.firmware import after_boot, boot_target, fetch_ramdisk
from ingot.lab.instance import boot_from_disk
from ingot.lab.record import BootTarget
from ingot.lab.settings import Timings

_log = logging.getLogger(__name__)

ResetType = Literal[
    "On",
    "ForceOn",
    "ForceOff",
    "GracefulShutdown",
    "ForceRestart",
    "GracefulRestart",
    "PowerCycle",
    "PushPowerButton",
]


class Machine:
    def __init__(self, chassis: Chassis, *, timings: Timings, trusted: ssl.SSLContext) -> None:
        self.chassis = chassis
        self._timings = timings
        self._trusted = trusted
        self._life: asyncio.Task[None] | None = None
        self._shutdown: asyncio.Task[None] | None = None
        self._looked_at = asyncio.Event()

    async def start(self) -> None:
        """Go on where the last farm process was stopped or killed."""
        record = self.chassis.record
        if record.power == "On":
            self.chassis.note(f"the farm is back; the server is on and goes on ({record.booted_into})")
            self._looked_at.set()
            self._begin()

    async def stop(self) -> None:
        """End the tasks and leave the record as it is."""
        await self._end_shutdown()
        await self._end()

    def looked_at(self) -> None:
        """Somebody read the power state."""
        if self.chassis.record.power == "On":
            self._looked_at.set()

    async def reset(self, kind: ResetType) -> None:
        """Do what the power control was told, and return when the new state is saved."""
        self.chassis.record.note_power(kind)
        self.chassis.note(f"power: {kind}")
        on = self.chassis.record.power == "On"
        match kind:
            case "On" | "ForceOn":
                await self._end_shutdown()
                await (self.chassis.save() if on else self._switch_on())
            case "ForceOff":
                await self.switch_off()
            case "GracefulShutdown":
                await self._ask_to_stop(again=False)
            case "GracefulRestart":
                await self._ask_to_stop(again=True)
            case "PushPowerButton":
                await (self._ask_to_stop(again=False) if on else self._switch_on())
            case "ForceRestart" | "PowerCycle":
                await self.switch_off()
                await self._switch_on()

    async def switch_off(self) -> None:
        await self._end_shutdown()
        await self._end()
        await self._off()

    async def power_from_within(self, *, again: bool) -> None:
        """The operating system switches the power off, or restarts the machine. It shows at once; what runs ends later,
        so that the agent still answers the call that asked for this."""
        self.chassis.note(
            "the operating system restarts the server" if again else "the operating system switches off"
        )
        if not again:
            await self._off()
        self._shutdown = asyncio.create_task(self._finish(self._life, again=again))

    async def _finish(self, life: asyncio.Task[None] | None, *, again: bool) -> None:
        if life is not None:
            life.cancel()
            await asyncio.wait([life])
        if again:
            await self._off()
            await self._switch_on()

    async def _ask_to_stop(self, *, again: bool) -> None:
        await self.chassis.save()
        if self.chassis.record.power == "On":
            await self._end_shutdown()
            self._shutdown = asyncio.create_task(self._stop_slowly(again=again))

    async def _stop_slowly(self, *, again: bool) -> None:
        await asyncio.sleep(self._timings.shutdown)
        await self._end()
        await self._off()
        if again:
            await self._switch_on()

    async def _off(self) -> None:
        record = self.chassis.record
        record.power, record.booting, record.ramdisk, record.instance = "Off", "None", None, None
        await self.chassis.save()

    async def _switch_on(self) -> None:
        record = self.chassis.record
        record.power = "On"
        record.booting = boot_target(record.override)
        record.override = after_boot(record.override)
        record.boots += 1
        self._looked_at.clear()
        await self.chassis.save()
        self._begin()

    def _begin(self) -> None:
        self._life = asyncio.create_task(self._live(), name=f"{self.chassis.plate.name} runs")

    async def _end(self) -> None:
        life, self._life = self._life, None
        if life is not None and life is not asyncio.current_task():
            life.cancel()
            await asyncio.wait([life])

    async def _end_shutdown(self) -> None:
        shutdown, self._shutdown = self._shutdown, None
        if shutdown is not None and shutdown is not asyncio.current_task():
            shutdown.cancel()
            await asyncio.wait([shutdown])

    async def _live(self) -> None:
        record = self.chassis.record
        try:
            if record.booting != "None":
                await self._boot(record.booting)
            if record.ramdisk is not None:
                await Agent(self.chassis, record.ramdisk, self._timings, self.power_from_within).run()
        except BootFailure as failure:
            record.booting = "None"
            self.chassis.note(f"does not boot: {failure}")
            await self.chassis.save()
        except Exception:  # the edge of the task: one server's bug must not end the farm
            _log.exception("%s: what ran on the server ended by a bug", self.chassis.plate.name)
            self.chassis.note("what ran on the server ended by a bug of the lab; its log has the trace")
            with contextlib.suppress(OSError):
                await self.chassis.save()

    async def _boot(self, source: BootTarget) -> None:
        record = self.chassis.record
        if source == "Cd":
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._looked_at.wait(), self._timings.boot_unwatched)
        await asyncio.sleep(self._timings.boot)
        if source == "Cd":
            scratch = self.chassis.folder / "medium"
            record.ramdisk = await fetch_ramdisk(
                record.media.get("Cd", ""), trusted=self._trusted, scratch=scratch
            )
            self.chassis.note("booted the ramdisk from the virtual CD")
        else:
            boot = functools.partial(boot_from_disk, self.chassis.disk, record.image_size)
            record.instance = await in_thread(boot)
            name = record.instance.hostname or "without a host name"
            self.chassis.note(f"booted the image on the disk ({name}, sha256 {record.instance.image_sha256})")
        record.booting = "None"
        await self.chassis.save()
