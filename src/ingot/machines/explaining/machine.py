"""A Machine in words. Pure."""

from __future__ import annotations

from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.installed import RUNS_A_SYSTEM
from ingot.api.machine import Annotation, ErrorReason, LifecycleHook, Machine
from ingot.api.meta import Key
from ingot.machines.explaining.outlook import (
    ClaimExplanation,
    Outlook,
    about_to_take,
    explanation,
    leaving,
    to_be_corrected,
    waiting,
    with_a_host,
)
from ingot.machines.machine.linking import consumer_of, link_of
from ingot.machines.machine.standing import replacement
from ingot.machines.vacancies import belongs_to, why_taken


def explain_machine(
    machine: Machine, *, host: BareMetalHost | None, passed_over: str, unseen: bool = False
) -> ClaimExplanation:
    """`host`: the one that the Machine names, if it is there, and None where it may not be seen (`unseen`). `passed_over`: why
    there is no host to be had, if it has none."""
    link = link_of(machine)
    named = link.key if link is not None else None
    found = host if host is not None and link is not None and link.means(host) else None
    told = _machine(machine, found, named, passed_over)
    if unseen and named is not None:
        told = _of_an_unseen_host(machine, named)
    return explanation(f"Machine {machine.key}", told, named, _source(machine, found))


def _source(machine: Machine, host: BareMetalHost | None) -> str:
    """Who says what is installed. Of a host that is not seen, it is known what was told last."""
    decided = _decided(machine)
    noted = machine.metadata.annotations.get(Annotation.TARGET_REPLACED, "")
    if replacement(machine, host) if host is not None else noted:
        return f"whoever changed it on the host; what was decided for the Machine, from {decided}, is another"
    return decided


def _decided(machine: Machine) -> str:
    noted = machine.metadata.annotations.get(Annotation.IMAGE_SOURCE, "")
    if noted in _SOURCES:
        return _SOURCES[noted]
    value = machine.spec.provider_spec.value or {}
    says = any(value.get(field) for field in ("image", "customDeploy"))
    return _SOURCES["provider spec"] if says else f"{_SOURCES['cluster']}, else {_SOURCES['release']}"


_SOURCES: Final = {
    "provider spec": "its provider spec",
    "cluster": "the default of the cluster",
    "release": "the default of the release",
}


def _machine(machine: Machine, host: BareMetalHost | None, named: Key | None, passed_over: str) -> Outlook:
    ours = host is not None and belongs_to(host, consumer_of(machine))
    if machine.metadata.deletion_timestamp is not None:
        return leaving(host if ours else None, [hook.owner for hook in _hooks(machine)])
    if machine.status.error_reason == ErrorReason.INVALID_CONFIGURATION:
        return to_be_corrected(
            f"has {named}" if ours else "has no host",
            machine.status.error_message or "its provider spec cannot be used",
        )
    if named is None:
        return waiting(machine.status.error_message, passed_over)
    if host is None:
        return _of_a_lost_host(machine, named)
    if not ours:
        return _of_a_lost_host(machine, named, host) if machine.spec.provider_id else about_to_take(host)
    if machine.status.node_ref is not None and host.state in RUNS_A_SYSTEM:
        node = machine.status.node_ref.name
        return Outlook(f"has {named}", f"the host runs the node {node}", "it stays", "until it is deleted")
    if host.state in RUNS_A_SYSTEM:
        return Outlook(
            f"has {named}",
            f"the host is {host.state}, and no node has come of it yet",
            "its node appears",
            "when the system that was installed joins the cluster",
            "if it takes long, look at the console of the machine",
        )
    return with_a_host(named, host)


def _hooks(machine: Machine) -> list[LifecycleHook]:
    hooks = machine.spec.lifecycle_hooks
    return [*hooks.pre_drain, *hooks.pre_terminate]


def _of_an_unseen_host(machine: Machine, named: Key) -> Outlook:
    state = machine.metadata.annotations.get(Annotation.INSTANCE_STATE, "")
    said = f"; the Machine says that it is {state}" if state else ""
    return Outlook(
        f"has {named}" if machine.spec.provider_id else f"names {named}",
        f"that host cannot be looked at with your credentials{said}",
        "it goes on",
        "as the host does",
        "ask somebody who may look at hosts, if it takes long",
    )


def _of_a_lost_host(machine: Machine, named: Key, host: BareMetalHost | None = None) -> Outlook:
    """A Machine that had its host takes no other; one that only meant to take it does."""
    if machine.spec.provider_id:
        became = f"that host {why_taken(host) or 'is free'}" if host is not None else "that host is gone"
        return Outlook(
            f"had {named}",
            f"{became}, and the Machine was made of it",
            "it stays as it is",
            "until it is deleted",
            "delete the Machine; a MachineSet makes another",
        )
    return Outlook(
        f"meant to take {named}, which is gone", "that host was deleted", "it takes another", "at once"
    )
