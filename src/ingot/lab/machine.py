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
import logging
from typing import Final, Literal

from ingot.lab.agent import Agent
from ingot.lab.chassis import Chassis
from ingot.lab.components import at_boot
from ingot.lab.devices import overwritten
from ingot.lab.errors import BootFailure
from ingot.lab.firmware import Firmware, after_boot, boot_target
from ingot.lab.record import Booted, BootTarget, Ramdisk
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
    def __init__(
        self,
        chassis: Chassis,
        *,
        timings: Timings,
        firmware: Firmware,
    ) -> None:
        self.chassis = chassis
        self.timings = timings
        self.trusted = firmware.trusted
        """Whom the server believes when it fetches something."""
        self._firmware = firmware
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
                case "GracefulShutdown" | "GracefulRestart" | "PushPowerButton" if (
                    on and not self.chassis.acts("deaf_system")
                ):
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
        at_boot(
            record.components,
            self.chassis.faults,
            secure_boot=record.secure_boot,
            acted=record.note_fault,
        )
        for key in overwritten(self.chassis.plate, record):
            record.written.pop(key, None)
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

    async def _take_time(self, source: BootTarget) -> None:
        if source != "Hdd":
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._looked_at.wait(), self.timings.boot_unwatched)
        await asyncio.sleep(self.timings.boot)

    async def _boot(self, source: BootTarget) -> None:
        record = self.chassis.record
        if not self.chassis.acts("boots_at_once"):
            await self._take_time(source)
        await self.chassis.held("boot")
        result = await self._firmware.boot(self.chassis, source)
        if isinstance(result.runs, Ramdisk):
            record.ramdisk = result.runs
            booted = f"booted the ramdisk from {_NAMES.get(source, source)}{_of(result.booted)}"
        else:
            record.instance = result.runs
            name = result.runs.hostname or "without a host name"
            where = _NAMES.get(result.booted.source, f"the disk {result.booted.source}")
            booted = (
                f"booted the image on {where} ({name}, sha256 {result.runs.image_sha256}){_of(result.booted)}"
            )
        record.booted, record.booting = result.booted, "None"
        # Said only once it is on disk: a farm that is killed in between boots again, and has claimed nothing.
        await self.chassis.save()
        self.chassis.note(booted)
        await self.chassis.save()


def _of(booted: Booted) -> str:
    """What a log says of a CoreOS live system."""
    if (live := booted.coreos) is None:
        return ""
    config = f"Ignition {live.ignition_sha256}" if live.ignition_sha256 else "no Ignition"
    runs = f"no agent: {live.without_agent}" if live.without_agent else f"agent {live.container_image}"
    return f": CoreOS {live.build}, {config}, {runs}"


_NAMES: Final = {
    "Cd": "the virtual CD",
    "UsbCd": "the virtual CD",
    "Usb": "the virtual stick",
    "UefiHttp": "a URL, by UEFI",
    "Pxe": "the network",
}
