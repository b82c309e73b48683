"""A Machine or a HostClaim in words: which host it has or why it has none, what comes next, and what a person should do. Pure.

Over the objects alone, so that `ingot explain` and whoever else shows them to people say the same, on any API. Why a claim waits
is the sentence of its conditions; of a Machine, what is wrong with it, else the count of the hosts that were passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ingot.api.baremetalhost import BareMetalHost, State
from ingot.api.baremetalhost import ConditionType as HostCondition
from ingot.api.hostclaim import ConditionType, HostClaim
from ingot.api.installed import RUNS_A_SYSTEM
from ingot.api.machine import Annotation, ErrorReason, LifecycleHook, Machine
from ingot.api.meta import Key
from ingot.machines.claims.linking import consumer_of as consumer_of_claim
from ingot.machines.claims.linking import named_host
from ingot.machines.claims.telling import Reason
from ingot.machines.machine.linking import consumer_of, link_of
from ingot.machines.targets import is_emptied
from ingot.machines.vacancies import belongs_to, why_taken

NOTHING_TO_DO: Final = "nothing; it goes on by itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimExplanation:
    claimant: str
    """Kind, namespace and name."""
    state: str
    """Where it is, as the end of a sentence."""
    host: str
    """The host that it has or means to take; "" for none."""
    why: str
    source: str
    """Who says what is to be installed."""
    next: str
    when: str
    do: str


@dataclass(frozen=True, slots=True)
class _Outlook:
    state: str
    why: str
    next: str
    when: str
    do: str = NOTHING_TO_DO


def explain_machine(
    machine: Machine, *, host: BareMetalHost | None, passed_over: str, unseen: bool = False
) -> ClaimExplanation:
    """`host`: the one that the Machine names, if it is there, and None where it may not be seen (`unseen`). `passed_over`: why
    there is no host to be had, if it has none."""
    link = link_of(machine)
    named = link.key if link is not None else None
    found = host if host is not None and link is not None and link.means(host) else None
    if unseen and named is not None:
        told = _of_an_unseen_host(machine, named)
    else:
        told = _machine(machine, found, named, passed_over)
    return _explanation(f"Machine {machine.key}", told, named, _source(machine))


def explain_claim(claim: HostClaim, *, host: BareMetalHost | None, passed_over: str) -> ClaimExplanation:
    """`host`: the one that the claim names, if it is there and may be seen."""
    key = named_host(claim)
    return _explanation(
        f"HostClaim {claim.key}",
        _claim(claim, host, key, passed_over),
        key,
        "the claim itself"
        if claim.spec.image is not None or claim.spec.custom_deploy is not None
        else "nobody: the claim names none, and nothing is installed",
    )


def _explanation(claimant: str, told: _Outlook, key: Key | None, source: str) -> ClaimExplanation:
    return ClaimExplanation(
        claimant=claimant,
        state=told.state,
        host=str(key) if key is not None else "",
        why=told.why,
        source=source,
        next=told.next,
        when=told.when,
        do=told.do,
    )


# Machines


def _source(machine: Machine) -> str:
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


def _machine(machine: Machine, host: BareMetalHost | None, named: Key | None, passed_over: str) -> _Outlook:
    ours = host is not None and belongs_to(host, consumer_of(machine))
    if machine.metadata.deletion_timestamp is not None:
        return _leaving(host if ours else None, [hook.owner for hook in _hooks(machine)])
    if machine.status.error_reason == ErrorReason.INVALID_CONFIGURATION:
        return _to_be_corrected(
            f"has {named}" if ours else "has no host",
            machine.status.error_message or "its provider spec cannot be used",
        )
    if named is None:
        return _waiting(machine.status.error_message, passed_over)
    if host is None:
        return _of_a_lost_host(machine, named)
    if not ours:
        return _about_to_take(host)
    if machine.status.node_ref is not None and host.state in RUNS_A_SYSTEM:
        node = machine.status.node_ref.name
        return _Outlook(f"has {named}", f"the host runs the node {node}", "it stays", "until it is deleted")
    if host.state in RUNS_A_SYSTEM:
        return _Outlook(
            f"has {named}",
            f"the host is {host.state}, and no node has come of it yet",
            "its node appears",
            "when the system that was installed joins the cluster",
            "if it takes long, look at the console of the machine",
        )
    return _with_a_host(named, host)


def _hooks(machine: Machine) -> list[LifecycleHook]:
    hooks = machine.spec.lifecycle_hooks
    return [*hooks.pre_drain, *hooks.pre_terminate]


def _of_an_unseen_host(machine: Machine, named: Key) -> _Outlook:
    state = machine.metadata.annotations.get(Annotation.INSTANCE_STATE, "")
    said = f"; the Machine says that it is {state}" if state else ""
    return _Outlook(
        f"has {named}" if machine.spec.provider_id else f"names {named}",
        f"that host cannot be looked at with your credentials{said}",
        "it goes on",
        "as the host does",
        "ask somebody who may look at hosts, if it takes long",
    )


def _of_a_lost_host(machine: Machine, named: Key) -> _Outlook:
    if machine.spec.provider_id:
        return _Outlook(
            f"had {named}, which is gone",
            "the host that the Machine was made of does not exist any more",
            "it stays as it is",
            "until it is deleted",
            "delete the Machine; a MachineSet makes another",
        )
    return _Outlook(
        f"meant to take {named}, which is gone", "that host was deleted", "it takes another", "at once"
    )


# Claims

_IN_ORDER: Final = (ConditionType.ASSOCIATED, ConditionType.SYNCHRONIZED, ConditionType.PROVISIONED)


def _claim(claim: HostClaim, host: BareMetalHost | None, named: Key | None, passed_over: str) -> _Outlook:
    ours = host is not None and belongs_to(host, consumer_of_claim(claim))
    if claim.metadata.deletion_timestamp is not None:
        return _leaving(host if ours else None, [])
    told = _first_that_fails(claim)
    if named is None:
        wrong = _in_the_way(claim)
        return _to_be_corrected("has no host", wrong) if wrong else _waiting(told, passed_over)
    if host is None:
        return _Outlook(
            f"has {named}",
            told or "what is wanted of it is done",
            "it stays" if not told else "it goes on",
            "until the claim is changed or deleted" if not told else "when that is over",
        )
    if not ours:
        return _about_to_take(host)
    if host.state in RUNS_A_SYSTEM and not told:
        return _Outlook(
            f"has {named}",
            f"the host is {host.state}",
            "it stays",
            "until the image of the claim is changed or removed, or the claim is deleted",
        )
    if claim.spec.image is None and claim.spec.custom_deploy is None and host.state is State.AVAILABLE:
        return _Outlook(
            f"has {named}",
            "the claim names nothing to install",
            "the host is provisioned",
            "when spec.image or spec.customDeploy of the claim is set",
            "set spec.image of the claim to use the host",
        )
    return _with_a_host(named, host)


def _first_that_fails(claim: HostClaim) -> str:
    """The sentence of the first thing that is not as it should be."""
    found = {one.type: one for one in claim.status.conditions}
    for kind in _IN_ORDER:
        condition = found.get(kind)
        if condition is not None and condition.status != "True":
            return condition.message or condition.reason
    return ""


def _in_the_way(claim: HostClaim) -> str:
    """Why a claim that nobody gave a host could not be carried out with one either."""
    found = {one.type: one for one in claim.status.conditions}
    synchronized = found.get(ConditionType.SYNCHRONIZED)
    if synchronized is None or synchronized.status == "True" or synchronized.reason == Reason.NOT_SYNCED:
        return ""
    return synchronized.message


# Both


def _to_be_corrected(state: str, why: str) -> _Outlook:
    return _Outlook(
        state, why, "it is looked at again", "when what it asks for is another", "correct what is named there"
    )


def _waiting(told: str, passed_over: str) -> _Outlook:
    """What was counted just now is truer than what was told when somebody counted last."""
    return _Outlook(
        "has no host",
        passed_over or told.rstrip(".") or "nobody has looked at it yet",
        "it takes a host",
        "as soon as one that fits is free",
        "free a host that fits, add one, or ask for less in the host selector",
    )


def _about_to_take(host: BareMetalHost) -> _Outlook:
    taken = why_taken(host)
    if taken is None:
        return _Outlook(f"is about to take {host.key}", "it was chosen", "the host is claimed", "at once")
    return _Outlook(
        f"meant to take {host.key}",
        f"that host {taken}",
        "it takes another",
        "as soon as one that fits is free",
    )


def _with_a_host(named: Key, host: BareMetalHost) -> _Outlook:
    why = next(
        (found.message for found in host.status.conditions if found.type == HostCondition.PROGRESSING), ""
    )
    error = host.status.error_message
    return _Outlook(
        f"has {named}",
        f"the host is {host.state or 'new'}{f': {error or why}' if error or why else ''}",
        "the host is provisioned",
        "when what stands in its way is mended" if error else "when it has gone through what is left",
        f"ingot explain -n {named.namespace} bmh/{named.name}" if error else NOTHING_TO_DO,
    )


def _leaving(host: BareMetalHost | None, awaited: list[str]) -> _Outlook:
    if awaited:
        return _Outlook(
            "is being deleted",
            f"{' and '.join(awaited)} asked to be waited for (spec.lifecycleHooks)",
            "what is installed is removed",
            "when they have taken their hooks away",
        )
    if host is None:
        return _Outlook("is being deleted", "it has no host any more", "it is gone", "at once")
    if is_emptied(host):
        return _Outlook("is being deleted", f"{host.key} is empty", "the host is given back", "at once")
    return _Outlook(
        "is being deleted",
        f"what it installed on {host.key} is removed first; the host is {host.state}",
        "the host is given back",
        "when it is empty",
    )
