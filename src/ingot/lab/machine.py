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
from ingot.lab.components import at_boot
from ingot.lab.disk import in_thread
from ingot.lab.errors import BootFailure
from ingot.lab.firmware import after_boot, boot_target, fetch_ramdisk
from ingot.lab.hardware import DISK_NAME
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
        self.timings = timings
        self.trusted = trusted
        """Whom the server believes when it fetches something."""
        self._looked_at = asyncio.Event()
        self._switching = asyncio.Lock()
        """Held while the power changes; one change at a time."""
        self._life: asyncio.Task[None] | None = None
        """What runs on the server."""
        self._shutdown: asyncio.Task[None] | None = None
        """An operating system that was asked to stop and takes its time."""
        self._closing: asyncio.Task[None] | None = None
        """What ran before and still ends, after it switched the power itself."""

    async def start(self) -> None:
        """Go on where the last farm process was stopped or killed."""
        record = self.chassis.record
        if record.power == "On":
            self.chassis.note(f"the farm is back; the server is on and goes on ({record.booted_into})")
            self._looked_at.set()
            self._begin()

    async def stop(self) -> None:
        """End the tasks and leave the record as it is."""
        async with self._switching:
            await self._forget_shutdown()
            await self._end()
        if self._closing is not None:  # it may be a restart, which leaves something running again
            await asyncio.wait([self._closing])
            async with self._switching:
                await self._end()

    def looked_at(self) -> None:
        """Somebody read the power state."""
        if self.chassis.record.power == "On":
            self._looked_at.set()

    async def reset(self, kind: ResetType) -> None:
        """Do what the power control was told, and return when the new state is saved."""
        async with self._switching:
            self.chassis.record.note_power(kind)
            self.chassis.note(f"power: {kind}")
            await self._forget_shutdown()
            on = self.chassis.record.power == "On"
            match kind:
                case "ForceRestart" | "PowerCycle":
                    await self._switch_off()
                    await self._switch_on()
                case "ForceOff":
                    await self._switch_off()
                case "On" | "ForceOn" | "PushPowerButton" if not on:
                    await self._switch_on()
                case "GracefulShutdown" | "GracefulRestart" | "PushPowerButton" if on:
                    self._shutdown = asyncio.create_task(self._stop_slowly(again=kind == "GracefulRestart"))
            await self.chassis.save()

    async def power_from_within(self, *, again: bool) -> None:
        """The operating system switches the power off, or restarts the machine. It shows at once; what runs ends later,
        so that the agent still answers the call that asked for this."""
        async with self._switching:
            self.chassis.note(
                "the operating system restarts the server" if again else "the operating system switches off"
            )
            life, self._life = self._life, None
            if not again:
                self._forget_what_ran()
            await self.chassis.save()
            self._closing = asyncio.create_task(self._close(life, again=again))

    async def _close(self, life: asyncio.Task[None] | None, *, again: bool) -> None:
        if life is not None:
            life.cancel()
            await asyncio.wait([life])
        if again:
            async with self._switching:
                if self._life is None and self.chassis.record.power == "On":
                    await self._switch_off()
                    await self._switch_on()

    async def _stop_slowly(self, *, again: bool) -> None:
        await asyncio.sleep(self.timings.shutdown)
        async with self._switching:
            self._shutdown = None
            await self._switch_off()
            if again:
                await self._switch_on()

    async def _forget_shutdown(self) -> None:
        shutdown, self._shutdown = self._shutdown, None
        if shutdown is not None:
            shutdown.cancel()
            await asyncio.wait([shutdown])

    async def _switch_off(self) -> None:
        await self._end()
        self._forget_what_ran()
        await self.chassis.save()

    def _forget_what_ran(self) -> None:
        record = self.chassis.record
        record.power, record.booting, record.ramdisk, record.instance = "Off", "None", None, None

    async def _switch_on(self) -> None:
        record = self.chassis.record
        record.power = "On"
        record.booting = boot_target(record.override)
        record.override = after_boot(record.override)
        at_boot(record.components, self.chassis.faults, secure_boot=record.secure_boot)
        record.boots += 1
        self._looked_at.clear()
        await self.chassis.save()
        self._begin()

    def _begin(self) -> None:
        self._life = asyncio.create_task(self._live(), name=f"{self.chassis.plate.name} runs")

    async def _end(self) -> None:
        life, self._life = self._life, None
        if life is not None:
            life.cancel()
            await asyncio.wait([life])

    async def _live(self) -> None:
        record = self.chassis.record
        try:
            if self._closing is not None:
                await asyncio.wait([self._closing])
            if record.booting != "None":
                await self._boot(record.booting)
            if record.ramdisk is not None:
                await Agent(self.chassis, record.ramdisk, self.timings, self.power_from_within).run()
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
                await asyncio.wait_for(self._looked_at.wait(), self.timings.boot_unwatched)
        await asyncio.sleep(self.timings.boot)
        if source == "Cd":
            scratch = self.chassis.folder / "medium"
            record.ramdisk = await fetch_ramdisk(
                record.media.get("Cd", ""), trusted=self.trusted, scratch=scratch
            )
            booted = "booted the ramdisk from the virtual CD"
        else:
            on_disk = record.written.get(DISK_NAME)
            boot = functools.partial(boot_from_disk, self.chassis.disk, on_disk.size if on_disk else None)
            record.instance = await in_thread(boot)
            name = record.instance.hostname or "without a host name"
            booted = f"booted the image on the disk ({name}, sha256 {record.instance.image_sha256})"
        record.booting = "None"
        # Said only once it is on disk: a farm that is killed in between boots again, and has claimed nothing.
        await self.chassis.save()
        self.chassis.note(booted)
        await self.chassis.save()
