"""The Node that a Machine became: how it is found, and what it is told. The informers both are found by, and pure rules.

A Node is found by the annotation that names the Machine, else by its provider ID, else by an address of the host. Where two would
do, neither is taken. Addresses are given away again, so they count only while something runs on the host, if no other Machine
has the same, and for a Node that does not say it is another Machine's or another host's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ingot.api.core import NODES, Node, NodeTaint
from ingot.api.machine import MACHINES, Annotation, Machine, MachineStatus
from ingot.api.meta import Key
from ingot.api.wire import wire
from ingot.kube import Client, Informer

LEGACY_FINALIZER: Final = "metal3.io/capbm"
"""Left on Nodes by old releases of others; nobody removes it any more."""
_MACHINE: Final = "machine"
_PROVIDER: Final = "provider"
_ADDRESS: Final = "address"
_INTERNAL: Final = "InternalIP"


def node_informer(client: Client) -> Informer[Node]:
    """One with what is needed to find the Node of a Machine."""
    return Informer(
        client,
        NODES,
        indexes={
            _MACHINE: lambda node: _value(node.metadata.annotations.get(Annotation.MACHINE)),
            _PROVIDER: lambda node: _value(node.spec.provider_id),
            _ADDRESS: _addresses,
        },
    )


def machine_informer(client: Client, *, namespace: str = "") -> Informer[Machine]:
    """One with what is needed to find the Machine of a Node."""
    return Informer(
        client,
        MACHINES,
        namespace=namespace,
        indexes={
            _PROVIDER: lambda machine: _value(machine.spec.provider_id),
            _ADDRESS: _addresses,
        },
    )


def machines_of(node: Node, machines: Informer[Machine]) -> list[Key]:
    """Those that this Node may be the Node of."""
    namespace, _, name = node.metadata.annotations.get(Annotation.MACHINE, "").partition("/")
    keys = [Key(namespace, name)] if namespace and name else []
    keys += [machine.key for machine in machines.by_index(_PROVIDER, node.spec.provider_id)]
    keys += [machine.key for address in _addresses(node) for machine in machines.by_index(_ADDRESS, address)]
    return list(dict.fromkeys(keys))


def addresses_to_go_by(status: MachineStatus, machine: Machine, machines: Informer[Machine]) -> list[str]:
    """Those in this status of the Machine that no other Machine has."""
    addresses = [found.address for found in status.addresses if found.type == _INTERNAL and found.address]
    return [
        address
        for address in addresses
        if all(other.key == machine.key for other in machines.by_index(_ADDRESS, address))
    ]


def node_of(
    machine: Machine, nodes: Informer[Node], *, provider_id: str, addresses: Iterable[str]
) -> Node | None:
    """The Node that this Machine became; None while there is none, or nobody can tell which."""
    before = machine.status.node_ref
    known = nodes.get(Key("", before.name)) if before is not None else None
    if before is not None and known is not None and before.uid in ("", known.metadata.uid):
        return known
    if found := nodes.by_index(_MACHINE, str(machine.key)):
        return _only(found)
    if found := nodes.by_index(_PROVIDER, provider_id):
        return _only(node for node in found if not _is_of_another(node, machine))
    found = [node for address in addresses for node in nodes.by_index(_ADDRESS, address)]
    return _only(
        node
        for node in {node.key: node for node in found}.values()
        if not _is_of_another(node, machine) and node.spec.provider_id in ("", provider_id)
    )


def node_patch(machine: Machine, node: Node) -> dict[str, Any]:
    """What the Node has to be told; empty where it knows. What others wrote there stays."""
    wanted, found = machine.spec.metadata, node.metadata
    metadata: dict[str, Any] = {}
    annotations = {**wanted.annotations, str(Annotation.MACHINE): str(machine.key)}
    if missing := _missing(annotations, found.annotations):
        metadata["annotations"] = missing
    if missing := _missing(wanted.labels, found.labels):
        metadata["labels"] = missing
    metadata |= without_legacy_finalizer(node).get("metadata", {})
    spec: dict[str, Any] = {}
    if not node.spec.provider_id and machine.spec.provider_id:
        spec["providerID"] = machine.spec.provider_id
    if taints := _taints(machine, node):
        spec["taints"] = wire([*node.spec.taints, *taints])
    return {name: part for name, part in (("metadata", metadata), ("spec", spec)) if part}


def without_legacy_finalizer(node: Node) -> dict[str, Any]:
    """The patch that takes it off; empty where it is not there."""
    if LEGACY_FINALIZER not in node.metadata.finalizers:
        return {}
    kept = [name for name in node.metadata.finalizers if name != LEGACY_FINALIZER]
    return {"metadata": {"finalizers": kept}}


def _taints(machine: Machine, node: Node) -> list[NodeTaint]:
    """Those of the Machine that the Node does not have in one form or another."""
    there = {(taint.key, taint.effect) for taint in node.spec.taints}
    return [
        NodeTaint(key=taint.key, value=taint.value, effect=taint.effect, time_added=taint.time_added)
        for taint in machine.spec.taints
        if (taint.key, taint.effect) not in there
    ]


def _missing(wanted: dict[str, str], found: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in wanted.items() if found.get(name) != value}


def _is_of_another(node: Node, machine: Machine) -> bool:
    return node.metadata.annotations.get(Annotation.MACHINE) not in (None, "", str(machine.key))


def _only(nodes: Iterable[Node]) -> Node | None:
    found = list(nodes)
    return found[0] if len(found) == 1 else None


def _value(text: str | None) -> list[str]:
    return [text] if text else []


def _addresses(of: Node | Machine) -> list[str]:
    return [found.address for found in of.status.addresses if found.type == _INTERNAL and found.address]
