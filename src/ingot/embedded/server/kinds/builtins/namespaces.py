"""Namespace: the scope most objects live in."""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.names import label_problem


def _prepare(new: Document, old: Document | None) -> None:
    # Who has to empty a namespace is not for clients to say; here that is always the server itself.
    new["spec"] = (old or {}).get("spec", {})
    # Selectors over namespaces rely on this label; Kubernetes sets it too.
    new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"].get("name", "")


def _complete(new: Document) -> None:
    new["spec"] = {"finalizers": ["kubernetes"]}
    new["status"] = {"phase": "Active"}


NAMESPACES: Final = built_in(
    "",
    "Namespace",
    "namespaces",
    short_names=("ns",),
    namespaced=False,
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    status=True,
    columns=(
        NAME,
        Column("Status", lambda d: dig(d, "status", "phase"), description="Active, or Terminating."),
        AGE,
    ),
    fields=("status.phase",),
    name_problem=label_problem,
    prepare=_prepare,
    complete=_complete,
)

# There from the start. Clients look for leases of nodes in the last one, and for what everybody may know in kube-public.
FIRST_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
