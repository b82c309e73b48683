"""Namespace: the scope most objects live in."""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.kinds.builtins.fields import fields_of, text
from ingot.embedded.server.kinds.columns import AGE, NAME, Column
from ingot.embedded.server.kinds.kind import Kind, field_at


def _prepare_namespace(new: Document, old: Document | None) -> None:
    new["spec"] = (old or {}).get("spec") or {"finalizers": ["kubernetes"]}
    new["status"] = (old or {}).get("status") or {"phase": "Active"}
    # Selectors over namespaces rely on this label; Kubernetes sets it too.
    new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"].get("name", "")


NAMESPACES: Final = Kind(
    group="",
    version="v1",
    kind="Namespace",
    plural="namespaces",
    singular="namespace",
    short_names=("ns",),
    namespaced=False,
    built_in=True,
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    schema=fields_of(
        "A scope for names: objects of most kinds live in a namespace and go when it goes.",
        spec=fields_of(
            "What keeps the namespace.",
            finalizers={
                "type": "array",
                "items": {"type": "string"},
                "description": "Who has to empty the namespace before it can go.",
            },
        ),
        status=fields_of(
            "The state of the namespace.", phase=text("Active, or Terminating while it is emptied.")
        ),
    ),
    columns=(
        NAME,
        Column("Status", lambda d: dig(d, "status", "phase"), description="Phase of the namespace."),
        AGE,
    ),
    fields={"status.phase": field_at(".status.phase")},
    prepare=_prepare_namespace,
)

FIRST_NAMESPACES: Final = ("default", "kube-system")
