"""Hardware: what a machine is made of, and where that is written.

Owns the HardwareData object of the host's name, its copy in `status.hardware` that older clients read, and the architecture in
the spec that is filled in from it. The description comes from inspection (`inspecting`), from a person's annotation, or from a
HardwareData that a person or an earlier life of the host left.

HardwareData is never changed: a new description replaces the object, so whoever watches sees one go and another come.
"""

from __future__ import annotations

import msgspec

from ingot.api.baremetalhost import Annotation, EventReason, HardwareDetails, State
from ingot.api.hardwaredata import FINALIZER, HARDWARE_DATA
from ingot.api.inspection import inspection_is_disabled
from ingot.api.meta import Key, PartialObjectMetadata
from ingot.api.strict import problem_with
from ingot.api.wire import wire
from ingot.hosts.finalizers import release
from ingot.hosts.host_pass import Pass, Tools
from ingot.hosts.outcome import Wait
from ingot.hosts.secrets.reading import owner_of
from ingot.kube import AlreadyExists, NotFound

# What is known without an inspection


async def known_hardware(p: Pass) -> None:
    """Take over what somebody wrote about the hardware, and fill in the architecture."""
    if p.deleting:
        return
    await _take_annotation(p)
    if p.status.hardware is msgspec.UNSET and not _is_being_inspected(p):
        found = await details_in_hardware_data(p)
        if found is not None:
            p.change(hardware=found)
            p.tell(EventReason.UPDATE_HARDWARE_DETAILS, "Set hardware details from HardwareData")
    await fill_in_architecture(p)


def _is_being_inspected(p: Pass) -> bool:
    """What an inspection found is on its way into the status by itself, and what it replaces does not count any more."""
    return p.state is State.INSPECTING and not inspection_is_disabled(p.host)


async def _take_annotation(p: Pass) -> None:
    text = p.host.metadata.annotations.get(Annotation.HARDWARE_DETAILS)
    if text is None:
        return
    if (problem := problem_with(text, HardwareDetails)) is not None:
        p.tell(
            EventReason.INVALID_ANNOTATION_VALUE,
            f"The annotation {Annotation.HARDWARE_DETAILS} is not used: the description of the hardware {problem}.",
            "Warning",
        )
    elif p.status.hardware is msgspec.UNSET or inspection_is_disabled(p.host):
        details = msgspec.json.decode(text, type=HardwareDetails)
        if details != p.current.hardware():
            p.change(hardware=_raw(details))
            p.tell(EventReason.UPDATE_HARDWARE_DETAILS, "Set hardware details from annotation")
            # Before the annotation goes: it is the only copy.
            await p.save("the hardware details were taken from the annotation")
    p.tell(EventReason.REMOVE_ANNOTATION, "Hardware details annotation removed")
    await p.patch_host({"metadata": {"annotations": {Annotation.HARDWARE_DETAILS: None}}})


async def details_in_hardware_data(p: Pass) -> msgspec.Raw | None:
    """What the HardwareData of the host's name says, for the status; None where there is none, or nothing in it."""
    seen = p.tools.companions.hardware.get(p.key)
    if seen is None or seen.metadata.deletion_timestamp is not None:
        return None
    try:
        found = await p.tools.client.get(HARDWARE_DATA, p.key)
    except NotFound:
        return None
    return _raw(found.spec.hardware) if found.spec.hardware is not None else None


async def fill_in_architecture(p: Pass) -> None:
    if p.host.spec.architecture or p.status.hardware is msgspec.UNSET:
        return
    hardware = p.current.hardware()
    if hardware is not None and hardware.cpu.arch:
        await p.patch_host({"spec": {"architecture": hardware.cpu.arch}})


# What an inspection found


async def keep(p: Pass, details: HardwareDetails) -> Wait | None:
    """Write down what was found, in place of what was known; `Wait` while what was known cannot go."""
    if (held := await _replace_hardware_data(p, details)) is not None:
        return held
    p.change(hardware=_raw(details))
    await fill_in_architecture(p)
    return None


async def _replace_hardware_data(p: Pass, details: HardwareDetails) -> Wait | None:
    body = {
        "metadata": {
            "name": p.key.name,
            "namespace": p.key.namespace,
            "finalizers": [FINALIZER],
            "ownerReferences": wire([owner_of(p.host, controller=True)]),
        },
        "spec": {"hardware": wire(details)},
    }
    for _ in range(2):
        try:
            made = await p.tools.client.create(HARDWARE_DATA, body, namespace=p.key.namespace)
        except AlreadyExists:
            # From an earlier inspection, an earlier host of the name, or a person.
            await _remove_hardware_data(p)
        else:
            companions = p.tools.companions
            companions.wrote(companions.hardware, PartialObjectMetadata(metadata=made.metadata))
            return None
    return Wait(
        f"the HardwareData {p.key.name} of before is being deleted, and somebody's finalizer holds it; what inspection found is "
        "written as soon as it is gone"
    )


async def _remove_hardware_data(p: Pass) -> None:
    await release_hardware_data(p.tools, p.key)
    try:
        await p.tools.client.delete(HARDWARE_DATA, p.key)
    except NotFound:
        return


async def release_hardware_data(tools: Tools, key: Key) -> None:
    """Take our finalizer off, so that HardwareData can go."""
    await release(tools.client, HARDWARE_DATA, key, FINALIZER)


def _raw(details: HardwareDetails) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(wire(details)))
