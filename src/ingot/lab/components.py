"""What a BMC keeps of the server's parts: BIOS settings, volumes, firmware versions, tasks, subscriptions.

Owns the persisted state (`Components`, one field of the record) and the rules that change it: all pure, so that the same boot or
the same end of a task gives the same parts after a kill. What differs from the factory is kept, nothing else: a server that
nobody configured costs nothing.
Leaves the words of Redfish to `redfish`, and the moment of a boot to `machine`, which calls `at_boot`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from ingot.lab.faults import Faults

Value = str | int | bool
Led = Literal["Lit", "Blinking", "Off"]
TaskState = Literal["New", "Pending", "Running", "Completed", "Exception"]

MOST_TASKS: Final = 50
"""Of those that have ended; the oldest are forgotten first."""
Acted = Callable[[str], None]
"""Told the name of a fault when it is acted out."""


def _nobody(_: str) -> None:
    """Nobody wants to know."""


class Volume(msgspec.Struct, kw_only=True):
    """A RAID volume: the operating system sees it as one disk, and its drives not at all."""

    id: str
    storage: str
    name: str
    raid_type: str
    capacity: int
    drives: list[str]


class CreateVolume(msgspec.Struct, kw_only=True, tag="create-volume"):
    volume: Volume


class DeleteVolume(msgspec.Struct, kw_only=True, tag="delete-volume"):
    storage: str
    volume: str


class UpdateFirmware(msgspec.Struct, kw_only=True, tag="update-firmware"):
    """`component` and `version` are known once the image was fetched and read."""

    url: str
    component: str = ""
    version: str = ""


class ConfigureBios(msgspec.Struct, kw_only=True, tag="configure-bios"):
    """The task that a vendor makes of BIOS settings that wait for the next boot."""


class ImportConfiguration(msgspec.Struct, kw_only=True, tag="import-configuration"):
    """Dell's server configuration profile; what it says was checked and is in force when the task ends."""

    attributes: dict[str, str]


class ExportConfiguration(msgspec.Struct, kw_only=True, tag="export-configuration"):
    """Dell's server configuration profile, read; nothing changes."""

    target: str


Work = (
    CreateVolume | DeleteVolume | UpdateFirmware | ConfigureBios | ImportConfiguration | ExportConfiguration
)


class Task(msgspec.Struct, kw_only=True):
    """Something that the BMC does after it has answered."""

    id: str
    name: str
    work: Work
    state: TaskState = "Running"
    percent: int = 0
    message: str = ""
    started: datetime
    ended: datetime | None = None

    @property
    def live(self) -> bool:
        return self.state not in ("Completed", "Exception")

    @property
    def waits_for_boot(self) -> bool:
        return self.state == "Pending"


class Subscription(msgspec.Struct, kw_only=True):
    """Where events are sent, and which."""

    id: str
    destination: str
    protocol: str
    context: str = ""
    event_types: list[str] = []
    headers: dict[str, str] = {}


class Components(msgspec.Struct, kw_only=True, omit_defaults=True):
    bios: dict[str, Value] = {}
    """Attributes that differ from the factory's."""
    bios_pending: dict[str, Value] = {}
    """Attributes that the next boot applies."""
    bios_reset: bool = False
    """The next boot begins with the factory's attributes."""
    secure_boot_now: bool = False
    """Whether the last boot was a secure one."""
    secure_boot_keys: bool = True
    """Keys are there; without any there is no secure boot."""
    versions: dict[str, str] = {}
    """Firmware that was updated since the factory, by component."""
    volumes: list[Volume] = []
    tasks: list[Task] = []
    subscriptions: list[Subscription] = []
    leds: dict[str, Led] = {}
    """Indicators that somebody has set, by what they are on."""
    clock_seconds: float = 0.0
    """How far the BMC's clock is ahead."""
    counted: int = 0
    """Numbers given to volumes, tasks and subscriptions; none is given twice."""

    def number(self) -> str:
        self.counted += 1
        return str(self.counted)

    def task(self, id_: str) -> Task | None:
        return next((task for task in self.tasks if task.id == id_), None)

    def volume(self, storage: str, id_: str) -> Volume | None:
        return next((one for one in self.volumes if (one.storage, one.id) == (storage, id_)), None)

    def volumes_of(self, storage: str, drive: str | None = None) -> list[Volume]:
        """The volumes of a controller, or those that use one of its drives."""
        mine = [volume for volume in self.volumes if volume.storage == storage]
        return mine if drive is None else [volume for volume in mine if drive in volume.drives]


def begin(
    parts: Components, work: Work, name: str, *, prefix: str = "", state: TaskState = "Running"
) -> Task:
    """A new task. Ended ones are forgotten when there are too many."""
    task = Task(id=prefix + parts.number(), name=name, work=work, state=state, started=datetime.now(UTC))
    ended = [old for old in parts.tasks if not old.live]
    for old in ended[: max(0, len(ended) - MOST_TASKS + 1)]:
        parts.tasks.remove(old)
    parts.tasks.append(task)
    return task


def finish(parts: Components, task: Task, faults: Faults, acted: Acted = _nobody) -> None:
    """Do the task's work, or end it as the fault says."""
    task.ended = datetime.now(UTC)
    if faults.fail_tasks and isinstance(task.work, CreateVolume | DeleteVolume | UpdateFirmware):
        fail(task, faults.fail_tasks)
        acted("fail_tasks")
        return
    match task.work:
        case CreateVolume(volume=volume):
            busy = [drive for drive in volume.drives if parts.volumes_of(volume.storage, drive)]
            if busy:
                fail(task, f"The drives {', '.join(busy)} are in use by another volume.")
                return
            parts.volumes.append(volume)
        case DeleteVolume(storage=storage, volume=id_):
            parts.volumes = [one for one in parts.volumes if (one.storage, one.id) != (storage, id_)]
        case UpdateFirmware(component=component, version=version):
            parts.versions[component] = version
            task.message = f"{component} {version} is installed."
    task.state, task.percent = "Completed", 100
    task.message = task.message or "The task is complete."


def fail(task: Task, message: str) -> None:
    task.state, task.message, task.ended = "Exception", message, datetime.now(UTC)


def at_boot(parts: Components, faults: Faults, *, secure_boot: bool, acted: Acted = _nobody) -> None:
    """What a boot makes true: BIOS settings that waited for it, and tasks that did."""
    parts.secure_boot_now = secure_boot and parts.secure_boot_keys
    if faults.bios_ignored:
        if parts.bios_reset or parts.bios_pending:
            acted("bios_ignored")
    else:
        if parts.bios_reset:
            parts.bios, parts.bios_reset = {}, False
        parts.bios.update(parts.bios_pending)
        parts.bios_pending = {}
    for task in parts.tasks:
        if task.waits_for_boot and not (faults.bios_ignored and isinstance(task.work, ConfigureBios)):
            finish(parts, task, faults, acted)


def clear_tasks(parts: Components) -> None:
    """Forget every task. BIOS settings that waited for one are forgotten with it."""
    for task in list(parts.tasks):
        remove_task(parts, task)


def remove_task(parts: Components, task: Task) -> None:
    """Forget this task. BIOS settings that waited for it, and for no other, are forgotten with it."""
    waited = _for_bios(task)
    parts.tasks.remove(task)
    if waited and not any(_for_bios(other) for other in parts.tasks):
        parts.bios_pending = {}


def _for_bios(task: Task) -> bool:
    return isinstance(task.work, ConfigureBios) and task.live
