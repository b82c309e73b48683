"""The schema of CustomResourceDefinition itself: the types of its fields, and a sentence about each.

The schemas inside a definition nest without end and are left to `structural`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


def _of(**fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_FREE: Final = {"x-kubernetes-preserve-unknown-fields": True}
_FLAG: Final = {"type": "boolean"}
_NAMES: Final = _of(
    plural=_text("How a collection is called in URLs and commands."),
    singular=_text("How one object is called in commands."),
    kind=_text("How the kind is called in manifests."),
    listKind=_text("How a list of objects is called."),
    shortNames=_list({"type": "string"}),
    categories=_list({"type": "string"}),
)
_VERSION: Final = _of(
    name=_text("Name of the version: v1, v1beta1, …"),
    served=_FLAG,
    storage=_FLAG,
    deprecated=_FLAG,
    deprecationWarning=_text("What clients of a deprecated version are told."),
    schema=_of(openAPIV3Schema={"type": "object", **_FREE}),
    subresources=_of(
        status={"type": "object", **_FREE},
        scale=_of(
            specReplicasPath=_text("Where the wanted number is."),
            statusReplicasPath=_text("Where the observed number is."),
            labelSelectorPath=_text("Where the selector of what is counted is."),
        ),
    ),
    additionalPrinterColumns=_list(
        _of(
            name=_text("Heading of the column."),
            type=_text("Type of its values."),
            format=_text("Format of its values."),
            description=_text("What it shows."),
            priority={"type": "integer", "format": "int32"},
            jsonPath=_text("Where its values are."),
        )
    ),
    selectableFields=_list(_of(jsonPath=_text("A field that objects can be selected by."))),
)
SCHEMA: Final[Mapping[str, Any]] = {
    **_of(
        spec={
            **_of(
                group=_text("The group of the kind, a domain."),
                names={**_NAMES, "description": "How the kind and its objects are called."},
                scope=_text("Namespaced or Cluster."),
                versions={
                    **_list(_VERSION),
                    "description": "The versions of the kind, each with its schema.",
                },
                conversion={
                    **_of(
                        strategy=_text("None: versions differ in nothing but name."),
                        webhook={"type": "object", **_FREE},
                    ),
                    "description": "How objects get from one version to another.",
                },
                preserveUnknownFields=_FLAG,
            ),
            "description": "Names, scope, versions and schema of the kind.",
        },
        status={
            **_of(
                acceptedNames=_NAMES,
                conditions={
                    **_list(
                        {
                            **_of(
                                type=_text("What the condition is about."),
                                status=_text("True, False or Unknown."),
                                reason=_text("A word for programs."),
                                message=_text("A sentence for people."),
                                lastTransitionTime={"type": "string", "format": "date-time"},
                                observedGeneration={"type": "integer", "format": "int64"},
                            ),
                            "required": ["type", "status"],
                        }
                    ),
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                },
                storedVersions=_list({"type": "string"}),
            ),
            "description": "Whether the kind is served, under which names, and in which versions objects may be kept.",
        },
    ),
    "description": "The definition of a kind: whoever creates one has the API serve objects of that kind.",
}
