"""A HostClaim in words. Pure."""

from __future__ import annotations

from typing import Final

from ingot.api.baremetalhost import BareMetalHost, State
from ingot.api.hostclaim import ConditionType, HostClaim
from ingot.api.installed import RUNS_A_SYSTEM
from ingot.api.meta import Key
from ingot.machines.claims.linking import consumer_of, named_host
from ingot.machines.claims.telling import Reason
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
from ingot.machines.vacancies import belongs_to


def explain_claim(claim: HostClaim, *, host: BareMetalHost | None, passed_over: str) -> ClaimExplanation:
    """`host`: the one that the claim names, if it is there and may be seen."""
    key = named_host(claim)
    return explanation(
        f"HostClaim {claim.key}",
        _claim(claim, host, key, passed_over),
        key,
        "the claim itself"
        if claim.spec.image is not None or claim.spec.custom_deploy is not None
        else "nobody: the claim names none, and nothing is installed",
    )


_IN_ORDER: Final = (ConditionType.ASSOCIATED, ConditionType.SYNCHRONIZED, ConditionType.PROVISIONED)


def _claim(claim: HostClaim, host: BareMetalHost | None, named: Key | None, passed_over: str) -> Outlook:
    ours = host is not None and belongs_to(host, consumer_of(claim))
    if claim.metadata.deletion_timestamp is not None:
        return leaving(host if ours else None, [])
    told = _first_that_fails(claim)
    if named is None:
        wrong = _in_the_way(claim)
        return to_be_corrected("has no host", wrong) if wrong else waiting(told, passed_over)
    if host is None:
        return Outlook(
            f"has {named}",
            told or "what is wanted of it is done",
            "it stays" if not told else "it goes on",
            "until the claim is changed or deleted" if not told else "when that is over",
        )
    if not ours:
        return about_to_take(host)
    if host.state in RUNS_A_SYSTEM and not told:
        return Outlook(
            f"has {named}",
            f"the host is {host.state}",
            "it stays",
            "until the image of the claim is changed or removed, or the claim is deleted",
        )
    if claim.spec.image is None and claim.spec.custom_deploy is None and host.state is State.AVAILABLE:
        return Outlook(
            f"has {named}",
            "the claim names nothing to install",
            "the host is provisioned",
            "when spec.image or spec.customDeploy of the claim is set",
            "set spec.image of the claim to use the host",
        )
    return with_a_host(named, host)


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
