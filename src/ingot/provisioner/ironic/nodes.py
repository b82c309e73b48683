"""The node behind a host: found, read afresh, changed, and looked at before anything is destroyed.

Owns the bridge between client and cache: every answer of Ironic that shows a node goes into the cache with the moment its
request began. While Ironic pushes, a node of which nothing was heard since it was read is still as it was read, and is not asked
for again for a while; every request costs Ironic what it could do for other hosts. What may cost somebody something is asked for
before it is done, in `carrying_out`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from ingot.provisioner import Failed, HostRef, Sight
from ingot.provisioner.changes import Changes
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Attempts, Retry, Scope
from ingot.provisioner.ironic.cache import Moment, NodeCache
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.decisions import Fail
from ingot.provisioner.ironic.deployed_for import deployed_for
from ingot.provisioner.ironic.errors import NotFound, Refused
from ingot.provisioner.ironic.inspections import AT_ONCE, Inspections
from ingot.provisioner.ironic.interruptions import (
    Interruptions,
    history_is_needed,
    switching_was_interrupted,
    was_interrupted,
)
from ingot.provisioner.ironic.inventory import InspectionData, Vendor
from ingot.provisioner.ironic.model import FullNode, HistoryEntry, Json, Node, PatchOperation
from ingot.provisioner.ironic.names import node_name
from ingot.provisioner.ironic.reasons import explain, known_cause, newest_error, refuses_credentials

GOOD_FOR: Final = 30.0
"""Seconds that a node counts as read afresh, if nothing is heard of it."""
GOOD_FOR_ACTS: Final = 5.0
"""The same, where what follows may cost somebody something."""
REASON_COMES: Final = timedelta(seconds=30)
"""In which Ironic has written down why a node failed, if it ever does."""


def sight(node: Node, *, unfinished: bool = False) -> Sight:
    """What there is to lose at the node. `unfinished`: only a deployment for the same order, cut off in its middle."""
    return Sight(
        backend_id=node.uuid,
        state=node.provision_state,
        holds_instance=node.provision_state in states.HOLDS_INSTANCE and not unfinished,
        powered_on=powered_on(node),
        deployed_for=deployed_for(node) if isinstance(node, FullNode) else None,
    )


def powered_on(node: Node) -> bool | None:
    match node.power_state:
        case states.POWER_ON | "rebooting":
            return True
        case states.POWER_OFF:
            return False
    return None


@dataclass(frozen=True, slots=True)
class _Read:
    """A node as Ironic showed it."""

    node: FullNode
    began: Moment
    at: float


class Nodes:
    """Reads and changes nodes, and remembers what it saw."""

    def __init__(
        self,
        client: IronicClient,
        cache: NodeCache,
        changes: Changes,
        is_told: Callable[[], bool] = lambda: False,
        inspections: int = AT_ONCE,
    ) -> None:
        """`is_told`: whether every change of a node is heard of right now. `inspections`: how many go on at once."""
        self.client = client
        self.cache = cache
        self.changes = changes
        self._is_told = is_told
        self._reads: dict[str, _Read] = {}
        self._made: set[str] = set()
        self._vendors: dict[str, tuple[datetime, Vendor]] = {}
        self.attempts = Attempts()
        self.interruptions = Interruptions()
        self.inspections = Inspections(cache, changes.announce, inspections)

    def now(self) -> datetime:
        return datetime.now(UTC)

    def known(self, host: HostRef) -> Node | None:
        """From memory, and only if nothing speaks against it."""
        node = self.cache.get(host.backend_id) if host.backend_id else self.cache.by_name(node_name(host.key))
        return node if node is not None and not self.cache.is_doubted(node.uuid) else None

    def ident(self, host: HostRef) -> str:
        """What Ironic knows the host by."""
        return host.backend_id or node_name(host.key)

    async def fresh(self, host: HostRef, *, within: float = GOOD_FOR) -> FullNode | None:
        """The node as it is; None if Ironic does not know it."""
        return await self.read(self.ident(host), within=within)

    async def read(self, ident: str, *, within: float = GOOD_FOR) -> FullNode | None:
        """`within`: seconds that an earlier answer may be old, if nothing was heard of the node since."""
        known = self._reads.get(self.cache.uuid_of(ident))
        if known is not None and self._still_holds(known, within):
            return known.node
        began = self.cache.moment()
        try:
            node = await self.client.node(ident)
        except NotFound:
            self.cache.removed(ident)
            self._vendors.pop(ident, None)
            self._made.discard(ident)
            return None
        self._seen(node, began)
        return node

    def is_recent(self, node: FullNode, within: float) -> bool:
        """Whether nothing speaks against the node being like this now."""
        known = self._reads.get(node.uuid)
        return known is not None and known.node is node and _age(known) <= within

    def _still_holds(self, known: _Read, within: float) -> bool:
        return (
            self._is_told() and _age(known) <= within and self.cache.is_as_read(known.node.uuid, known.began)
        )

    def _seen(self, node: FullNode, began: Moment) -> None:
        self.cache.learned(node.remembered(), began)
        # The oldest stand first, because each is put behind the others.
        self._reads.pop(node.uuid, None)
        self._reads[node.uuid] = _Read(node, began, time.monotonic())
        while _age(oldest := next(iter(self._reads.values()))) > GOOD_FOR:
            del self._reads[oldest.node.uuid]

    async def create(self, record: dict[str, Json]) -> FullNode:
        began = self.cache.moment()
        node = await self.client.create_node(record)
        self._seen(node, began)
        self._made.add(node.uuid)
        return node

    def is_new(self, node: FullNode) -> bool:
        """Whether we made it, and asked nothing of it since: it holds what we gave it."""
        return node.uuid in self._made

    def surely_lacks(self, name: str) -> bool:
        """Whether there can be no node of this name but one that was made this very moment."""
        return self._is_told() and self.cache.by_name(name) is None

    async def patch(self, node: FullNode, patch: Sequence[PatchOperation]) -> FullNode:
        """Changes the record; without a difference there is no call."""
        if not patch:
            return node
        began = self.cache.moment()
        changed = await self.client.patch_node(node.uuid, patch)
        self._seen(changed, began)
        return changed

    async def inventory(self, node: FullNode) -> InspectionData | None:
        """What the last inspection has found. Nothing, where none has ended well since it was last begun."""
        if node.inspection_finished_at is None:
            return None
        try:
            data = await self.client.inventory(node.uuid)
        except NotFound:
            return None
        self._vendors[node.uuid] = node.inspection_finished_at, data.inventory.system_vendor or Vendor()
        return data

    async def vendor(self, node: FullNode) -> Vendor:
        """Who made the machine, where an inspection has found it out."""
        at, vendor = self._vendors.get(node.uuid, (None, Vendor()))
        if at == node.inspection_finished_at:
            return vendor
        data = await self.inventory(node)
        return (data.inventory.system_vendor if data else None) or Vendor()

    async def ask_state(self, node: Node, target: str, **arguments: Json) -> None:
        """Asks for a change of state, and notes that its failure has to be told."""
        await self.client.set_provision_state(node.uuid, target, **arguments)
        self.cache.doubt(node.uuid)
        self._made.discard(node.uuid)
        self.attempts.started(node.uuid, Scope.STATE)
        # What follows switches the host as it needs it: that is no failure of what was wanted of its power before.
        for scope in (Scope.POWER_ON, Scope.POWER_OFF):
            self.attempts.done(node.uuid, scope)

    async def ask_power(self, node: Node, target: str, *, timeout: int | None = None) -> None:
        await self.client.set_power_state(node.uuid, target, timeout=timeout)
        self.cache.doubt(node.uuid)

    async def retry(self, host: HostRef, node: Node, scope: Scope, *, again: bool) -> Retry:
        """Whether what failed at the node may be tried again, and why."""
        if await self._goes_on(host, node, scope):
            return Retry.INTERRUPTED
        return Retry.DUE if self.attempts.may_retry(node.uuid, scope, again=again) else Retry.NO

    async def _goes_on(self, host: HostRef, node: Node, scope: Scope) -> bool:
        """Whether it was an interruption, and not one too many."""
        if scope is Scope.STATE:
            if node.provision_state not in states.FAILED:
                return False
            history = await self._history(node) if history_is_needed(node) else []
            what, which = node.provision_state, (node.uuid, node.provision_updated_at)
            return was_interrupted(node, history) and self.interruptions.may_go_on(host.key, what, which)
        if node.target_power_state is not None or not self.attempts.was_started(node.uuid, scope):
            return False
        history = [] if node.last_error else await self._history(node)
        # Each is seen once: the power is switched again, and that clears the error.
        return switching_was_interrupted(node, history) and self.interruptions.may_go_on(
            host.key, scope.value, object()
        )

    async def reason(self, fail: Fail, node: Node) -> str:
        """What Ironic says of a failure; "" where it says nothing, or is not asked."""
        if not fail.ask_why:
            return ""
        return node.last_error or newest_error(await self._history(node))

    def reason_may_come(self, fail: Fail, node: Node) -> bool:
        """Whether the node has failed this moment. Ironic moves a node that it gives up first, and cleans up after it before it
        writes the reason down."""
        since = node.provision_updated_at
        return fail.ask_why and since is not None and abs(self.now() - since) <= REASON_COMES

    def failure(self, fail: Fail, node: Node, reason: str, scope: Scope = Scope.STATE) -> Failed:
        """The answer for a failure; it is told by this, so the next attempt may start."""
        self.attempts.told(node.uuid, scope)
        remedy = f". {fail.remedy}" if fail.remedy else ""
        person = bool(fail.remedy)
        if not fail.ask_why:
            return Failed(f"{fail.headline}{remedy}", needs_person=person)
        if not reason:
            return Failed(
                f"{fail.headline}; Ironic gives no reason, look at its log{remedy}", needs_person=person
            )
        explained = explain(reason, node)
        alone = fail.cause_says_it_all and known_cause(reason, node)
        return Failed(
            f"{explained if alone else f'{fail.headline}: {explained}'}{remedy}",
            refused_credentials=refuses_credentials(reason),
            needs_person=person,
        )

    async def _history(self, node: Node) -> list[HistoryEntry]:
        try:
            return await self.client.history(node.uuid)
        except Refused:
            # The history is a help; without it the failure is still a failure.
            return []

    def gone(self, host: HostRef) -> str:
        """The sentence for a node that is not there; the host is looked at again soon, because registering mends it."""
        self.look_again(host, 0.2)
        return f"Ironic does not know {host.key} (any more); it has to be registered"

    def look_again(self, host: HostRef, seconds: float) -> None:
        """For what ends without an event, such as a lock that somebody holds."""
        self.changes.later(host.key, seconds)


def _age(known: _Read) -> float:
    return time.monotonic() - known.at
