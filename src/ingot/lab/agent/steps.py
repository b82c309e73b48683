"""What the agent can do: the clean, deploy and service steps that it offers, and running one.

Each really does it to the server's disks, or fails with the words that ironic-python-agent has for it. A fault of the server
can make any step fail by name. Names, priorities and interfaces of the offered steps are those of ironic-python-agent; what
needs a real processor or network to wear out (burn-in) or a container engine is not offered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from ingot.lab.agent import coreos, files
from ingot.lab.agent.arrays import forget_arrays
from ingot.lab.agent.coreos_order import ARGUMENTS as COREOS_ARGUMENTS
from ingot.lab.agent.coreos_order import STEP as INSTALL_COREOS
from ingot.lab.agent.deploy import STEP as WRITE_IMAGE
from ingot.lab.agent.deploy import write_image
from ingot.lab.agent.failures import bad_parameters
from ingot.lab.agent.raid import arrays_for
from ingot.lab.agent.work import Params, Work
from ingot.lab.errors import StepFailed
from ingot.lab.inventory import MANAGER

GENERIC: Final = "GenericHardwareManager"
COREOS: Final = "CoreOSHardwareManager"
VERSIONS: Final = {MANAGER["name"]: MANAGER["version"], "ingot_coreos": "1"}
_KINDS: Final = {
    "clean": ("CleaningError", "Clean step failed"),
    "deploy": ("DeploymentError", "Deploy step failed"),
    "service": ("ServicingError", "Service step failed"),
}
Step = Callable[[Work, Params], Awaitable[Any]]


async def _erase_metadata(work: Work, _: Params) -> Any:
    for device in work.devices():
        await asyncio.to_thread(work.disk(device).wipe_metadata)
    _wiped(work, "the start and the end of each disk and the config drive are wiped")


async def _erase_devices(work: Work, _: Params) -> Any:
    for device in work.devices():
        await asyncio.to_thread(work.disk(device).wipe)
    _wiped(work, "all disks and the config drive are wiped")
    return {device.name: None for device in work.devices()}


def _wiped(work: Work, text: str) -> None:
    work.chassis.record.written.clear()
    work.chassis.record.cleanings += 1
    work.chassis.note(text)


async def _nothing(_work: Work, _: Params) -> Any:
    return None


async def _delete_raid(work: Work, _: Params) -> Any:
    await forget_arrays(work)


async def _create_raid(work: Work, _: Params) -> Any:
    return await _make(work, work.node.get("target_raid_config") or {})


async def _apply_raid(work: Work, args: Params) -> Any:
    config = args.get("raid_config")
    if not isinstance(config, dict):
        raise bad_parameters("apply_configuration needs raid_config")
    arrays_for(config, work.devices())  # refused before anything is taken apart
    if args.get("delete_existing", True):
        await forget_arrays(work)
    return await _make(work, config)


async def _make(work: Work, config: Params) -> Any:
    """Make the arrays that a configuration asks for; what the agent then says of RAID."""
    record = work.chassis.record
    made = arrays_for(config, work.devices())
    if not made:
        return {}
    await forget_arrays(work)
    for array in made:
        for member in array.members:
            record.written.pop(member, None)
            await asyncio.to_thread(work.chassis.disks.wipe_key, member)
    record.arrays = made
    work.chassis.note(f"software RAID: {', '.join(f'{array.device} level {array.level}' for array in made)}")
    return config


_RUN: Final[dict[str, Step]] = {
    "erase_devices": _erase_devices,
    "erase_devices_express": _erase_metadata,
    "erase_devices_metadata": _erase_metadata,
    "erase_pstore": _nothing,
    "clean_uefi_nvram": _nothing,
    "delete_configuration": _delete_raid,
    "create_configuration": _create_raid,
    "apply_configuration": _apply_raid,
    WRITE_IMAGE: write_image,
    files.STEP: files.inject,
    INSTALL_COREOS: coreos.install,
}
_ITS_OWN_MIDDLE: Final = frozenset({WRITE_IMAGE, INSTALL_COREOS})
"""Steps that are held, or die, where half of their work is done."""

_CLEAN: Final = (
    ("erase_devices", 10, "deploy"),
    ("erase_devices_metadata", 99, "deploy"),
    ("erase_devices_express", 0, "deploy"),
    ("erase_pstore", 0, "deploy"),
    ("clean_uefi_nvram", 0, "deploy"),
    ("delete_configuration", 0, "raid"),
    ("create_configuration", 0, "raid"),
)
_DEPLOY: Final = (
    ("erase_devices_metadata", 0, "deploy"),
    ("apply_configuration", 0, "raid"),
    ("clean_uefi_nvram", 0, "deploy"),
    (WRITE_IMAGE, 0, "deploy"),
    (files.STEP, 0, "deploy"),
)
_SERVICE: Final = (
    ("delete_configuration", 0, "raid"),
    ("apply_configuration", 0, "raid"),
    ("create_configuration", 0, "raid"),
    (WRITE_IMAGE, 0, "deploy"),
    (files.STEP, 0, "deploy"),
)
_OFFERED: Final = {"clean": _CLEAN, "deploy": _DEPLOY, "service": _SERVICE}
_COREOS: Final = {"deploy": ((INSTALL_COREOS, 0, "deploy"),)}
_ARGUMENTS: Final = {
    "apply_configuration": {"raid_config": True, "delete_existing": False},
    "clean_uefi_nvram": {"match_patterns": False},
    files.STEP: {"files": False, "verify_ca": False},
    INSTALL_COREOS: dict.fromkeys(COREOS_ARGUMENTS, False),
}


def offered(kind: str) -> dict[str, list[dict[str, Any]]]:
    """The steps of this kind, by hardware manager."""
    managers = {GENERIC: _OFFERED[kind], COREOS: _COREOS.get(kind, ())}
    return {
        manager: [_described(kind, *step) for step in steps] for manager, steps in managers.items() if steps
    }


def _described(kind: str, step: str, priority: int, interface: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "step": step,
        "priority": priority,
        "interface": interface,
        "reboot_requested": False,
    }
    if kind == "clean" or (kind == "service" and step in ("delete_configuration", "create_configuration")):
        described["abortable"] = True
    if step in _ARGUMENTS:
        described["argsinfo"] = {
            name: {"description": f"{name} of {step}", "required": required}
            for name, required in _ARGUMENTS[step].items()
        }
    return described


async def run_step(work: Work, kind: str, params: Params) -> Any:
    """Run the step that a command asks for; what the agent answers with."""
    asked = params.get("step") or {}
    name = str(asked.get("step", ""))
    error, summary = _KINDS[kind]
    if params.get(f"{kind}_version") not in (None, {}, VERSIONS):
        raise StepFailed(
            f"Current versions: {VERSIONS}, versions used by ironic: {params[f'{kind}_version']}",
            kind="VersionMismatch",
            summary="Hardware managers version mismatch, reload agent with correct version",
            code=409,
        )
    work = replace(work, node=params.get("node") or {})
    work.chassis.note(f"{kind} step {name} begins")
    await work.chassis.save()
    await asyncio.sleep(work.timings.step)
    told = work.chassis.faults.fail_steps.get(name)
    if told is not None:
        work.chassis.acts("fail_steps")
        raise StepFailed(told, kind=error, summary=summary)
    step = _RUN.get(name)
    if step is None:
        raise StepFailed(
            f"Could not find method: {name}",
            kind="HardwareManagerMethodNotFound",
            summary="No HardwareManager found to handle method",
        )
    if name not in _ITS_OWN_MIDDLE:
        await work.midway(name)
    result = await step(work, asked.get("args") or {})
    return {f"{kind}_result": result, f"{kind}_step": asked}
