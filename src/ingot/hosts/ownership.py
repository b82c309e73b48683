"""Who owns which image of a host, and why, in words. Pure.

A host has two. The provisioning image is what it boots to be inspected, cleaned and installed: it belongs to the release, and no
field, annotation or Secret of a host chooses it. The target image is what is installed: it belongs to whoever claims the host, is
set together with the claim and goes with it; where nobody has a claim it is what the host's own manifest says.

Who claims is told apart from what the API says of them: a claimant may be gone, or not for everybody to see.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ingot.api.baremetalhost import INSTALL_COREOS, BareMetalHost, CustomDeploy, Image, State
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim
from ingot.api.installed import deploy_method, mark_of, must_deprovision, wanted
from ingot.api.machine import MACHINES, Annotation, Machine
from ingot.api.meta import ObjectReference
from ingot.api.preprovisioningimage import FINALIZER, ConditionType, PreprovisioningImage
from ingot.trust import redact

RELEASE: Final = "the release"
MANIFEST: Final = "the host's own manifest"
NOBODY: Final = "nobody"
_BY_DEFAULT: Final = {
    "provider spec": "its provider spec names it",
    "cluster": "its provider spec names none, and this is the default of the cluster (ConfigMap ingot-target-image)",
    "release": "neither its provider spec nor the cluster names one, and this is the default of the release",
}


class Absent(enum.Enum):
    """Why there is nothing to say of a claimant."""

    GONE = "gone"
    UNSEEN = "unseen"


Claimant = Machine | HostClaim | Absent


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """One image of a host."""

    image: str
    owner: str
    why: str
    change: str
    """What changing it, or removing it, does, and who can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagesOfHost:
    provisioning: Owned
    target: Owned


def is_ours(consumer: ObjectReference) -> bool:
    """Whether the claimant is of a kind that Ingot looks after, and can be asked for."""
    group = consumer.api_version.rpartition("/")[0]
    return (group, consumer.kind) in {(kind.group, kind.kind) for kind in (MACHINES, HOST_CLAIMS)}


def images_of(
    host: BareMetalHost, *, built: PreprovisioningImage | None, claimant: Claimant | None
) -> ImagesOfHost:
    """`built`: the ramdisk of the host's own, if there is one. `claimant`: what `spec.consumerRef` names, if it is of ours."""
    return ImagesOfHost(provisioning=_provisioning(host, built), target=_target(host, claimant))


# The provisioning image


def _provisioning(host: BareMetalHost, built: PreprovisioningImage | None) -> Owned:
    ours = built is None or not built.status.image_url or FINALIZER in built.metadata.finalizers
    made = f"it is made for this host, in PreprovisioningImage {host.key}" if built is not None else ""
    booted = host.status.ramdisk
    if booted is not None:
        made = "; ".join(
            filter(None, (made, f"{booted.version or 'one'} was booted last, at {_at(booted.booted_at)}"))
        )
    if not ours:
        return Owned(
            image=_ramdisk(host, built),
            owner="whoever builds PreprovisioningImages here, which is not Ingot",
            why=f"{made}, and Ingot's builder has no part in it (its finalizer {FINALIZER} is missing)",
            change="by that builder; an operator with --images-url boots none but the release's",
        )
    return Owned(
        image=_ramdisk(host, built),
        owner=RELEASE,
        why=f"{made or 'all hosts boot the one that the back end is set up with'}; nothing in a host, in its Secrets or in "
        "what claims it chooses another",
        change="comes with another release: a host boots it when it is inspected, cleaned or installed the next time, and one "
        "that runs a system is not touched for it",
    )


def _ramdisk(host: BareMetalHost, built: PreprovisioningImage | None) -> str:
    if built is not None and built.status.image_url:
        made = built.status
        return f"{made.version or 'a ramdisk of a version that its builder does not tell'} ({made.format or 'iso'})"
    if built is not None:
        ready = next((found for found in built.status.conditions if found.type == ConditionType.READY), None)
        return f"none yet: {(ready and (ready.message or ready.reason)) or 'it is not built'}"
    booted = host.status.ramdisk
    if booted is not None:
        return f"{booted.version or 'a ramdisk'} ({booted.format or 'iso'}) when one was booted last"
    return "the ramdisk of the back end"


def _at(time: datetime | None) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z") if time is not None else "some time"


# The target image


def _target(host: BareMetalHost, claimant: Claimant | None) -> Owned:
    spec, consumer = host.spec, host.spec.consumer_ref
    image = _wanted(host)
    if consumer is None and spec.externally_provisioned:
        return Owned(
            image=f"{image}, which is not installed" if wanted(spec) is not None else "none of ours",
            owner="whoever installed what runs there",
            why="spec.externallyProvisioned says that the machine is used as it is",
            change="unset spec.externallyProvisioned to have the machine cleaned, and then an image installed",
        )
    if consumer is None and wanted(spec) is None:
        return Owned(
            image=image,
            owner=NOBODY,
            why="neither spec.consumerRef nor spec.image is set, and the host is for whoever claims it",
            change="a Machine or a HostClaim that claims the host sets it; so does spec.image of the host",
        )
    if consumer is None:
        return Owned(
            image=image,
            owner=MANIFEST,
            why="spec.image or spec.customDeploy of the host says so, and nobody claims the host",
            change="another one in the host installs the machine anew, none deprovisions it",
        )
    name = f"{consumer.kind} {consumer.namespace or host.metadata.namespace}/{consumer.name}"
    why, change = _claimed(consumer, claimant)
    if isinstance(claimant, Machine) and _is_replaced(host, claimant):
        why = "but somebody changed spec.image or spec.customDeploy of the host, and this is not what was decided for the Machine"
        change = _REPLACED
    return Owned(image=image, owner=name, why=f"it claims the host (spec.consumerRef); {why}", change=change)


def _claimed(consumer: ObjectReference, claimant: Claimant | None) -> tuple[str, str]:
    match claimant:
        case Machine():
            source = claimant.metadata.annotations.get(Annotation.IMAGE_SOURCE, "")
            why = _BY_DEFAULT.get(source, "nobody noted whether it or a default names the image")
            return why, _MACHINE
        case HostClaim():
            named = claimant.spec.image is not None or claimant.spec.custom_deploy is not None
            return (
                f"its spec {'names the image' if named else 'names none, and nothing is installed'}",
                _CLAIM,
            )
        case Absent.GONE:
            return (
                f"but no such {consumer.kind} exists any more",
                "nobody looks after it: remove spec.consumerRef, spec.image and spec.customDeploy from the host to have it "
                "emptied and free",
            )
        case Absent.UNSEEN:
            return (
                f"this {consumer.kind} cannot be looked at with your credentials",
                _MACHINE if consumer.kind == MACHINES.kind else _CLAIM,
            )
    return (
        "Ingot does not look after that kind",
        f"by whoever looks after {consumer.kind}: another image in the host installs the machine anew, none deprovisions it",
    )


def _is_replaced(host: BareMetalHost, machine: Machine) -> bool:
    decided = machine.metadata.annotations.get(Annotation.TARGET, "")
    found = mark_of(host.spec.image, host.spec.custom_deploy)
    return bool(decided and found) and decided != found and not host.spec.externally_provisioned


_REPLACED: Final = (
    "nobody puts it back: another one in the host installs the machine anew; deleting the Machine deprovisions the host and "
    "gives it back"
)
_MACHINE: Final = (
    "none: it was decided when the host was claimed, and another provider spec or default does not touch it; deleting the "
    "Machine deprovisions the host and gives it back"
)
_CLAIM: Final = (
    "another one in the claim installs the machine anew, none deprovisions it; deleting the claim deprovisions the host and "
    "gives it back"
)


def _wanted(host: BareMetalHost) -> str:
    spec, status = host.spec, host.status
    told = target_in_words(spec.image, spec.custom_deploy)
    if must_deprovision(host):
        before = status.provisioning.image if host.state is State.PROVISIONED else status.last_attempted_image
        had = target_in_words(before, status.provisioning.custom_deploy)
        return f"{told}, after {had} has been removed"
    return told


def target_in_words(image: Image | None, custom_deploy: CustomDeploy | None) -> str:
    """What is installed. A URL can hold a password, which is not shown."""
    named = redact(image.url) if image is not None and image.url else ""
    method = deploy_method(image, custom_deploy)
    if method == INSTALL_COREOS:
        step = "CoreOS" if named else "the CoreOS that comes with the release"
        return f"{step} from {named}" if named else step
    if method:
        return f"{named}, by the deploy step {method}" if named else f"what the deploy step {method} installs"
    return named or "none"
