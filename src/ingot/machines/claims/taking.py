"""How a claim comes to its host, so that it never takes two and never one that is somebody's.

First the claim says which host it is going to take, then the host is told everything by one patch: who has it, what to install,
whether to be on. Both are guarded by the version that was looked at, in an order that holds however many work on the claim, with
caches however old: the host is read; then it is written on the claim that it means this host, once more where it does already;
then the host is patched. Of two who write on one version of the claim, one is refused: nobody takes a host for a claim that
somebody else has turn to another one meanwhile. Who turns away, because the host is gone or cannot be had, has read it after the
claim: a patch that is on its way is one of an older host, and is refused, too.

Whether the namespace of the claim may have the host is asked before it is taken, and never again: a claim that has its host
keeps it when the policy goes. A host that somebody gave the claim, by writing its name on the host, has to be one that it could
have taken: what the tenant hands over is copied beside the host, and must not reach whoever writes that name on his own hosts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ingot.api.baremetalhost import INSTALL_COREOS, BareMetalHost
from ingot.api.hostclaim import ConditionType, HostClaim
from ingot.api.installed import deploy_method
from ingot.api.meta import Key
from ingot.kube import Again, Conflict, NotFound
from ingot.machines.choosing import Wish
from ingot.machines.claims.data import Role, as_copied, installs, is_copy
from ingot.machines.claims.linking import (
    consumer,
    consumer_of,
    mark,
    named_host,
    passing_by,
    taken_for,
)
from ingot.machines.claims.secrets import SecretCopies
from ingot.machines.claims.telling import Reason, Standing, no, standing_without
from ingot.machines.claims.writing import ClaimWriter
from ingot.machines.demands import demands_of
from ingot.machines.pool import Pool
from ingot.machines.targets import Target, difference
from ingot.machines.vacancies import belongs_to, claimant, why_taken
from ingot.machines.waiting import WaitingList

TRIES: Final = 3
"""Hosts that are asked for in one pass, one after the other."""
SOON: Final = 1.0
_NO_HOST: Final = "No host can be had:"
_CROWDED: Final = "Others were faster, every time; the claim goes on asking."
COUNT_AGAIN: Final = 300.0
"""Seconds after which the hosts that cannot be had are counted again for a claim that waits."""


@dataclass(frozen=True, slots=True)
class Found:
    """The claim has a host."""

    claim: HostClaim
    host: BareMetalHost


@dataclass(frozen=True, slots=True)
class Means:
    """It said that it takes this host, which can be had."""

    claim: HostClaim
    host: BareMetalHost


@dataclass(frozen=True, slots=True)
class Free:
    """It may choose."""

    claim: HostClaim


@dataclass(frozen=True, slots=True)
class NoHost:
    """It has none, and why; `again` is when to look again anyhow."""

    claim: HostClaim
    standing: Standing
    again: Again | None = None


def target_of(claim: HostClaim, host: BareMetalHost, secrets: Mapping[Role, Key]) -> Target:
    """What the host of the claim is to be. Network and meta data that it has of its own stay where the claim gives none."""
    spec = host.spec
    network = spec.network_data if not is_copy(spec.network_data) else None
    meta = spec.meta_data if not is_copy(spec.meta_data) else None
    # One that is never to be switched off has to stay on.
    online = claim.spec.powered_on or spec.disable_power_off
    if not installs(claim):
        return Target(consumer=consumer_of(claim), online=online, network_data=network, meta_data=meta)
    data = as_copied(claim, secrets)
    return Target(
        consumer=consumer_of(claim),
        online=online,
        image=data.image,
        custom_deploy=claim.spec.custom_deploy,
        user_data=data.user_data,
        network_data=data.network_data or network,
        meta_data=data.meta_data or meta,
    )


def what_changes(
    claim: HostClaim,
    host: BareMetalHost,
    secrets: Mapping[Role, Key],
    annotations: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """The one patch that makes the host what the claim asks for, and its own; empty where it is."""
    written = {**mark(claim, host), **(annotations or {})}
    return {
        **difference(host, target_of(claim, host, secrets)),
        **({"metadata": {"annotations": written}} if written else {}),
    }


class Taker:
    def __init__(
        self,
        pool: Pool,
        waiting: WaitingList,
        copies: SecretCopies,
        writer: ClaimWriter,
        *,
        may_have: Callable[[str], frozenset[str]],
        wake: Callable[[Key], None],
    ) -> None:
        """`may_have`: the namespaces whose hosts the claims of a namespace may have."""
        self._pool = pool
        self._waiting = waiting
        self._copies = copies
        self._writer = writer
        self._may_have = may_have
        self._wake = wake
        self._counted: dict[Key, tuple[float, object]] = {}

    async def find(self, claim: HostClaim) -> Found | None:
        """The host that the claim has, as far as is known here."""
        me, named = consumer_of(claim), named_host(claim)
        own = {host.key: host for host in self._given(claim)}
        if named is not None and named in own:
            return Found(claim, own[named])
        if not own:
            return None
        # The claim forgot it, or was restored without its status; or somebody gave it this one.
        stands = await self._standing(claim)
        if isinstance(stands, Found):
            return stands
        host = await self._pool.look_again(min(own))
        if host is None or not belongs_to(host, me):
            return None
        if isinstance(stands, Means):
            await self._pool.patch(stands.host, passing_by(claim))
        return Found(await self._writer.intend(stands.claim, host.key), host)

    def own(self, claim: HostClaim) -> list[BareMetalHost]:
        """What is let go with the claim: what it has, and what was ever taken for one of its name."""
        given = {host.key for host in self._given(claim)}
        named = self._pool.of(consumer_of(claim))
        return [host for host in named if host.key in given or taken_for(host)]

    def _given(self, claim: HostClaim) -> list[BareMetalHost]:
        """The hosts that name the claim: the one that it names itself, and those that it could have taken."""
        where, named = _where(claim, self._may_have(claim.metadata.namespace)), named_host(claim)
        return [
            host
            for host in self._pool.of(consumer_of(claim))
            if host.key == named or host.metadata.namespace in where
        ]

    async def take(self, claim: HostClaim, secrets: Mapping[Role, Key]) -> Found | NoHost:
        """Take the host that the claim means to have, else one that fits. Raises `Conflict` where the claim has changed."""
        allowed = self._may_have(claim.metadata.namespace)
        for _ in range(TRIES):
            match await self._standing(claim):
                case Found() as found:
                    return found
                case Means(claim, host) if host.metadata.namespace not in allowed:
                    await self._pool.patch(host, passing_by(claim))
                    claim, taken = await self._writer.intend(claim, None), None
                case Means(claim, host):
                    with self._pool.reserved(host.key):
                        claim = await self._writer.intend(claim, host.key)
                        taken = await self._ask(claim, host, secrets)
                case Free(claim):
                    chosen = self._pool.choose(_wish(claim), _where(claim, allowed))
                    if chosen is None:
                        return self._wait(claim, allowed)
                    with self._pool.reserved(chosen.key):
                        claim = await self._writer.intend(claim, chosen.key)
                        taken = await self._ask(claim, chosen, secrets)
            if taken is not None:
                return taken
        why = standing_without(no(Reason.NO_HOST, _CROWDED), meant=claim.status.bare_metal_host)
        return NoHost(claim, why, Again(SOON, _CROWDED))

    async def _ask(self, claim: HostClaim, host: BareMetalHost, secrets: Mapping[Role, Key]) -> Found | None:
        """Take the host; None where it has changed meanwhile."""
        with suppress(Conflict, NotFound):
            await self._copies.make(claim, host, secrets)
            return Found(claim, await self._pool.patch(host, what_changes(claim, host, secrets)))
        return None

    def forget(self, key: Key) -> None:
        """It has a host, or wants none."""
        self._waiting.leave(claimant(consumer(key)))
        self._counted.pop(key, None)

    async def _standing(self, claim: HostClaim) -> Found | Means | Free:
        """How the claim stands to the host that it names, as that is now. It names none that it cannot have, after this."""
        named = named_host(claim)
        if named is None:
            return Free(claim)
        host = await self._pool.look_again(named)
        if host is not None and belongs_to(host, consumer_of(claim)):
            return Found(claim, host)
        if host is not None and why_taken(host) is None:
            return Means(claim, host)
        return Free(await self._writer.intend(claim, None))

    def _wait(self, claim: HostClaim, allowed: frozenset[str]) -> NoHost:
        where, wish = _where(claim, allowed), _wish(claim)
        again = self._waiting.enter(
            claimant(consumer_of(claim)),
            fits=lambda host: host.metadata.namespace in where and wish.suits(host),
            wake=lambda: self._wake(claim.key),
        )
        why = self._why_none(claim, wish, where)
        return NoHost(claim, standing_without(no(Reason.NO_HOST, why)), again)

    def _why_none(self, claim: HostClaim, wish: Wish, where: frozenset[str]) -> str:
        if not where:
            only = claim.spec.host_selector.in_namespace
            return (
                f"No HostDeployPolicy lets the namespace {claim.metadata.namespace} claim hosts"
                f"{f' of the namespace {only}' if only else ''}. Ask whoever runs the hosts for one."
            )
        # Many wait, and hosts change all the time: what was counted a while ago stands, whoever counted it.
        now, question, told = (
            asyncio.get_running_loop().time(),
            (where, claim.metadata.generation),
            _told(claim),
        )
        at, counted = self._counted.get(claim.key, (0.0, None))
        if told.startswith(_NO_HOST) and counted == question and now - at < COUNT_AGAIN:
            return told
        self._counted[claim.key] = (now, question)
        return f"{_NO_HOST} {self._pool.why_none(wish, where)}."


def _told(claim: HostClaim) -> str:
    """What the claim says now about its host."""
    found = (one.message for one in claim.status.conditions if one.type == ConditionType.ASSOCIATED)
    return next(found, "")


def _where(claim: HostClaim, allowed: frozenset[str]) -> frozenset[str]:
    only = claim.spec.host_selector.in_namespace
    return allowed & {only} if only else allowed


def _wish(claim: HostClaim) -> Wish:
    return Wish(
        claimant=claim.metadata.uid,
        demands=demands_of(claim.spec.host_selector, path="spec.hostSelector"),
        failure_domain=claim.spec.failure_domain,
        coreos=deploy_method(claim.spec.image, claim.spec.custom_deploy) == INSTALL_COREOS,
    )
