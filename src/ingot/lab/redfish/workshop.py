"""The BMC's tasks at work: what is done after the answer, and goes on after a kill.

A task is in the record before it is answered; here is only what moves it on. An update really fetches its image; an image that
cannot be fetched, or is none, ends the task with the reason. Tasks that wait for a boot are not here: a boot ends them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Final
from urllib.parse import urlsplit

from ingot.lab.components import Task, UpdateFirmware, fail, finish
from ingot.lab.errors import BootFailure
from ingot.lab.fetching import fetched
from ingot.lab.machine import Machine

Restart = Callable[[float], Coroutine[None, None, None]]

_log = logging.getLogger(__name__)

_LONGEST_HEADER: Final = 100
_HEADER: Final = re.compile(rb"ingot-firmware (bios|bmc|nic) ([0-9A-Za-z._-]{1,64})\n")
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+")
_NAMES: Final = (("bmc", ("bmc", "idrac", "ilo", "xcc")), ("nic", ("nic", "eth")), ("bios", ("bios", "uefi")))


class Unfit(Exception):
    """The image cannot be used; the message says why."""


class Workshop:
    __slots__ = ("_beside", "_busy", "_machine", "_restart")

    def __init__(self, machine: Machine, restart: Restart) -> None:
        self._machine = machine
        self._restart = restart
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._beside: set[asyncio.Task[None]] = set()
        """What happens beside the tasks: events on their way, a restart."""

    def resume(self) -> None:
        """Go on with the tasks that a kill or a stop interrupted."""
        for task in self._machine.chassis.record.components.tasks:
            if task.live and not task.waits_for_boot:
                self.take(task)

    def take(self, task: Task) -> None:
        """Work on a task that is in the record."""
        if task.id not in self._busy:
            name = f"{self._machine.chassis.plate.name}: {task.name}"
            self._busy[task.id] = asyncio.create_task(self._work(task), name=name)

    def beside(self, work: Coroutine[None, None, None]) -> None:
        """Do something while the caller goes on."""
        doing = asyncio.create_task(work)
        self._beside.add(doing)
        doing.add_done_callback(self._beside_done)

    def _beside_done(self, doing: asyncio.Task[None]) -> None:
        self._beside.discard(doing)
        if not doing.cancelled() and (error := doing.exception()) is not None:
            _log.error("%s: %s", self._machine.chassis.plate.name, error, exc_info=error)

    def restart_soon(self, seconds: float | None = None) -> None:
        """Restart the BMC once the call that asks for it is answered."""
        self.beside(self._restart(self._machine.timings.bmc_restart if seconds is None else seconds))

    async def drop(self) -> None:
        """Leave the tasks where they are."""
        await _ended(list(self._busy.values()))

    async def stop(self) -> None:
        await _ended([*self._busy.values(), *self._beside])

    async def _work(self, task: Task) -> None:
        chassis = self._machine.chassis
        try:
            if isinstance(task.work, UpdateFirmware):
                await self._update(task, task.work)
            else:
                await asyncio.sleep(self._machine.timings.task)
                finish(chassis.record.components, task, chassis.faults, chassis.record.note_fault)
            chassis.note(f"task {task.id} ({task.name}): {task.state}. {task.message}")
            await chassis.save()
        except Exception:  # the edge of the task: one server's bug must not end the farm
            _log.exception("%s: task %s ended by a bug", chassis.plate.name, task.id)
            fail(task, "The BMC has a bug; the lab's log has it.")
            with contextlib.suppress(OSError):
                await chassis.save()
        finally:
            self._busy.pop(task.id, None)

    async def _update(self, task: Task, work: UpdateFirmware) -> None:
        chassis = self._machine.chassis
        try:
            work.component, work.version = await self._fetch(work)
        except (Unfit, BootFailure) as error:
            fail(task, f"{error}.")
            return
        task.percent, task.message = 50, f"The image is {work.component} {work.version}."
        await asyncio.sleep(self._machine.timings.task)
        if work.component == "bios" and not chassis.faults.fail_tasks:
            # Only now may a client restart the server. Ironic does so as soon as a task is more than new, and only once:
            # a boot that comes before the image is ready would be for nothing.
            task.state = "Pending"
            task.message += " It is applied when the server boots."
            return
        task.state = "Running"
        await chassis.save()
        if work.component == "bmc" and not chassis.faults.fail_tasks:
            await self._restart(self._machine.timings.bmc_restart)
        finish(chassis.record.components, task, chassis.faults, chassis.record.note_fault)

    async def _fetch(self, work: UpdateFirmware) -> tuple[str, str]:
        """Fetch all of the image; which component it is for, and which version it has."""
        chassis, what = self._machine.chassis, "the firmware image"
        async with fetched(work.url, what, trusted=self._machine.trusted, folder=chassis.folder) as image:
            chassis.note(f"{what} was fetched: {image.size} bytes, sha256 {image.sha256}")
            image.file.seek(0)
            return identify(image.file.read(_LONGEST_HEADER), work.url, work.component)


async def _ended(works: Sequence[asyncio.Task[None]]) -> None:
    for work in works:
        work.cancel()
    if works:
        await asyncio.wait(works)


def identify(start: bytes, url: str, target: str) -> tuple[str, str]:
    """Component and version of an image: its own header says so, or else the name of the file and the target that was
    asked for."""
    if header := _HEADER.match(start):
        return header[1].decode(), header[2].decode()
    name = urlsplit(url).path.rpartition("/")[2].lower()
    known = (component for component, words in _NAMES if any(word in name for word in words))
    component = target or next(known, "")
    version = _VERSION.search(name)
    if not component or version is None:
        raise Unfit(
            "the image is no firmware of this server: neither its first line nor its name says a component and a version, "
            "as in `ingot-firmware bios 2.0.0` or bios-2.0.0.bin"
        )
    return component, version[0]
