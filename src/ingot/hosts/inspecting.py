"""Inspecting: find out what the machine is made of.

Owns the HardwareData object, which belongs to the host and carries its name, and the copy of it in `status.hardware` that
older clients read. Leaves what to do with the hardware to others.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ingot.api.baremetalhost import ErrorType, EventReason, HardwareDetails, State
from ingot.api.hardwaredata import FINALIZER, HARDWARE_DATA
from ingot.api.inspection import inspection_is_disabled
from ingot.api.wire import wire
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import SOON, Advance, Fail, Outcome, Wait
from ingot.hosts.secrets import owner_of
from ingot.kube import AlreadyExists, NotFound
from ingot.provisioner import Busy, Failed, Inspection, NotRegistered, Ready


async def inspecting(p: Pass) -> Outcome:
    if inspection_is_disabled(p.host):
        p.tell(EventReason.INSPECTION_SKIPPED, "Inspection is disabled")
        return Advance(State.PREPARING)
    match await p.tools.backend.inspect(
        p.ref, Inspection(), permit=p.permit, again=p.failed_with(ErrorType.INSPECTION)
    ):
        case Busy(why, detail):
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message):
            return Fail(ErrorType.INSPECTION, message)
        case Ready(details):
            await _keep(p, details)
    p.completed()
    p.tell(EventReason.INSPECTION_COMPLETE, "Hardware inspection completed")
    return Advance(State.PREPARING)


async def _keep(p: Pass, details: HardwareDetails) -> None:
    hardware = wire(details)
    await _write_hardware_data(p, hardware)
    p.change(hardware=msgspec.Raw(msgspec.json.encode(hardware)))
    if details.cpu.arch and not p.host.spec.architecture:
        await p.patch_host({"spec": {"architecture": details.cpu.arch}})


async def _write_hardware_data(p: Pass, hardware: dict[str, Any]) -> None:
    """HardwareData of the host's name. A second inspection, or one repeated after a crash, replaces what is in it."""
    owners = wire([owner_of(p.host, controller=True)])
    body = {
        "metadata": {
            "name": p.key.name,
            "namespace": p.key.namespace,
            "finalizers": [FINALIZER],
            "ownerReferences": owners,
        },
        "spec": {"hardware": hardware},
    }
    client = p.tools.client
    try:
        await client.create(HARDWARE_DATA, body, namespace=p.key.namespace)
    except AlreadyExists:
        there = await client.get(HARDWARE_DATA, p.key)
        version = there.metadata.resource_version
        # What an earlier inspection found and this one did not must go, and a merge patch only adds.
        await client.patch(HARDWARE_DATA, p.key, {"spec": {"hardware": None}}, resource_version=version)
        # It may be left from an earlier host of this name, and would go with that one.
        ours = {
            "finalizers": list(dict.fromkeys([*there.metadata.finalizers, FINALIZER])),
            "ownerReferences": owners,
        }
        await client.patch(HARDWARE_DATA, p.key, {"metadata": ours, "spec": {"hardware": hardware}})


async def release_hardware_data(p: Pass) -> None:
    """Let HardwareData go together with its host."""
    client = p.tools.client
    try:
        there = await client.get(HARDWARE_DATA, p.key)
    except NotFound:
        return
    if FINALIZER in there.metadata.finalizers:
        left = [finalizer for finalizer in there.metadata.finalizers if finalizer != FINALIZER]
        await client.patch(
            HARDWARE_DATA,
            p.key,
            {"metadata": {"finalizers": left}},
            resource_version=there.metadata.resource_version,
        )
