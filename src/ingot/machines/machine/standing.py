"""How a Machine stands to the hosts: it has one, means to take one, was given one, has lost its own, or has none. Pure.

An intention names a host and the version of it that is taken: another process may be about to carry it out, and one that turned
to another host meanwhile would make it two. It stands while the host has that version. Once it has another, whoever carries the
intention out is refused, and a new one can be written. A Machine with a provider ID never takes another host, whatever became of
its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.installed import mark_of
from ingot.api.machine import FINALIZER, Annotation, Machine
from ingot.machines.machine.linking import Link, consumer_of, link_of, provider_id
from ingot.machines.machine.telling import Lost
from ingot.machines.vacancies import belongs_to, why_taken

_REMEDY: Final = "Delete the Machine; if it belongs to a MachineSet, another one is made."


@dataclass(frozen=True, slots=True)
class Has:
    """This host is its own, and it says so itself."""

    host: BareMetalHost


@dataclass(frozen=True, slots=True)
class Given:
    """This host names the Machine, and the Machine does not name it: somebody set it so, or we were interrupted."""

    host: BareMetalHost


@dataclass(frozen=True, slots=True)
class Means:
    """It is written down that it takes this host, which can be had."""

    host: BareMetalHost


@dataclass(frozen=True, slots=True)
class Free:
    """It may choose."""


Standing = Has | Given | Means | Lost | Free


def standing_of(machine: Machine, linked: BareMetalHost | None, given: Sequence[BareMetalHost]) -> Standing:
    """`linked` is the host under the name that the Machine has written down, `given` those that name the Machine."""
    link, me = link_of(machine), consumer_of(machine)
    if link is not None and linked is not None and link.means(linked) and belongs_to(linked, me):
        return Has(linked)
    if machine.spec.provider_id:
        return Lost(f"{_what_became(machine, link, linked)}. {_REMEDY}")
    if link is not None and linked is not None and link.means(linked) and why_taken(linked) is None:
        return Means(linked)
    return Given(given[0]) if given else Free()


def intention(machine: Machine, host: BareMetalHost, source: str) -> dict[str, Any]:
    """The patch by which the Machine says that it takes this host; empty where it says so."""
    version = host.metadata.resource_version
    return _marks(
        machine,
        {
            Annotation.HOST: str(host.key),
            Annotation.HOST_VERSION: version,
            Annotation.IMAGE_SOURCE: source,
        },
    )


def stands(machine: Machine, host: BareMetalHost) -> bool:
    """Whether somebody may still carry out what is written on the Machine, and take this host for it."""
    link, version = link_of(machine), machine.metadata.annotations.get(Annotation.HOST_VERSION)
    return link is not None and link.means(host) and host.metadata.resource_version == version


def possession(machine: Machine, host: BareMetalHost) -> dict[str, Any]:
    """The patch by which the Machine says that it has this host, and how that is getting on; empty where it says so."""
    wanted: dict[Annotation, str | None] = {
        Annotation.HOST: str(host.key),
        Annotation.HOST_VERSION: None,
        Annotation.INSTANCE_STATE: host.status.provisioning.state,
        Annotation.TARGET_REPLACED: replacement(machine, host) or None,
    }
    if machine.spec.provider_id:
        return _marks(machine, wanted)
    # What the host runs from now on was decided by now, whoever carried it out.
    wanted |= {Annotation.TARGET: _told(host) or None, Annotation.TARGET_REPLACED: None}
    return {**_marks(machine, wanted), "spec": {"providerID": provider_id(host)}}


def replacement(machine: Machine, host: BareMetalHost) -> str:
    """The mark of what somebody told the Machine's host to run instead of what was decided; "" where nobody did."""
    decided, found = machine.metadata.annotations.get(Annotation.TARGET, ""), _told(host)
    return found if decided and found != decided else ""


def decision(machine: Machine, mark: str) -> dict[str, Any]:
    """The patch by which a Machine that has its host says that it is told this now; empty where it was told so before."""
    return _marks(machine, {Annotation.TARGET: mark}) if machine.spec.provider_id else {}


def loss(machine: Machine) -> dict[str, Any]:
    """The patch by which the Machine says that nobody knows how its host is getting on."""
    return _marks(machine, {Annotation.INSTANCE_STATE: "Unknown"})


def says_whose(patch: dict[str, Any]) -> bool:
    """Whether such a patch says whose a host is, and not merely how it is getting on."""
    metadata = patch.get("metadata", {})
    return "spec" in patch or "finalizers" in metadata or Annotation.HOST in metadata.get("annotations", {})


def says_replaced(patch: dict[str, Any]) -> bool:
    """Whether such a patch says that somebody has the host run something else."""
    return bool(patch.get("metadata", {}).get("annotations", {}).get(Annotation.TARGET_REPLACED))


def _marks(machine: Machine, wanted: dict[Annotation, str | None]) -> dict[str, Any]:
    found = machine.metadata
    annotations = {str(name): value for name, value in wanted.items() if found.annotations.get(name) != value}
    metadata: dict[str, Any] = {"annotations": annotations} if annotations else {}
    if FINALIZER not in found.finalizers and found.deletion_timestamp is None:
        metadata["finalizers"] = [*found.finalizers, FINALIZER]
    return {"metadata": metadata} if metadata else {}


def _told(host: BareMetalHost) -> str:
    """The mark of what is to be installed on the host; "" for nothing, and where somebody else installs."""
    return "" if host.spec.externally_provisioned else mark_of(host.spec.image, host.spec.custom_deploy)


def _what_became(machine: Machine, link: Link | None, linked: BareMetalHost | None) -> str:
    if link is None:
        return f"{machine.spec.provider_id}, the Machine's provider ID, does not name a BareMetalHost"
    if linked is None:
        return f"BareMetalHost {link.key} does not exist any more"
    if not link.means(linked):
        return f"BareMetalHost {link.key} is another one than the Machine had, which does not exist any more"
    return f"BareMetalHost {link.key} {why_taken(linked) or 'belongs to nobody'}"
