"""What the agent can do: the clean, deploy and service steps, and the few commands beside them.

Each really does it to the server's disk, or fails with the words that ironic-python-agent has for it. A fault of the server
can make any step fail by name.
"""

from __future__ import annotations

import asyncio
import base64
import io
import ssl
import tarfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from ingot.lab.agent.deploy import write_image
from ingot.lab.chassis import Chassis
from ingot.lab.errors import StepFailed
from ingot.lab.record import Command, Ramdisk
from ingot.lab.settings import Timings

Params = dict[str, Any]
MANAGER: Final = "GenericHardwareManager"
VERSIONS: Final = {"generic_hardware_manager": "1.2"}
_KINDS: Final = {
    "clean": ("CleaningError", "Clean step failed"),
    "deploy": ("DeploymentError", "Deploy step failed"),
    "service": ("ServicingError", "Service step failed"),
}


@dataclass(frozen=True, slots=True)
class Work:
    """What a command works on."""

    chassis: Chassis
    ramdisk: Ramdisk
    timings: Timings
    trusted: ssl.SSLContext


async def _erase_metadata(work: Work, _: Params) -> Any:
    await asyncio.to_thread(work.chassis.disk.wipe_metadata)
    _wiped(work, "the start and the end of the disk and the config drive are wiped")


async def _erase_devices(work: Work, _: Params) -> Any:
    await asyncio.to_thread(work.chassis.disk.wipe)
    _wiped(work, "the whole disk and the config drive are wiped")


def _wiped(work: Work, text: str) -> None:
    work.chassis.record.written.clear()
    work.chassis.record.cleanings += 1
    work.chassis.note(text)


async def _write_image(work: Work, args: Params) -> Any:
    return await write_image(
        work.chassis,
        args,
        trusted=work.trusted,
        md5_allowed=work.ramdisk.md5_allowed,
        mib_per_second=work.timings.disk_mib_per_second,
    )


Step = Callable[[Work, Params], Awaitable[Any]]
STEPS: Final[dict[str, Step]] = {
    "erase_devices": _erase_devices,
    "erase_devices_metadata": _erase_metadata,
    "write_image": _write_image,
}
OFFERED: Final = {
    "clean": [("erase_devices", 10), ("erase_devices_metadata", 99)],
    "deploy": [("erase_devices_metadata", 0), ("write_image", 0)],
    "service": [],
}


def _offer(kind: str) -> Callable[[Work, Params], Awaitable[Any]]:
    async def offer(_work: Work, _params: Params) -> Any:
        steps = [
            {
                "step": step,
                "priority": priority,
                "interface": "deploy",
                "reboot_requested": False,
                "abortable": True,
            }
            for step, priority in OFFERED[kind]
        ]
        return {f"{kind}_steps": {MANAGER: steps}, "hardware_manager_version": VERSIONS}

    return offer


def _execute(kind: str) -> Callable[[Work, Params], Awaitable[Any]]:
    async def execute(work: Work, params: Params) -> Any:
        asked = params.get("step") or {}
        name = str(asked.get("step", ""))
        error, summary = _KINDS[kind]
        work.chassis.note(f"{kind} step {name} begins")
        await work.chassis.save()
        await asyncio.sleep(work.timings.step)
        told = work.chassis.record.faults.fail_steps.get(name)
        if told is not None:
            raise StepFailed(f"Error performing {kind} step {name}: {told}", kind=error, summary=summary)
        step = STEPS.get(name)
        if step is None:
            details = f"No HardwareManager found to handle method: Could not find method: {name}"
            raise StepFailed(details, kind="HardwareManagerMethodNotFound", summary=summary)
        try:
            result = await step(work, asked.get("args") or {})
        except StepFailed as failure:
            details = f"Error performing {kind} step {name}: {failure.kind}: {failure}"
            raise StepFailed(details, kind=error, summary=summary) from failure
        return {f"{kind}_result": result, f"{kind}_step": asked}

    return execute


async def _nothing(_work: Work, _params: Params) -> Any:
    return {}


async def _install_bootloader(work: Work, _: Params) -> Any:
    """A whole-disk image brings its boot loader; the firmware boots the disk by its signature."""
    if not await asyncio.to_thread(work.chassis.disk.bootable):
        raise StepFailed(
            "the disk has no boot signature in its first sector",
            kind="CommandExecutionError",
            summary="Command execution failed",
        )
    return None


async def _collect_logs(work: Work, _: Params) -> Any:
    lines = "".join(f"{line.at.isoformat()} {line.text}\n" for line in work.chassis.record.log).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo("agent.log")
        entry.size = len(lines)
        archive.addfile(entry, io.BytesIO(lines))
    return {"system_logs": base64.b64encode(buffer.getvalue()).decode()}


_COMMANDS: Final[dict[str, Callable[[Work, Params], Awaitable[Any]]]] = {
    "clean.get_clean_steps": _offer("clean"),
    "deploy.get_deploy_steps": _offer("deploy"),
    "service.get_service_steps": _offer("service"),
    "clean.execute_clean_step": _execute("clean"),
    "deploy.execute_deploy_step": _execute("deploy"),
    "service.execute_service_step": _execute("service"),
    "standby.get_partition_uuids": _nothing,
    "standby.sync": _nothing,
    "standby.power_off": _nothing,
    "standby.run_image": _nothing,
    "image.install_bootloader": _install_bootloader,
    "log.collect_system_logs": _collect_logs,
}

QUICK: Final = frozenset(_COMMANDS) - {f"{kind}.execute_{kind}_step" for kind in _KINDS}
"""Commands that are over before they are answered. Ironic polls for the end of the others."""


def work_for(command: str) -> Callable[[Work, Params], Awaitable[Any]] | None:
    return _COMMANDS.get(command)


def step_name(command: Command) -> str:
    """What a log calls the command: the step for those that execute one."""
    step = command.params.get("step")
    return str(step.get("step")) if isinstance(step, dict) else command.name
