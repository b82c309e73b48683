"""A pass over one Machine: from what it wants to a host that is its own, a Node that is linked to it, and a status that says so.

Owns the order. Whose a host is comes first and is written at once; how it is getting on is told when there is time (`lull`). A
Machine that has its host is never installed anew because its provider spec, or a default, says something else by now: what is on
the host was decided when it was claimed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import Node
from ingot.api.installed import mark_of
from ingot.api.machine import Annotation, Machine
from ingot.api.meta import Key
from ingot.kube import REFUSALS, Again, Client, Conflict, Done, EventRecorder, Informer
from ingot.machines.defaults import TargetDefaults
from ingot.machines.machine.claiming import TRIES, Claimed, Claimer, Crowded, NoHost, refused
from ingot.machines.machine.joining import Joiner
from ingot.machines.machine.leaving import Leaver, hooked
from ingot.machines.machine.linking import consumer_of, consumer_of_key
from ingot.machines.machine.lull import Lull
from ingot.machines.machine.news import news_of
from ingot.machines.machine.records import Records
from ingot.machines.machine.standing import Has, decision, loss, possession, says_replaced, says_whose
from ingot.machines.machine.telling import (
    Found,
    Leaving,
    Lost,
    Outcome,
    Unusable,
    Waiting,
    is_waiting,
    status_of,
    status_patch,
)
from ingot.machines.machine.wanting import Wanted, asks_for_something_else, keeping, wanted_of
from ingot.machines.pool import Pool
from ingot.machines.vacancies import belongs_to, claimant, is_told_what_to_run
from ingot.machines.waiting import WaitingList

SOON: Final = 0.1
"""Seconds to let others go first who want the same."""
REFUSED_AGAIN: Final = 300.0
"""Seconds after which a host that refused what it should run is asked again: what its rules say may have changed."""
EXPLAIN_AGAIN: Final = 600.0
"""Seconds for which the explanation why there is no host stands: many wait, and hosts change all the time."""

_CHANGED: Final = "spec.providerSpec.value says something else now about what is installed."
_CHANGED_MEANWHILE: Final = (
    "While the Machine took its host, what to install was changed (spec.providerSpec.value, or a default)."
)
_REPLACED: Final = (
    "Somebody changed spec.image or spec.customDeploy of BareMetalHost {}: it is not what was decided for this Machine, and the "
    "host is installed anew with it. Nobody puts it back. To have what the Machine asks for, delete the Machine and make another."
)


class Actuator:
    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        pool: Pool,
        *,
        machines: Informer[Machine],
        nodes: Informer[Node],
        defaults: TargetDefaults,
        waiting: WaitingList,
        wake: Callable[[Key], None],
        clock: Callable[[], datetime],
        quiet: float,
    ) -> None:
        """`wake` has a Machine looked at again."""
        self.records: Final = Records(client, machines)
        self.retargeted: Final[set[Key]] = set()
        """Machines whose provider spec has come to say something else about what is installed."""
        self._recorder = recorder
        self._pool = pool
        self._defaults = defaults
        self._waiting = waiting
        self._wake = wake
        self._clock = clock
        self._claimer = Claimer(self.records, pool)
        self._joiner = Joiner(client, recorder, machines=machines, nodes=nodes)
        self._leaver = Leaver(recorder, records=self.records, pool=pool, joiner=self._joiner)
        self._lull = Lull(quiet)
        self._explained: dict[Key, float] = {}

    async def __call__(self, key: Key) -> Done | Again:
        machine = self.records.get(key)
        for _ in range(TRIES):
            if machine is None:
                self._forget(key)
                return Done()
            try:
                return await self._pass(machine)
            except Conflict:
                machine = await self.records.look_again(key)
        return Again(SOON, "somebody else writes the same objects")

    async def _pass(self, machine: Machine) -> Done | Again:
        if machine.metadata.deletion_timestamp is not None:
            self._stop_waiting(machine.key)
            machine = await self._tell(machine, Leaving())
            return await self._leaver.leave(machine)
        if isinstance(standing := self._claimer.standing(machine), Lost):
            # What a Machine says of its host may be newer than what the cache knows of that host.
            standing = await self._claimer.standing_now(machine)
        match standing:
            case Lost():
                return await self._lost(machine, standing)
            case Has(host):
                return await self._keep(machine, host)
        return await self._claim(machine, wanted_of(machine, self._defaults.resolve))

    # Getting a host

    async def _claim(self, machine: Machine, wanted: Wanted | Unusable) -> Done | Again:
        found = await self._claimer.claim(machine, wanted)
        # Nothing is waited for from here to the waiting list: a host that becomes vacant meanwhile wakes this Machine.
        match found:
            case Claimed(machine, host):
                self._stop_waiting(machine.key)
                return await self._have(machine, host)
            case NoHost(wish):
                return await self._wait(machine, wish)
            case Crowded():
                return Again(SOON, "others were faster")
            case Unusable():
                return await self._unusable(machine, found, refused=found is not wanted)
            case Lost():
                return await self._lost(machine, found)

    async def _wait(self, machine: Machine, wanted: Wanted) -> Again:
        key, namespace, wish = machine.key, machine.metadata.namespace, wanted.wish
        again = self._waiting.enter(
            claimant(wanted.target.consumer),
            fits=lambda host: host.metadata.namespace == namespace and wish.suits(host),
            wake=lambda: self._wake(key),
        )
        time = asyncio.get_running_loop().time()
        if not is_waiting(machine) or self._explained.get(key, 0.0) <= time:
            self._explained[key] = time + EXPLAIN_AGAIN
            await self._tell(machine, Waiting(self._pool.why_none(wish, [namespace])))
        return again

    async def _unusable(self, machine: Machine, unusable: Unusable, *, refused: bool) -> Done | Again:
        """What is written wrongly is looked at when it is corrected; what was refused may not be, some day."""
        self._stop_waiting(machine.key)
        await self._tell(machine, unusable)
        return Again(REFUSED_AGAIN, unusable.why) if refused else Done()

    # Having one

    async def _keep(self, machine: Machine, host: BareMetalHost) -> Done | Again:
        self._stop_waiting(machine.key)
        if machine.key in self.retargeted:
            self.retargeted.discard(machine.key)
            self._say_that_it_stays(machine, _CHANGED)
        if says_whose(mine := possession(machine, host)) or says_replaced(mine):
            # Written on the word of a cache, it would be said of a host that is somebody else's by now, or of one that was.
            fresh = await self._pool.look_again(host.key)
            if fresh is None or not belongs_to(fresh, consumer_of(machine)):
                return Again(1.0, f"the cache has not heard yet what became of BareMetalHost {host.key}")
            host = fresh
        return await self._have(machine, host)

    async def _have(self, machine: Machine, host: BareMetalHost) -> Done | Again:
        """The host is known to be the Machine's."""
        if not is_told_what_to_run(host):
            wanted = wanted_of(machine, self._defaults.resolve)
            if isinstance(wanted, Unusable):
                return await self._unusable(machine, wanted, refused=False)
            machine = await self._decide_again(machine, wanted)
            told = await self._tell_again(host, wanted)
            if isinstance(told, Unusable):
                return await self._unusable(machine, told, refused=True)
            host = told
        return await self._settle(machine, host)

    async def _decide_again(self, machine: Machine, wanted: Wanted) -> Machine:
        """Somebody took away what the host was to run. As long as there is a Machine, it has a say."""
        if noted := decision(machine, mark_of(wanted.target.image, wanted.target.custom_deploy)):
            return await self.records.write(machine, noted)
        await self.records.still_as(machine)
        return machine

    async def _tell_again(self, host: BareMetalHost, wanted: Wanted) -> BareMetalHost | Unusable:
        try:
            return await self._pool.make(host, keeping(host, wanted))
        except REFUSALS as error:
            return refused(host, error)
        except Conflict:
            await self._pool.look_again(host.key)
            raise

    async def _settle(self, machine: Machine, host: BareMetalHost) -> Done | Again:
        mine = possession(machine, host)
        if says_whose(mine):
            chosen = Annotation.HOST_VERSION in machine.metadata.annotations
            machine = await self.records.write(machine, mine)
            self._lull.claimed(machine.key)
            if chosen and asks_for_something_else(host, wanted_of(machine, self._defaults.resolve)):
                self._say_that_it_stays(machine, _CHANGED_MEANWHILE)
        if (wait := self._lull.wait(machine.key)) > 0:
            return Again(wait, "others are being given their hosts")
        node = await self._joiner.join(machine, host)
        mine = possession(machine, host)
        machine = await self.records.write(machine, mine)
        if says_replaced(mine):
            self._recorder.record(
                machine, type="Warning", reason="TargetReplaced", message=_REPLACED.format(host.key)
            )
        await self._tell(machine, Found(host, node))
        return Done()

    async def _lost(self, machine: Machine, lost: Lost) -> Done:
        self._stop_waiting(machine.key)
        machine = await self.records.write(machine, loss(machine))
        await self._tell(machine, lost)
        return Done()

    # Telling

    async def _tell(self, machine: Machine, outcome: Outcome) -> Machine:
        """Write the status where it says something else, and an Event where that is worth one."""
        before = machine.status
        patch = status_patch(before, status_of(before, outcome), at=self._clock())
        if patch is None:
            return machine
        machine = await self.records.write(machine, patch, subresource="status")
        for news in news_of(before, outcome, hooks=hooked(machine)):
            self._recorder.record(machine, type=news.type, reason=news.reason, message=news.message)
        return machine

    def _say_that_it_stays(self, machine: Machine, why: str) -> None:
        self._recorder.record(
            machine,
            type="Warning",
            reason="TargetUnchanged",
            message=f"{why} The host of this Machine keeps what it has; to have it installed anew, delete the Machine and make "
            "another.",
        )

    def _stop_waiting(self, key: Key) -> None:
        self._waiting.leave(claimant(consumer_of_key(key)))
        self._explained.pop(key, None)

    def _forget(self, key: Key) -> None:
        self._stop_waiting(key)
        self._lull.forget(key)
        self._leaver.forget(key)
        self.retargeted.discard(key)
        self.records.forget(key)
