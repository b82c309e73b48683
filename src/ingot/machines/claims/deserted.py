"""Hosts whose claim is gone and did not let them go: somebody took its finalizer off.

What the tenant installed would go on running, and count for no quota. So such a host is emptied and released as if the claim had
been deleted properly, and the copies of its Secrets go. That wipes a machine, and is done for a host only that was taken for this
very claim and is the same object since: hosts that come back from a backup, before their claims do, are not, nor are those on
which somebody wrote the name of a claim. These are told about in an Event, and left alone.

That a claim is gone is not for a cache to say, and not for one look: the API is asked, after the host was read and before it is
patched at that version, and the claim has to stay away for a while. Another claim of its name that comes meanwhile finds the
host again.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim
from ingot.api.meta import Key
from ingot.kube import Again, Client, Conflict, Done, EventRecorder, NotFound
from ingot.machines.claims.leaving import empty, release
from ingot.machines.claims.linking import consumer, consumer_of, taken_for
from ingot.machines.claims.secrets import SecretCopies
from ingot.machines.claims.writing import ClaimWriter
from ingot.machines.pool import Pool
from ingot.machines.vacancies import belongs_to

SETTLED: Final = 30.0
"""Seconds for which a claim has to be gone."""
CONSUMER_GONE: Final = "ConsumerGone"
"""Reason of the Event on a host whose claim is gone."""
SOON: Final = 0.5
LOOK_AGAIN: Final = 60.0


class Deserted:
    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        pool: Pool,
        copies: SecretCopies,
        writer: ClaimWriter,
        *,
        namespace: str,
        settled: float,
    ) -> None:
        """`namespace` is the one whose claims are looked after; "" for all. Of others nobody here knows what is there."""
        self._client = client
        self._recorder = recorder
        self._pool = pool
        self._copies = copies
        self._writer = writer
        self._namespace = namespace
        self._settled = settled
        self._missed: dict[Key, float] = {}
        """Since when claims are known to be gone that left hosts."""
        self._told: dict[Key, set[str]] = {}
        """For each of them, the UIDs of the hosts on which that was said."""

    async def look_after(self, claim: Key) -> Done | Again:
        """What was left by a claim that is not there, as far as the cache knows."""
        if self._namespace not in ("", claim.namespace):
            return Done()
        hosts = await self._left_by(claim)
        if not hosts or await self._is_there(claim):
            # A claim that the cache does not know yet is looked at when the watch tells of it.
            self._missed.pop(claim, None)
            self._told.pop(claim, None)
            return Done()
        time = asyncio.get_running_loop().time()
        wait = self._missed.setdefault(claim, time) + self._settled - time
        if wait > 0:
            return Again(wait, "its claim is gone; another one of that name may come")
        for host in hosts:
            self._tell(claim, host)
        return await self._let_go([host for host in hosts if taken_for(host)])

    async def let_go_beside(self, claim: HostClaim, host: Key | None) -> None:
        """What another claim left that had the name of this one, and is not the host that this one has."""
        self._missed.pop(claim.key, None)
        if not any(_is_left_beside(found, claim, host) for found in self._pool.of(consumer_of(claim))):
            self._told.pop(claim.key, None)
            return
        hosts = [found for found in await self._left_by(claim.key) if _is_left_beside(found, claim, host)]
        # Whoever has another UID under this name is not the one that they were taken for.
        await self._writer.still(claim)
        for found in hosts:
            self._tell(claim.key, found)
        await self._let_go(hosts)

    async def _let_go(self, hosts: list[BareMetalHost]) -> Done | Again:
        waits = False
        for host in hosts:
            try:
                emptied, is_empty = await empty(self._pool, host)
                if is_empty:
                    # While the host still says for whom they were made: nobody else would know.
                    await self._copies.clear(taken_for(emptied), emptied)
                    await release(self._pool, emptied)
                waits = waits or not is_empty
            except (Conflict, NotFound):
                return Again(SOON, "somebody else writes the same hosts")
        return Again(LOOK_AGAIN, "the host of a claim that is gone is emptied") if waits else Done()

    async def _left_by(self, claim: Key) -> list[BareMetalHost]:
        """The hosts that name the claim, as the API has them."""
        of_it = consumer(claim)
        found = [await self._pool.look_again(host.key) for host in self._pool.of(of_it)]
        return [host for host in found if host is not None and belongs_to(host, of_it)]

    async def _is_there(self, claim: Key) -> bool:
        # Not a GET: where the kind itself is not served, that says the same as for a claim that is gone.
        listed = await self._client.list(
            HOST_CLAIMS, namespace=claim.namespace, fields=f"metadata.name={claim.name}"
        )
        return bool(listed.items)

    def _tell(self, claim: Key, host: BareMetalHost) -> None:
        told = self._told.setdefault(claim, set())
        if host.metadata.uid in told:
            return
        told.add(host.metadata.uid)
        if taken_for(host):
            message = f"HostClaim {claim}, which had this host, is gone and did not let it go: it is emptied and released."
        else:
            message = (
                f"spec.consumerRef names HostClaim {claim}, which does not exist, and nobody looks after the host. Make the "
                "claim, or remove spec.consumerRef and spec.image to have the host back."
            )
        self._recorder.record(host, type="Warning", reason=CONSUMER_GONE, message=message)


def _is_left_beside(found: BareMetalHost, claim: HostClaim, host: Key | None) -> bool:
    return found.key != host and taken_for(found) not in ("", claim.metadata.uid)
