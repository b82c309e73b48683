"""Ramdisks: what a host boots to be inspected, cleaned and installed.

Where each host has an image of its own, this asks for it in the PreprovisioningImage of the host's name and waits until whoever
builds such images has answered; the answer is looked at in every pass that may boot it, and counts only if it fits what is asked
for now. Elsewhere all hosts boot the back end's own image, and the network configuration goes to the back end.
Leaves booting to the back end, and building to another controller.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from typing import Any, Final

from ingot.api.baremetalhost import BareMetalHost, ErrorType, OperationalStatus, State
from ingot.api.inspection import inspection_mode
from ingot.api.installed import RUNS_A_SYSTEM, deploy_method
from ingot.api.meta import Condition, Key, Malformed
from ingot.api.preprovisioningimage import (
    HOST_FINALIZER,
    PREPROVISIONING_IMAGES,
    ConditionType,
    ImageFormat,
    PreprovisioningImage,
    PreprovisioningImageSpec,
)
from ingot.api.wire import wire
from ingot.hosts.beside.ramdisk_source import leads_elsewhere
from ingot.hosts.finalizers import without
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import Block, Wait
from ingot.hosts.secrets.reading import owner_of, read_secret
from ingot.provisioner import OwnRamdisk
from ingot.trust import Secret

_NEVER: Final = frozenset(
    {
        State.NONE,
        State.UNMANAGED,
        State.REGISTERING,
        State.POWERING_OFF_BEFORE_DELETE,
        State.DELETING,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramdisk:
    """What the back end is told of it."""

    own: OwnRamdisk | None = None
    version: str = ""
    """Of its own: what it was made of."""
    network: Secret = field(default_factory=lambda: Secret(""))


def may_boot(host: BareMetalHost) -> bool:
    """Whether the host may boot a ramdisk in the state it is in."""
    state = host.state
    if state in _NEVER:
        return False
    if state in RUNS_A_SYSTEM:
        return host.status.operational_status is OperationalStatus.SERVICING
    if state is State.DEPROVISIONING:
        return host.spec.automated_cleaning_mode != "disabled"
    return not (state is State.INSPECTING and inspection_mode(host) == "fast")


async def ramdisk(p: Pass) -> Ramdisk | Block | Wait:
    """What the host boots; or what is waited for, or wrong."""
    if not p.tools.settings.own_ramdisks:
        return await _usual(p)
    if not may_boot(p.current):
        await _let_go(p)
        return Ramdisk()
    found = await _own(p)
    if isinstance(found, Block | Wait) and starts_live_image(p.current):
        # It is not booted now; the back end only wants to know of one.
        image = p.tools.companions.ramdisks.get(p.key)
        return _built(p, image) if image is not None and image.status.image_url else found
    return found


def starts_live_image(host: BareMetalHost) -> bool:
    """Whether the host is being provisioned with an image that is booted as it is, without a ramdisk before it."""
    image, custom = host.status.last_attempted_image, host.status.provisioning.custom_deploy
    live = image is not None and image.format == "live-iso" and not deploy_method(image, custom)
    return live and host.state is State.PROVISIONING


async def _own(p: Pass) -> Ramdisk | Block | Wait:
    name = p.host.spec.preprovisioning_network_data_name
    version = ""
    if name:
        secret = p.tools.secrets.get(Key(p.key.namespace, name))
        if secret is None:
            return _missing(p, name)
        version = secret.metadata.resource_version
    formats = p.tools.backend.ramdisk_formats(p.host.spec.bmc.address)
    if not formats:
        return Block(
            ErrorType.REGISTRATION,
            f"a host with the BMC address {p.host.spec.bmc.address} cannot boot a ramdisk of its own, and hosts here do not boot "
            "another one. Correct spec.bmc.address.",
        )
    spec, source = wanted(p.current, formats), p.tools.settings.ramdisk_source
    image = p.tools.companions.ramdisks.get(p.key)
    if image is None or image.metadata.deletion_timestamp is None:
        image = await _asked_for(p, image, spec)
    elif not _is_usable(image, spec, network_version=version, source=source):
        await _let_go(p)
        return Wait(
            f"PreprovisioningImage {p.key.name} is being deleted; another one is asked for once it is gone"
        )
    if (error := _error(image)) is not None:
        return Block(
            ErrorType.REGISTRATION,
            f"the ramdisk of the host cannot be built: PreprovisioningImage {p.key.name} says {error}",
        )
    missing = what_is_missing(image, network_version=version, source=source)
    if missing is not None and p.state is not State.AVAILABLE:
        return Wait(
            f"waiting for the ramdisk that is built for this host: {missing} in PreprovisioningImage {p.key.name}"
        )
    # A host that is available boots nothing now: until the image that it needs is there, it keeps the one it had.
    return _built(p, image)


def _built(p: Pass, image: PreprovisioningImage) -> Ramdisk:
    made = image.status
    if not made.image_url or leads_elsewhere(made, p.tools.settings.ramdisk_source):
        return Ramdisk()
    return Ramdisk(
        own=OwnRamdisk(
            url=made.image_url,
            format=made.format or "iso",
            kernel_url=made.kernel_url,
            kernel_params=made.extra_kernel_params,
        ),
        version=made.version,
    )


def wanted(host: BareMetalHost, formats: tuple[ImageFormat, ...]) -> PreprovisioningImageSpec:
    """The image that the host needs."""
    hardware = None if host.spec.architecture else host.hardware()
    found = hardware.cpu.arch if hardware is not None else ""
    return PreprovisioningImageSpec(
        accept_formats=list(formats),
        # Of a machine that nobody has looked at yet it is supposed that it is like the one we run on.
        architecture=host.spec.architecture or found or _our_architecture(),
        network_data_name=host.spec.preprovisioning_network_data_name,
    )


def what_is_missing(image: PreprovisioningImage, *, network_version: str, source: str = "") -> str | None:
    """Why the image that was built is not the one that is asked for; None when it is. `source`: where it has to be served."""
    spec, made = image.spec, image.status
    ready = _condition(image, ConditionType.READY)
    if ready is None or ready.status != "True":
        return f"it is not ready yet{f' ({ready.message or ready.reason})' if ready is not None else ''}"
    if ready.observed_generation != _generation_of_request(image):
        return "it was built for an earlier request"
    if made.architecture != spec.architecture:
        return (
            f"it is for {made.architecture or 'an unknown architecture'}, and {spec.architecture} is needed"
        )
    if made.format not in spec.accept_formats:
        return f"it is of the format {made.format}, and the host boots {' or '.join(spec.accept_formats)}"
    built_with = made.network_data
    if built_with.name != spec.network_data_name or built_with.version != network_version:
        return "an earlier network configuration is in it"
    if elsewhere := leads_elsewhere(made, source):
        return f"it leads to {elsewhere}, and ramdisks come from {source} alone"
    return None if made.image_url else "it has no URL"


def _error(image: PreprovisioningImage) -> str | None:
    """Why the image cannot be built as it is asked for now; None where it can, or where that is not known yet."""
    found = _condition(image, ConditionType.ERROR)
    if found is None or found.status != "True":
        return None
    if found.observed_generation not in (0, _generation_of_request(image)):
        return None
    return found.message or found.reason or "no more than that"


def _generation_of_request(image: PreprovisioningImage) -> int:
    """A deletion counts as a change of its own, and asks for nothing."""
    return image.metadata.generation - (image.metadata.deletion_timestamp is not None)


def _is_usable(
    image: PreprovisioningImage, spec: PreprovisioningImageSpec, *, network_version: str, source: str
) -> bool:
    """Whether an image that is being deleted still serves: nobody builds it anew."""
    held = HOST_FINALIZER in image.metadata.finalizers
    missing = what_is_missing(image, network_version=network_version, source=source)
    return held and image.spec == spec and missing is None


def _condition(image: PreprovisioningImage, kind: ConditionType) -> Condition | None:
    return next((found for found in image.status.conditions if found.type == kind), None)


def _our_architecture() -> str:
    machine = platform.machine()
    return {"AMD64": "x86_64", "arm64": "aarch64"}.get(machine, machine)


# The object


async def _asked_for(
    p: Pass, image: PreprovisioningImage | None, spec: PreprovisioningImageSpec
) -> PreprovisioningImage:
    """The PreprovisioningImage, made or corrected so that it asks for this."""
    companions = p.tools.companions
    if image is None:
        image = await p.tools.client.create(
            PREPROVISIONING_IMAGES,
            {
                "metadata": {
                    "name": p.key.name,
                    "namespace": p.key.namespace,
                    "labels": p.host.metadata.labels,
                    "finalizers": [HOST_FINALIZER],
                    "ownerReferences": wire([owner_of(p.host, controller=True)]),
                },
                "spec": wire(spec),
            },
            namespace=p.key.namespace,
        )
        companions.wrote(companions.ramdisks, image)
    elif change := _correction(p, image, spec):
        image = await p.tools.client.patch(
            PREPROVISIONING_IMAGES, p.key, change, resource_version=image.metadata.resource_version
        )
        companions.wrote(companions.ramdisks, image)
    return image


def _correction(p: Pass, image: PreprovisioningImage, spec: PreprovisioningImageSpec) -> dict[str, Any]:
    """The patch that makes the object ask for this; empty where it does. Labels are the host's, and those of others stay."""
    have, host = image.metadata, p.host.metadata
    change: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    if labels := {key: value for key, value in host.labels.items() if have.labels.get(key) != value}:
        meta["labels"] = labels
    if HOST_FINALIZER not in have.finalizers:
        meta["finalizers"] = [*have.finalizers, HOST_FINALIZER]
    if not any(owner.uid == host.uid for owner in have.owner_references):
        others = [owner for owner in have.owner_references if not owner.controller]
        meta["ownerReferences"] = wire([*others, owner_of(p.host, controller=True)])
    if meta:
        change["metadata"] = meta
    if image.spec != spec:
        change["spec"] = {
            "acceptFormats": spec.accept_formats,
            "architecture": spec.architecture,
            "networkDataName": spec.network_data_name or None,
        }
    return change


async def _let_go(p: Pass) -> None:
    """Somebody deletes the object, and the host does not need this one: it may go, and is made anew when one is needed."""
    image = p.tools.companions.ramdisks.get(p.key)
    if image is None or image.metadata.deletion_timestamp is None:
        return
    if HOST_FINALIZER not in image.metadata.finalizers:
        return
    left = without(image.metadata.finalizers, HOST_FINALIZER)
    await p.tools.client.patch(
        PREPROVISIONING_IMAGES,
        p.key,
        {"metadata": {"finalizers": left}},
        resource_version=image.metadata.resource_version,
    )


# Without images of their own


async def _usual(p: Pass) -> Ramdisk | Block:
    name = p.host.spec.preprovisioning_network_data_name
    if not name:
        return Ramdisk()
    try:
        secret = await read_secret(p, name)
        if secret is None:
            problem = _missing(p, name)
        else:
            text = secret.text("networkData")
            text = secret.text("value") if text is None else text
            if text is not None or secret.text("nmstate") is None:
                return Ramdisk(network=Secret(text or ""))
            problem = _other_language(name)
    except Malformed as error:
        problem = Block(ErrorType.REGISTRATION, str(error))
    return problem if may_boot(p.current) else Ramdisk()


def _other_language(name: str) -> Block:
    return Block(
        ErrorType.REGISTRATION,
        f"Secret {name}, named by spec.preprovisioningNetworkDataName, has the key nmstate alone, which only ramdisks that are "
        "made for each host understand. Add the key networkData, with OpenStack's network_data.json.",
    )


def _missing(p: Pass, name: str) -> Block:
    return Block(
        ErrorType.REGISTRATION,
        f"Secret {name}, named by spec.preprovisioningNetworkDataName, does not exist in namespace {p.key.namespace}. Create it "
        "with the key networkData; the host goes on as soon as it is there.",
    )
