"""What is said of whoever wants a host, be it a Machine or a claim. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ingot.api.baremetalhost import BareMetalHost, ConditionType
from ingot.api.meta import Key
from ingot.machines.targets import is_emptied
from ingot.machines.vacancies import why_taken

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
class Outlook:
    state: str
    why: str
    next: str
    when: str
    do: str = NOTHING_TO_DO


def explanation(claimant: str, told: Outlook, key: Key | None, source: str) -> ClaimExplanation:
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


def to_be_corrected(state: str, why: str) -> Outlook:
    return Outlook(
        state, why, "it is looked at again", "when what it asks for is another", "correct what is named there"
    )


def waiting(told: str, passed_over: str) -> Outlook:
    """What was counted just now is truer than what was told when somebody counted last."""
    return Outlook(
        "has no host",
        passed_over or told.rstrip(".") or "nobody has looked at it yet",
        "it takes a host",
        "as soon as one that fits is free",
        "free a host that fits, add one, or ask for less in the host selector",
    )


def about_to_take(host: BareMetalHost) -> Outlook:
    taken = why_taken(host)
    if taken is None:
        return Outlook(f"is about to take {host.key}", "it was chosen", "the host is claimed", "at once")
    return Outlook(
        f"meant to take {host.key}",
        f"that host {taken}",
        "it takes another",
        "as soon as one that fits is free",
    )


def with_a_host(named: Key, host: BareMetalHost) -> Outlook:
    why = next(
        (found.message for found in host.status.conditions if found.type == ConditionType.PROGRESSING), ""
    )
    error = host.status.error_message
    return Outlook(
        f"has {named}",
        f"the host is {host.state or 'new'}{f': {error or why}' if error or why else ''}",
        "the host is provisioned",
        "when what stands in its way is mended" if error else "when it has gone through what is left",
        f"ingot explain -n {named.namespace} bmh/{named.name}" if error else NOTHING_TO_DO,
    )


def leaving(host: BareMetalHost | None, awaited: list[str]) -> Outlook:
    if awaited:
        return Outlook(
            "is being deleted",
            f"{' and '.join(awaited)} asked to be waited for (spec.lifecycleHooks)",
            "what is installed is removed",
            "when they have taken their hooks away",
        )
    if host is None:
        return Outlook("is being deleted", "it has no host any more", "it is gone", "at once")
    if is_emptied(host):
        return Outlook("is being deleted", f"{host.key} is empty", "the host is given back", "at once")
    return Outlook(
        "is being deleted",
        f"what it installed on {host.key} is removed first; the host is {host.state}",
        "the host is given back",
        "when it is empty",
    )
