"""The node behind a host: found, read afresh, changed, and looked at before anything is destroyed.

Owns the bridge between client and cache: every answer of Ironic that shows a node goes into the cache with the moment its
request began. What is done to a node that may cost somebody something goes through `guarded`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.attempts import Attempts, Scope
from ingot.provisioner.ironic.cache import NodeCache
from ingot.provisioner.ironic.changes import Changes, node_name
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.decisions import Fail
from ingot.provisioner.ironic.errors import IronicError, NotFound, Unavailable
from ingot.provisioner.ironic.model import FullNode, Json, Node, PatchOperation
from ingot.provisioner.ironic.reasons import explain, newest_error
from ingot.provisioner.protocol import HostRef, Sight


def sight(node: Node) -> Sight:
    """What there is to lose at the node."""
    return Sight(
        backend_id=node.uuid,
        state=node.provision_state,
        holds_instance=node.provision_state in states.HOLDS_INSTANCE,
        powered_on=powered_on(node),
    )


def powered_on(node: Node) -> bool | None:
    match node.power_state:
        case states.POWER_ON | "rebooting":
            return True
        case states.POWER_OFF:
            return False
    return None


class Nodes:
    """Reads and changes nodes, and remembers what it saw."""

    def __init__(self, client: IronicClient, cache: NodeCache, changes: Changes) -> None:
        self.client = client
        self.cache = cache
        self.changes = changes
        self.attempts = Attempts()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def known(self, host: HostRef) -> Node | None:
        """From memory, and only if nothing speaks against it."""
        node = self.cache.get(host.backend_id) if host.backend_id else self.cache.by_name(node_name(host.key))
        return node if node is not None and not self.cache.is_doubted(node.uuid) else None

    async def fresh(self, host: HostRef) -> FullNode | None:
        """The node as it is right now; None if Ironic does not know it."""
        return await self.read(host.backend_id or node_name(host.key))

    async def read(self, ident: str) -> FullNode | None:
        began = self.cache.moment()
        try:
            node = await self.client.node(ident)
        except NotFound:
            self.cache.removed(ident)
            return None
        self.cache.learned(node.remembered(), began)
        return node

    async def create(self, record: dict[str, Json]) -> FullNode:
        began = self.cache.moment()
        node = await self.client.create_node(record)
        self.cache.learned(node.remembered(), began)
        return node

    async def patch(self, node: FullNode, patch: Sequence[PatchOperation]) -> FullNode:
        """Changes the record; without a difference there is no call."""
        if not patch:
            return node
        began = self.cache.moment()
        changed = await self.client.patch_node(node.uuid, patch)
        self.cache.learned(changed.remembered(), began)
        return changed

    async def ask_state(self, node: Node, target: str, *, configdrive: Json = None) -> None:
        """Asks for a change of state, and notes that its failure has to be told."""
        await self.client.set_provision_state(node.uuid, target, configdrive=configdrive)
        self.attempts.started(node.uuid, Scope.STATE)

    async def failure(self, fail: Fail, node: Node, scope: Scope = Scope.STATE) -> str:
        """The sentence for a failure; told by this, so the next attempt may start."""
        self.attempts.told(node.uuid, scope)
        if not fail.ask_why:
            return fail.headline
        reason = await self.reason(node)
        return (
            f"{fail.headline}: {reason}"
            if reason
            else f"{fail.headline}; Ironic gives no reason, look at its log"
        )

    async def reason(self, node: Node) -> str:
        """Why the node is in a failed state, as Ironic has it."""
        text = node.last_error or ""
        if not text:
            try:
                text = newest_error(await self.client.history(node.uuid))
            except Unavailable:
                raise
            except IronicError:
                # The history is a help; without it the failure is still a failure.
                text = ""
        return explain(text, node) if text else ""

    def look_again(self, host: HostRef, seconds: float) -> None:
        """For what ends without an event, such as a lock that somebody holds."""
        self.changes.later(host.key, seconds)
