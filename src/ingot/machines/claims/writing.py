"""Claims in the API: read from a cache, or anew where a cache will not do; written by patches of the version that was read.

What was written is known here at once, and is no news to anybody. People hear of changes by Events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from ingot.api.hostclaim import FINALIZER, HOST_CLAIMS, HostClaim, HostClaimStatus
from ingot.api.meta import Key
from ingot.api.wire import status_patch, wire
from ingot.kube import Client, Conflict, EventRecorder, Informer, NotFound
from ingot.machines.claims.linking import place_of
from ingot.machines.claims.telling import (
    NO_HOST_YET,
    PROGRESS,
    Reason,
    Standing,
    news,
    status_of,
)

_SILENT: Final = frozenset({Reason.NOT_PROVISIONED, Reason.NOT_AVAILABLE, Reason.AVAILABLE, Reason.READY})
"""Reasons that say nothing which is not said by another condition, or which nobody asked."""


class ClaimWriter:
    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        claims: Informer[HostClaim],
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._claims = claims
        self._clock = clock
        self._written: dict[Key, str] = {}

    def get(self, key: Key) -> HostClaim | None:
        return self._claims.get(key)

    async def look_again(self, key: Key) -> HostClaim | None:
        """The claim as the API has it now."""
        try:
            found = await self._client.get(HOST_CLAIMS, key)
        except NotFound:
            return None
        self._claims.observe(found)
        return found

    async def still(self, claim: HostClaim) -> None:
        """Raises `Conflict` where the API has another version by now.

        For what is done to a host on behalf of the claim: the host was read before this, and is patched with that version after
        it. Whoever changes what the claim has to do with the host makes a newer version of one of the two first.
        """
        found = await self.look_again(claim.key)
        if found is None or found.metadata.resource_version != claim.metadata.resource_version:
            raise _changed(claim.key)

    def is_own(self, claim: HostClaim) -> bool:
        """Whether this is what we wrote last."""
        return self._written.get(claim.key) == claim.metadata.resource_version

    def forget(self, key: Key) -> None:
        self._written.pop(key, None)

    async def hold(self, claim: HostClaim) -> HostClaim:
        """Have the claim stay until its host is released."""
        if FINALIZER in claim.metadata.finalizers:
            return claim
        return await self._patch(claim, {"metadata": {"finalizers": [*claim.metadata.finalizers, FINALIZER]}})

    async def let_go(self, claim: HostClaim) -> None:
        rest = [finalizer for finalizer in claim.metadata.finalizers if finalizer != FINALIZER]
        await self._patch(claim, {"metadata": {"finalizers": rest}})

    async def annotate(self, claim: HostClaim, changes: Mapping[str, str | None]) -> HostClaim:
        return await self._patch(claim, {"metadata": {"annotations": dict(changes)}}) if changes else claim

    async def intend(self, claim: HostClaim, host: Key | None) -> HostClaim:
        """Write down which host is going to be taken, before it is: nobody else takes another one for this claim.

        It is another version of the claim afterwards, whatever it said before.
        """
        place = wire(place_of(host)) if host is not None else None
        at, before = self._clock(), claim.status.last_updated
        if before is not None and at <= before:
            # A patch that changes nothing would be no version, and would keep nobody else from writing.
            at = before + timedelta(microseconds=1)
        status = {"bareMetalHost": place, "lastUpdated": wire(at)}
        return await self._patch(claim, {"status": status}, subresource="status")

    async def tell(self, claim: HostClaim, standing: Standing) -> HostClaim:
        """Have the status say how the claim stands."""
        before = claim.status
        patch = status_patch(before, status_of(claim, standing, at=self._clock()))
        if patch is None:
            return claim
        written = await self._patch(claim, patch, subresource="status")
        self._record(claim, before, written.status)
        return written

    async def _patch(self, claim: HostClaim, patch: Mapping[str, Any], *, subresource: str = "") -> HostClaim:
        try:
            written = await self._client.patch(
                HOST_CLAIMS,
                claim.key,
                patch,
                subresource=subresource,
                resource_version=claim.metadata.resource_version,
            )
        except NotFound:
            raise _changed(claim.key) from None
        self._written[claim.key] = written.metadata.resource_version
        self._claims.observe(written)
        return written

    def _record(self, claim: HostClaim, before: HostClaimStatus, after: HostClaimStatus) -> None:
        said: set[str] = set()
        for found in news(before, after):
            if found.reason in _SILENT or found.message == NO_HOST_YET.message or found.reason in said:
                continue
            said.add(found.reason)
            good = found.status == "True" or found.reason in PROGRESS
            self._recorder.record(
                claim,
                type="Normal" if good else "Warning",
                reason=found.reason,
                message=found.message,
            )


def _changed(key: Key) -> Conflict:
    return Conflict(409, "Conflict", f"HostClaim {key} has changed, or gone, meanwhile")
