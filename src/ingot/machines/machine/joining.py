"""The Machine and its Node in the API: which it is, what it is told, and its end. What is decided about it is in `nodes`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import NODES, Node
from ingot.api.machine import Machine
from ingot.kube import REFUSALS, Client, Conflict, EventRecorder, Informer, NotFound
from ingot.machines.machine.nodes import addresses_to_go_by, node_of, node_patch, without_legacy_finalizer
from ingot.machines.machine.telling import Found, runs_something, status_of


class Joiner:
    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        *,
        machines: Informer[Machine],
        nodes: Informer[Node],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._machines = machines
        self._nodes = nodes

    async def join(self, machine: Machine, host: BareMetalHost) -> Node | None:
        """The Node that the Machine became on this host, told whose it is; None while there is none."""
        addresses: list[str] = []
        if runs_something(host):
            addresses = addresses_to_go_by(status_of(machine.status, Found(host)), machine, self._machines)
        node = node_of(machine, self._nodes, provider_id=machine.spec.provider_id, addresses=addresses)
        if node is None or node.metadata.deletion_timestamp is not None:
            return node
        try:
            await self._patch(node, node_patch(machine, node))
        except REFUSALS as error:
            self._recorder.record(
                machine,
                type="Warning",
                reason="NodeRefused",
                message=f"Node {node.key} cannot be told what it has from its Machine: {error.message}",
            )
        return node

    async def part(self, machine: Machine) -> None:
        """Delete the Node of a Machine that goes. One that is known by its address alone may be another's by now."""
        node = node_of(machine, self._nodes, provider_id=machine.spec.provider_id, addresses=())
        if node is None:
            return
        await self._patch(node, without_legacy_finalizer(node))
        # Conflict: another Node of the same name, which is not ours to delete.
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(NODES, node.key, uid=node.metadata.uid)

    async def _patch(self, node: Node, patch: Mapping[str, object]) -> None:
        """A Node that is gone has nothing to be told. Raises `Conflict` where there is a newer version, which is known then."""
        if not patch:
            return
        with contextlib.suppress(NotFound):
            try:
                written = await self._client.patch(
                    NODES, node.key, patch, resource_version=node.metadata.resource_version
                )
            except Conflict:
                self._nodes.observe(await self._client.get(NODES, node.key))
                raise
            self._nodes.observe(written)
