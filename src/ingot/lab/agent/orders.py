"""The commands that the agent knows, by extension and name, and what each does.

Owns which of them run in the request and which beside it, as in ironic-python-agent: only the latter are followed by a heartbeat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from ingot.lab.agent.failures import command_failed
from ingot.lab.agent.logs import packed
from ingot.lab.agent.steps import VERSIONS, offered, run_step
from ingot.lab.agent.work import Params, Work
from ingot.lab.inventory import inventory

After = Literal["", "off", "restart", "locked"]


@dataclass(frozen=True, slots=True)
class Order:
    run: Callable[[Work, Params], Awaitable[Any]]
    short: bool = True
    """It is over in a moment, unless the server is held there."""
    in_thread: bool = False
    """The real agent runs it beside the request, and sends a heartbeat when it has ended."""
    after: After = ""
    """What becomes of the server, or of the agent, once it has ended well."""


async def _get_steps(kind: str, _work: Work, _params: Params) -> Any:
    return {f"{kind}_steps": offered(kind), "hardware_manager_version": VERSIONS}


async def _execute(kind: str, work: Work, params: Params) -> Any:
    return await run_step(work, kind, params)


async def _nothing(_work: Work, _params: Params) -> Any:
    return None


async def _partitions(work: Work, _: Params) -> Any:
    """Of an image of a whole disk the agent knows the disk's identifier alone; before one was written it knows nothing."""
    device = work.written_last()
    if device is None:
        return {}
    return {"root uuid": await asyncio.to_thread(work.disk(device).identifier)}


async def _install_bootloader(work: Work, _: Params) -> Any:
    """An image of a whole disk brings its boot loader; the firmware boots the disk by its signature."""
    device = work.written_last()
    if device is None or not await asyncio.to_thread(work.disk(device).bootable):
        raise command_failed("the disk has no boot signature in its first sector")
    return None


async def _collect_logs(work: Work, _: Params) -> Any:
    return {"system_logs": packed(work.chassis.record.log)}


async def _hardware(work: Work, _: Params) -> Any:
    return inventory(work.chassis.plate, work.chassis.record, boot_mac=work.ramdisk.boot_mac)


_KINDS: Final = ("clean", "deploy", "service")
ORDERS: Final[dict[str, dict[str, Order]]] = {
    **{
        kind: {
            f"get_{kind}_steps": Order(partial(_get_steps, kind)),
            f"execute_{kind}_step": Order(partial(_execute, kind), short=False, in_thread=True),
        }
        for kind in _KINDS
    },
    "standby": {
        "get_partition_uuids": Order(_partitions),
        "sync": Order(_nothing),
        "power_off": Order(_nothing, in_thread=True, after="off"),
        "run_image": Order(_nothing, in_thread=True, after="restart"),
    },
    "image": {"install_bootloader": Order(_install_bootloader, in_thread=True)},
    "system": {"lockdown": Order(_nothing, after="locked")},
    "rescue": {"finalize_rescue": Order(_nothing, after="locked")},
    "log": {"collect_system_logs": Order(_collect_logs)},
    "poll": {"get_hardware_info": Order(_hardware)},
}
