"""Node: a machine that runs pods, registered and described by the agent on it."""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.kind import FieldReader, field_at

_ROLE: Final = "node-role.kubernetes.io/"


def _prepare(new: Document, old: Document | None) -> None:
    status = new.get("status") or {}
    if "capacity" in status:
        allocatable = status.setdefault("allocatable", {})
        for name, amount in status["capacity"].items():
            allocatable.setdefault(name, amount)


def _status(node: Document) -> str:
    ready = next(
        (found for found in dig(node, "status", "conditions") or () if found.get("type") == "Ready"), None
    )
    word = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if dig(node, "spec", "unschedulable") else word


def _roles(node: Document) -> str:
    found = {
        key.removeprefix(_ROLE) if key.startswith(_ROLE) else value
        for key, value in (dig(node, "metadata", "labels") or {}).items()
        if key.startswith(_ROLE) or (key == "kubernetes.io/role" and value)
    }
    return ",".join(sorted(role for role in found if role)) or "<none>"


def _address(kind: str) -> FieldReader:
    def read(node: Document) -> str:
        for address in dig(node, "status", "addresses") or ():
            if address.get("type") == kind:
                return str(address.get("address"))
        return "<none>"

    return read


def _info(name: str) -> FieldReader:
    return lambda node: str(dig(node, "status", "nodeInfo", name) or "<unknown>")


_unschedulable = field_at(".spec.unschedulable")

NODES: Final = built_in(
    "",
    "Node",
    "nodes",
    short_names=("no",),
    namespaced=False,
    status=True,
    born_with_status=True,
    columns=(
        NAME,
        Column("Status", _status, description="Whether it is ready for pods."),
        Column("Roles", _roles, description="What it is for."),
        AGE,
        Column(
            "Version",
            lambda d: str(dig(d, "status", "nodeInfo", "kubeletVersion") or ""),
            description="Version of its agent.",
        ),
        Column("Internal-IP", _address("InternalIP"), priority=1, description="Its address inside."),
        Column("External-IP", _address("ExternalIP"), priority=1, description="Its address outside."),
        Column("OS-Image", _info("osImage"), priority=1, description="Its operating system."),
        Column("Kernel-Version", _info("kernelVersion"), priority=1, description="Its kernel."),
        Column(
            "Container-Runtime", _info("containerRuntimeVersion"), priority=1, description="What runs pods."
        ),
    ),
    fields={"spec.unschedulable": lambda node: _unschedulable(node) or "false"},
    prepare=_prepare,
)
