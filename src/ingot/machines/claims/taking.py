"""How a claim comes to its host, so that it never takes two and never one that is somebody's.

First the claim says which host it is going to take, then the host is told everything by one patch: who has it, what to install,
whether to be on. Both are guarded by the version that was looked at. What the claim has said is binding. It takes something else
only once the API, asked anew, says that this host is gone or cannot be had: whoever else works on the claim sees the same, and a
patch of theirs that is still on its way is refused.

Whether the namespace of the claim may have the host is asked before it is taken, and never again: a claim that has its host
keeps it when the policy goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hostclaim import HostClaim
from ingot.api.meta import Key
from ingot.kube import Again, Conflict
from ingot.machines.choosing import Wish
from ingot.machines.claims.data import Role, as_copied, installs
from ingot.machines.claims.linking import consumer_of, is_given_up, named_host, place_of
from ingot.machines.claims.secrets import SecretCopies
from ingot.machines.claims.telling import Reason, Standing, no, standing_without
from ingot.machines.claims.writing import ClaimWriter
from ingot.machines.demands import demands_of
from ingot.machines.pool import Pool
from ingot.machines.targets import Target
from ingot.machines.vacancies import belongs_to, claimant, why_taken
from ingot.machines.waiting import WaitingList

TRIES: Final = 3
"""Hosts that are asked for in one pass, one after the other."""
COUNT_AGAIN: Final = 300.0
"""Seconds after which the hosts that cannot be had are counted again for a claim that waits."""


@dataclass(frozen=True, slots=True)
class Found:
    """The claim has a host."""

    claim: HostClaim
    host: BareMetalHost


@dataclass(frozen=True, slots=True)
class NotFound:
    """It has none, and why; `again` is when to look again anyhow."""

    claim: HostClaim
    standing: Standing
    again: Again | None = None


class Stale(Exception):
    """What is known of the claim is older than its end."""


def target_of(claim: HostClaim, host: BareMetalHost, secrets: Mapping[Role, Key]) -> Target:
    """What the host of the claim is to be."""
    # One that is never to be switched off has to stay on.
    online = claim.spec.powered_on or host.spec.disable_power_off
    if not installs(claim):
        return Target(consumer=consumer_of(claim), online=online)
    data = as_copied(claim, secrets)
    return Target(
        consumer=consumer_of(claim),
        online=online,
        image=data.image,
        custom_deploy=claim.spec.custom_deploy,
        user_data=data.user_data,
        network_data=data.network_data,
        meta_data=data.meta_data,
    )


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
        self._counted: dict[Key, tuple[float, object, str]] = {}

    async def find(self, claim: HostClaim) -> Found | None:
        """The host that the claim has, as far as is known here."""
        consumer, named = consumer_of(claim), named_host(claim)
        own = {host.key: host for host in self._pool.of(consumer)}
        if named in own:
            return Found(claim, own[named])
        if own:
            # The claim forgot it, or was restored without its status.
            host = own[min(own)]
            return Found(await self._writer.intend(claim, host.key), host)
        return None

    async def take(self, claim: HostClaim, secrets: Mapping[Role, Key]) -> Found | NotFound:
        """Take the host that the claim means to have, else one that fits."""
        allowed = self._may_have(claim.metadata.namespace)
        meant = await self._meant(claim)
        if isinstance(meant, Found):
            return meant
        if meant is not None and meant.metadata.namespace not in allowed:
            return self._not_allowed(claim, meant.key)
        refused: Conflict | None = None
        for _ in range(TRIES):
            host = meant or self._pool.choose(_wish(claim), _where(claim, allowed))
            if host is None:
                return self._wait(claim, allowed)
            with self._pool.reserved(host.key):
                if named_host(claim) != host.key:
                    claim = await self._writer.intend(claim, host.key)
                await self._copies.make(claim, host, secrets)
                try:
                    host = await self._pool.make(host, target_of(claim, host, secrets))
                except Conflict as error:
                    refused = error
                else:
                    self.forget(claim)
                    return Found(claim, host)
            meant = await self._meant(claim)
            if isinstance(meant, Found):
                return meant
        assert refused is not None
        raise refused

    def forget(self, claim: HostClaim) -> None:
        self._waiting.leave(claimant(consumer_of(claim)))
        self._counted.pop(claim.key, None)

    async def _meant(self, claim: HostClaim) -> BareMetalHost | Found | None:
        """The host that the claim said it would take, as it is now; None where it said none, or cannot have it any more."""
        named = named_host(claim)
        host = await self._pool.look_again(named) if named is not None else None
        if host is None:
            return None
        if belongs_to(host, consumer_of(claim)):
            self.forget(claim)
            return Found(claim, host)
        if is_given_up(host, claim):
            raise Stale
        return host if why_taken(host) is None else None

    def _wait(self, claim: HostClaim, allowed: frozenset[str]) -> NotFound:
        where, wish = _where(claim, allowed), _wish(claim)
        again = self._waiting.enter(
            claimant(consumer_of(claim)),
            fits=lambda host: host.metadata.namespace in where and wish.demands(host.metadata.labels),
            wake=lambda: self._wake(claim.key),
        )
        why = self._why_none(claim, wish, where)
        return NotFound(claim, standing_without(no(Reason.NO_HOST, why)), again)

    def _why_none(self, claim: HostClaim, wish: Wish, where: frozenset[str]) -> str:
        if not where:
            only = claim.spec.host_selector.in_namespace
            return (
                f"No HostDeployPolicy lets the namespace {claim.metadata.namespace} claim hosts"
                f"{f' of the namespace {only}' if only else ''}. Ask whoever runs the hosts for one."
            )
        now, question = asyncio.get_running_loop().time(), (where, claim.metadata.generation)
        at, counted, sentence = self._counted.get(claim.key, (0.0, None, ""))
        if counted != question or now - at > COUNT_AGAIN:
            sentence = f"No host can be had: {self._pool.why_none(wish, where)}."
            self._counted[claim.key] = (now, question, sentence)
        return sentence

    def _not_allowed(self, claim: HostClaim, meant: Key) -> NotFound:
        self._waiting.leave(claimant(consumer_of(claim)))
        why = (
            f"No HostDeployPolicy lets the namespace {claim.metadata.namespace} claim the host {meant} any more, and the claim "
            "does not have it yet. Ask whoever runs the hosts for a policy, or make another claim."
        )
        return NotFound(claim, standing_without(no(Reason.NO_HOST, why), meant=place_of(meant)))


def _where(claim: HostClaim, allowed: frozenset[str]) -> frozenset[str]:
    only = claim.spec.host_selector.in_namespace
    return allowed & {only} if only else allowed


def _wish(claim: HostClaim) -> Wish:
    return Wish(
        claimant=claim.metadata.uid,
        demands=demands_of(claim.spec.host_selector, path="spec.hostSelector"),
        failure_domain=claim.spec.failure_domain,
    )
