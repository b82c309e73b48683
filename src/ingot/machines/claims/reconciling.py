"""A pass over one claim: it gets a host if it has none, its host is told what the claim asks, and the claim says how it stands.

A claim that cannot be carried out as it is written, or whose Secrets cannot be used, takes no host; one that has a host already
leaves it as it is, except that it is switched on and off. What keeps it is said in the claim, and it goes on when that changes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from ingot.api.admission import check
from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hostclaim import FINALIZER, HOST_CLAIMS, ConditionType, HostClaim, ObjectPlace
from ingot.api.meta import Key
from ingot.api.wire import wire
from ingot.kube import REFUSALS, Again, ApiError, Conflict, Done, EventRecorder, NotFound
from ingot.machines.claims import reboots
from ingot.machines.claims.data import BadSecret
from ingot.machines.claims.deserted import Deserted
from ingot.machines.claims.hardware import HardwareCopies
from ingot.machines.claims.leaving import let_hosts_go
from ingot.machines.claims.linking import named_host
from ingot.machines.claims.secrets import NameTaken, SecretCopies
from ingot.machines.claims.taking import TRIES, Found, Taker, what_changes
from ingot.machines.claims.telling import (
    BAD_SECRETS,
    Reason,
    Standing,
    Verdict,
    fault_of,
    no,
    standing_with,
    standing_without,
    yes,
)
from ingot.machines.claims.writing import ClaimWriter
from ingot.machines.pool import Pool

log = logging.getLogger(__name__)

LOOK_AGAIN: Final = 60.0
"""Seconds, for what has no news of its own."""
CROWDED: Final = 0.5
CLAIM_REFUSED: Final = "ClaimRefused"
"""Reason of the Event on a host that cannot be told what its claim asks for."""
HARDWARE_REFUSED: Final = "HardwareDataRefused"
"""Reason of the Event on a claim whose host cannot be described."""
_REFUSED: Final = "The host does not take what the claim asks for. Whoever runs the hosts has to look at it."


class ClaimReconciler:
    def __init__(
        self,
        recorder: EventRecorder,
        pool: Pool,
        *,
        writer: ClaimWriter,
        taker: Taker,
        copies: SecretCopies,
        hardware: HardwareCopies,
        deserted: Deserted,
    ) -> None:
        self._recorder = recorder
        self._pool = pool
        self._writer = writer
        self._taker = taker
        self._copies = copies
        self._hardware = hardware
        self._deserted = deserted
        self.hostless: Final[set[Key]] = set()
        """Claims that have no host, and would like to hear of whatever lets them have one."""

    async def __call__(self, key: Key) -> Done | Again:
        claim = self._writer.get(key)
        for _ in range(TRIES):
            if claim is None:
                self._forget(key)
                return await self._deserted.look_after(key)
            try:
                return await self._look(claim)
            except (Conflict, NotFound):
                # The cache may be behind, and knows what the API says as soon as it is asked.
                claim = await self._writer.look_again(key)
        return Again(CROWDED, "somebody else writes the same objects")

    async def _look(self, claim: HostClaim) -> Done | Again:
        if claim.metadata.deletion_timestamp is not None:
            return await self._leave(claim)
        claim = await self._writer.hold(claim)
        found = await self._taker.find(claim)
        await self._deserted.let_go_beside(claim, found.host.key if found is not None else None)
        return await (self._keep(found.claim, found.host) if found is not None else self._take(claim))

    def _forget(self, key: Key) -> None:
        self.hostless.discard(key)
        self._writer.forget(key)
        self._taker.forget(key)
        self._copies.forget(key)

    # Without a host

    async def _take(self, claim: HostClaim) -> Done | Again:
        self.hostless.add(claim.key)
        lost = named_host(claim) if _is_associated(claim) else None
        try:
            if problem := broken_rules(claim):
                return await self._hold_back(claim, no(Reason.UNUSABLE, problem))
            found = await self._taker.take(claim, await self._copies.needed(claim))
        except BadSecret as error:
            return await self._hold_back(claim, no(BAD_SECRETS[error.role], str(error)))
        except (NameTaken, *REFUSALS) as error:
            claim = self._writer.get(claim.key) or claim
            self._tell_host(named_host(claim), error)
            return await self._hold_back(claim, no(Reason.NOT_SYNCED, _REFUSED))
        if lost is not None and (not isinstance(found, Found) or found.host.key != lost):
            message = f"The host {lost} is gone or belongs to somebody else; the claim looks for another one."
            self._recorder.record(claim, type="Warning", reason=Reason.MISSING_HOST, message=message)
        if isinstance(found, Found):
            return await self._keep(found.claim, found.host)
        if found.standing.meant is None:
            await self._copies.tidy(claim, None, ())
            await self._hardware.hide(claim)
        await self._writer.tell(found.claim, found.standing)
        return found.again or Again(LOOK_AGAIN, found.standing.associated.message)

    async def _hold_back(self, claim: HostClaim, why: Verdict) -> Done | Again:
        """Nothing is taken for a claim that could not be carried out."""
        # It may have said in this pass which host it means.
        claim = self._writer.get(claim.key) or claim
        self._taker.forget(claim.key)
        associated = no(Reason.NO_HOST, "No host is taken for the claim before it can be carried out.")
        await self._writer.tell(claim, standing_without(associated, why, meant=claim.status.bare_metal_host))
        return Again(LOOK_AGAIN, why.message)

    # With a host

    async def _keep(self, claim: HostClaim, host: BareMetalHost) -> Done | Again:
        self.hostless.discard(claim.key)
        self._taker.forget(claim.key)
        if host.metadata.deletion_timestamp is not None:
            synchronized = no(Reason.NOT_SYNCED, "Whoever runs the hosts is removing this one.")
        else:
            try:
                claim, host, synchronized = await self._synchronize(claim, host)
            except Conflict:
                await self._pool.look_again(host.key)
                raise
            except (NameTaken, *REFUSALS) as error:
                # It may have been written on the claim before that.
                claim = self._writer.get(claim.key) or claim
                self._tell_host(host.key, error)
                synchronized = no(Reason.NOT_SYNCED, _REFUSED)
        hardware = await self._show_hardware(claim, host)
        await self._writer.tell(claim, standing_with(host, synchronized, hardware=hardware))
        return Done() if synchronized.holds else Again(LOOK_AGAIN, synchronized.message)

    async def _show_hardware(self, claim: HostClaim, host: BareMetalHost) -> ObjectPlace | None:
        """The tenant's own namespace may take no more objects, or be going: that is the tenant's to hear."""
        try:
            return await self._hardware.show(claim, host)
        except REFUSALS as error:
            message = f"What the host is made of cannot be told in a HardwareData: {error.message}"
            self._recorder.record(claim, type="Warning", reason=HARDWARE_REFUSED, message=message)
            return None

    async def _synchronize(
        self, claim: HostClaim, host: BareMetalHost
    ) -> tuple[HostClaim, BareMetalHost, Verdict]:
        if problem := broken_rules(claim):
            return claim, await self._switch(claim, host), no(Reason.UNUSABLE, problem)
        try:
            secrets = await self._copies.needed(claim)
            await self._copies.make(claim, host, secrets)
        except BadSecret as error:
            return claim, await self._switch(claim, host), no(BAD_SECRETS[error.role], str(error))
        claim = await self._writer.annotate(claim, reboots.numbered(claim))
        host = await self._change(
            claim, host, what_changes(claim, host, secrets, reboots.on_host(claim, host))
        )
        await self._copies.tidy(claim, host, secrets)
        claim = await self._writer.annotate(claim, reboots.handed_on(claim))
        if host.spec.online and not claim.spec.powered_on:
            return claim, host, yes(Reason.SYNCED, "Whoever runs this host has it never switched off.")
        return claim, host, yes(Reason.SYNCED, "The host was told what the claim asks for.")

    async def _switch(self, claim: HostClaim, host: BareMetalHost) -> BareMetalHost:
        """On or off, and nothing else."""
        online = claim.spec.powered_on or host.spec.disable_power_off
        return await self._change(
            claim, host, {} if host.spec.online == online else {"spec": {"online": online}}
        )

    async def _change(
        self, claim: HostClaim, host: BareMetalHost, change: Mapping[str, Any]
    ) -> BareMetalHost:
        """Nobody's old copy of the claim has something installed that the claim does not ask for any more."""
        if change:
            await self._writer.still(claim)
        return await self._pool.patch(host, change)

    def _tell_host(self, key: Key | None, error: NameTaken | ApiError) -> None:
        """What a tenant is not told, told where whoever runs the hosts looks."""
        host = self._pool.get(key) if key is not None else None
        message = error.message if isinstance(error, ApiError) else str(error)
        if host is not None:
            self._recorder.record(host, type="Warning", reason=CLAIM_REFUSED, message=message)
        else:
            log.warning("a claim cannot be carried out, and names no host: %s", message)

    # Going

    async def _leave(self, claim: HostClaim) -> Done | Again:
        self.hostless.discard(claim.key)
        self._taker.forget(claim.key)
        if FINALIZER not in claim.metadata.finalizers:
            return Done()
        try:
            host = await let_hosts_go(self._pool, self._writer, claim, self._taker.own(claim))
        except REFUSALS as error:
            self._tell_host(key := named_host(claim), error)
            return await self._stay(claim, self._pool.get(key) if key is not None else None, _REFUSED)
        if host is not None:
            fault = fault_of(host)
            return await self._stay(claim, host, fault.message if fault is not None else "")
        await self._copies.tidy(claim, None, ())
        await self._writer.let_go(claim)
        return Done()

    async def _stay(self, claim: HostClaim, host: BareMetalHost | None, fault: str) -> Again:
        why = no(Reason.DELETING, f"The claim is being deleted; its host is emptied first. {fault}".rstrip())
        hardware = claim.status.hardware_data
        await self._writer.tell(
            claim, Standing(associated=why, synchronized=why, host=host, hardware=hardware)
        )
        return Again(LOOK_AGAIN, why.message)


def broken_rules(claim: HostClaim) -> str:
    """What is wrong with the claim as it is written; "" when nothing is. The webhook of a cluster may be off."""
    errors = check(HOST_CLAIMS.group, HOST_CLAIMS.kind, wire(claim), None)
    return "; ".join(str(error) for error in errors)


def _is_associated(claim: HostClaim) -> bool:
    return any(
        found.type == ConditionType.ASSOCIATED and found.status == "True" for found in claim.status.conditions
    )
