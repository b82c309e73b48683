"""How a Machine gets its host: the intention is written on the Machine, then the host is taken by one patch.

Both are patches of the version that was decided on, in an order that lets nobody take two hosts for one Machine, nor one host for
a Machine that is gone, however many processes try, however old what they know, and wherever they are interrupted. The intention
names the host and its version, and the host is patched at that version alone. Another intention takes its place only after the
API has shown that the host has another version by now, or is gone. So of all intentions that were ever written, the patch of the
last one alone can succeed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.machine import Machine
from ingot.api.meta import now
from ingot.kube import REFUSALS, ApiError, Conflict, NotFound
from ingot.machines.machine.linking import consumer_of, link_of
from ingot.machines.machine.metrics import CLAIM_TIME, CLAIMS
from ingot.machines.machine.records import Records
from ingot.machines.machine.standing import Free, Given, Has, Means, Standing, intention, standing_of
from ingot.machines.machine.telling import Lost, Unusable
from ingot.machines.machine.wanting import Wanted, keeping
from ingot.machines.pool import Pool
from ingot.machines.vacancies import belongs_to

TRIES: Final = 3
"""Hosts that are asked for in one pass."""


def hosts_of(machine: Machine, pool: Pool) -> list[BareMetalHost]:
    """Those that say they are the Machine's. What somebody in another namespace says of his hosts is no concern of it."""
    here = machine.metadata.namespace
    return [host for host in pool.of(consumer_of(machine)) if host.metadata.namespace == here]


@dataclass(frozen=True, slots=True)
class Claimed:
    """The host is this Machine's, as of now."""

    machine: Machine
    host: BareMetalHost


@dataclass(frozen=True, slots=True)
class NoHost:
    """There is none to be had at this moment of those that will do."""

    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Crowded:
    """Others were faster, every time."""


class Claimer:
    def __init__(self, records: Records, pool: Pool) -> None:
        self._records = records
        self._pool = pool

    def standing(self, machine: Machine) -> Standing:
        link = link_of(machine)
        linked = self._pool.get(link.key) if link is not None else None
        return standing_of(machine, linked, hosts_of(machine, self._pool))

    async def standing_now(self, machine: Machine) -> Standing:
        """The same, with the host that the Machine names as the API has it."""
        if (link := link_of(machine)) is not None:
            await self._pool.look_again(link.key)
        return self.standing(machine)

    async def claim(
        self, machine: Machine, wanted: Wanted | Unusable
    ) -> Claimed | NoHost | Crowded | Unusable | Lost:
        """Raises `Conflict` when the Machine itself has changed. Does not wait between finding no host and saying so.

        A host that is the Machine's already is its own whatever it wants.
        """
        for _ in range(TRIES):
            # Whether what it means to take can still be had is not for a cache to say: somebody may be about to take it.
            match await self.standing_now(machine):
                case Lost() as lost:
                    return lost
                case Has(host) | Given(host):
                    fresh = await self._pool.look_again(host.key)
                    if fresh is not None and belongs_to(fresh, consumer_of(machine)):
                        return Claimed(machine, fresh)
                    continue
                case Means(host):
                    chosen: BareMetalHost | None = host
                case Free():
                    chosen = None
            if isinstance(wanted, Unusable):
                return wanted
            chosen = chosen or self._pool.choose(wanted.wish, [machine.metadata.namespace])
            if chosen is None:
                return NoHost(wanted)
            with self._pool.reserved(chosen.key):
                if not (meant := intention(machine, chosen, wanted.source)):
                    # What is wanted was read from a version that nothing guards otherwise.
                    await self._records.still_as(machine)
                machine = await self._records.write(machine, meant)
                if (taken := await self._take(chosen, wanted)) is not None:
                    return taken if isinstance(taken, Unusable) else self._counted(machine, taken)
        return Crowded()

    async def _take(self, host: BareMetalHost, wanted: Wanted) -> BareMetalHost | Unusable | None:
        """None where somebody was faster."""
        try:
            return await self._pool.make(host, keeping(host, wanted))
        except (Conflict, NotFound):
            CLAIMS.labels("conflict").inc()
            return None
        except REFUSALS as error:
            CLAIMS.labels("refused").inc()
            return refused(host, error)

    def _counted(self, machine: Machine, host: BareMetalHost) -> Claimed:
        CLAIMS.labels("claimed").inc()
        if (created := machine.metadata.creation_timestamp) is not None:
            CLAIM_TIME.observe(max(0.0, (now() - created).total_seconds()))
        return Claimed(machine, host)


def refused(host: BareMetalHost, error: ApiError) -> Unusable:
    return Unusable(f"BareMetalHost {host.key} cannot have what the Machine wants installed: {error.message}")
