"""The laws of claiming, over every version that a host ever had, and over what is there when all is at rest."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import Final

from ingot.api.baremetalhost import BareMetalHost, State
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim
from ingot.api.machine import MACHINES, Machine
from ingot.api.meta import Key, Object, ObjectReference, Resource
from ingot.kube import Change
from ingot.machines.machine.linking import link_of, provider_id
from ingot.machines.vacancies import claimant

Claimants = Resource[Machine] | Resource[HostClaim]
OURS: Final = tuple(f"{kind.kind}.{kind.group} " for kind in (MACHINES, HOST_CLAIMS))

BUSY: Final = (State.PREPARING, State.PROVISIONING, State.PROVISIONED, State.DEPROVISIONING)
"""Where a host still has something of whoever had it."""

UNTOUCHABLE: Final = {
    "baremetalhost.metal3.io/paused",
    "baremetalhost.metal3.io/detached",
    "capi.metal3.io/unhealthy",
}
"""Annotations of hosts that are nobody's to take."""
BROKEN: Final = {("Healthy", "CriticalError"), ("Manageable", "PowerFailure")}
"""What the conditions of hosts say on which nothing can be installed."""


def name_of(kind: Claimants, key: Key) -> str:
    """Who that is, as `claimant` names those who stand on hosts."""
    return claimant(
        ObjectReference(api_version=kind.api_version, kind=kind.kind, name=key.name, namespace=key.namespace)
    )


def owner_of(host: BareMetalHost) -> str:
    return claimant(host.spec.consumer_ref) if host.spec.consumer_ref is not None else ""


def is_free(host: BareMetalHost) -> bool:
    """Whether somebody could take it. Said anew here: a law does not ask the code that it is about."""
    return (
        not owner_of(host)
        and not target_of(host)
        and host.metadata.deletion_timestamp is None
        and not host.status.error_type
        and not UNTOUCHABLE & host.metadata.annotations.keys()
        and not host.spec.externally_provisioned
        and not any((one.type, one.reason) in BROKEN for one in host.status.conditions)
        and host.state is State.AVAILABLE
    )


def target_of(host: BareMetalHost) -> str:
    """What it is told to run, in a word; "" for nothing."""
    image, step = host.spec.image, host.spec.custom_deploy
    return " ".join(word for word in (image.url if image else "", step.method if step else "") if word)


@dataclass
class Chronicle:
    """Every version of every host, in order, and what people did about it."""

    by_people: set[str] = field(default_factory=set)
    """The versions of hosts that people wrote, who may do what they like."""
    wanted: dict[str, set[str]] = field(default_factory=dict)
    """What each claimant has ever asked for."""
    sent_away: set[str] = field(default_factory=set)
    """Claimants that were ever told to go."""
    _changes: list[Change[BareMetalHost]] = field(default_factory=list)
    _owners: dict[Key, str] = field(default_factory=dict)

    def note(self, change: Change[BareMetalHost]) -> None:
        self._changes.append(change)

    def broken(self) -> list[str]:
        """Which laws were broken since this was last asked."""
        found = [wrong for change in self._changes for wrong in self._look_at(change)]
        self._changes.clear()
        return found

    def _look_at(self, change: Change[BareMetalHost]) -> Iterable[str]:
        old, new = change.old, change.new
        if new is None:
            self._owners.pop(change.key, None)
            return
        before = old if old is not None and old.metadata.uid == new.metadata.uid else None
        story = f"{change.key} at version {new.metadata.resource_version}"
        if new.metadata.resource_version not in self.by_people:
            for wrong in self._wrong_between(before, new):
                yield f"{story}: {wrong}"
        self._owners[change.key] = owner_of(new)
        mine = [str(key) for key, owner in self._owners.items() if owner and owner == owner_of(new)]
        if owner_of(new).startswith(OURS) and len(mine) > 1:
            yield f"{story}: {owner_of(new)} has two hosts: {', '.join(mine)}"

    def _wrong_between(self, old: BareMetalHost | None, new: BareMetalHost) -> Iterable[str]:
        was, is_now = (owner_of(old) if old is not None else ""), owner_of(new)
        had, has = (target_of(old) if old is not None else ""), target_of(new)
        if was and is_now and was != is_now:
            yield f"it belonged to {was}, and was taken over by {is_now}"
        elif is_now and not was:
            if old is None or not is_free(old):
                yield f"{is_now} took it, and it could not be had: {old}"
            if has not in self.wanted.get(is_now, ()):
                yield f"{is_now} took it, and told it to run {has!r}, not {self.wanted.get(is_now)}"
        elif was and not is_now:
            if had or has:
                yield f"{was} left it, and it was still told to run {had or has!r}"
            if old is not None and old.state in BUSY:
                yield f"{was} left it, and it was {old.state}"
            if was not in self.sent_away:
                yield f"{was} left it, and nobody told it to"
        elif had != has:
            if not is_now:
                yield f"it was told to run {has!r}, and belongs to nobody"
            elif has and has not in self.wanted.get(is_now, ()):
                yield f"it was told to run {has!r}, which {is_now} never asked for"
            elif has and had and is_now.startswith(OURS[0]):
                yield f"it was told to run {has!r} instead of {had!r}, and a Machine keeps what it has"


# When all is at rest


@dataclass(frozen=True)
class AtRest:
    """What is there when nobody has anything left to do and nothing is in anybody's way."""

    hosts: list[BareMetalHost]
    machines: list[Machine]
    claims: list[HostClaim]

    def lost(self) -> list[str]:
        """Whoever could have a host and has none; hosts whose claimant is gone; links that only one side knows."""
        found = [f"Machine {one.key}: {wrong}" for one in self.machines for wrong in self._with_machine(one)]
        found += [f"HostClaim {one.key}: {wrong}" for one in self.claims for wrong in self._with_claim(one)]
        there = {name_of(MACHINES, one.key) for one in self.machines}
        there |= {name_of(HOST_CLAIMS, one.key) for one in self.claims}
        for host in self.hosts:
            if owner_of(host).startswith(OURS) and owner_of(host) not in there:
                found.append(f"host {host.key} belongs to {owner_of(host)}, which is gone")
        return found

    def _with_machine(self, machine: Machine) -> Iterable[str]:
        value = machine.spec.provider_spec.value or {}
        labels = value.get("hostSelector", {}).get("matchLabels", {})
        if machine.spec.provider_id and not self._hosts_of(machine, MACHINES):
            # It had one, and never takes another.
            if not machine.status.error_message and machine.metadata.deletion_timestamp is None:
                yield f"it lost {machine.spec.provider_id}, and does not say so"
            return
        host = yield from self._host_of(machine, MACHINES, labels)
        if host is None:
            return
        link = link_of(machine)
        if link is None or not link.means(host):
            yield f"it has {host.key}, and names {link}"
        if machine.spec.provider_id != provider_id(host):
            yield f"it has {host.key}, and its provider ID is {machine.spec.provider_id!r}"
        if not target_of(host):
            yield f"its host {host.key} is told to run nothing"

    def _with_claim(self, claim: HostClaim) -> Iterable[str]:
        host = yield from self._host_of(claim, HOST_CLAIMS, claim.spec.host_selector.match_labels)
        if host is None:
            return
        place = claim.status.bare_metal_host
        if place is None or Key(place.namespace, place.name) != host.key:
            yield f"it has {host.key}, and names {place}"
        wanted = claim.spec.image.url if claim.spec.image is not None else ""
        if target_of(host) != wanted:
            yield f"it wants {wanted!r}, and its host {host.key} is told to run {target_of(host)!r}"

    def _hosts_of(self, one: Object, kind: Claimants) -> list[BareMetalHost]:
        return [host for host in self.hosts if owner_of(host) == name_of(kind, one.key)]

    def _host_of(
        self, one: Object, kind: Claimants, labels: dict[str, str]
    ) -> Generator[str, None, BareMetalHost | None]:
        """Its host; says what is wrong where it has none and could have one."""
        if one.metadata.deletion_timestamp is not None:
            yield f"it was deleted, and is still there, with {one.metadata.finalizers}"
        if mine := self._hosts_of(one, kind):
            return mine[0]
        for host in self.hosts:
            if is_free(host) and labels.items() <= host.metadata.labels.items():
                yield f"it has no host, and could have {host.key}"
                break
        return None
