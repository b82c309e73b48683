"""CustomResourceDefinition: the kinds that are not built in."""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import dig
from ingot.embedded.server.kinds.columns import NAME, Column
from ingot.embedded.server.kinds.kind import READ_VERBS, Kind

DEFINITIONS: Final = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    singular="customresourcedefinition",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    namespaced=False,
    built_in=True,
    verbs=READ_VERBS,
    schema={
        "type": "object",
        "description": "The definition of a kind. In this API definitions are part of the release and can only be read.",
        "properties": {
            "spec": {
                "type": "object",
                "description": "Names, scope, versions and schema of the kind.",
                "x-kubernetes-preserve-unknown-fields": True,
            },
            "status": {
                "type": "object",
                "description": "Whether the kind is served.",
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
    },
    columns=(
        NAME,
        Column(
            "Created At",
            lambda d: dig(d, "metadata", "creationTimestamp"),
            type="date",
            description="When the kind was first served.",
        ),
    ),
)
