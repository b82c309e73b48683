"""Kinds made from CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingot.embedded.server.documents import dig
from ingot.embedded.server.kinds import columns
from ingot.embedded.server.kinds.kind import Kind, field_at


def from_crd(crd: Mapping[str, Any]) -> Kind:
    """The kind a CustomResourceDefinition defines, in the version it is stored in."""
    spec = crd["spec"]
    names = spec["names"]
    version = next(version for version in spec["versions"] if version.get("storage"))
    return Kind(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        schema=dig(version, "schema", "openAPIV3Schema") or {"type": "object"},
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=columns.of_crd(version.get("additionalPrinterColumns") or ()),
        has_status="status" in (version.get("subresources") or {}),
        fields={
            selectable["jsonPath"].removeprefix("."): field_at(selectable["jsonPath"])
            for selectable in version.get("selectableFields") or ()
        },
    )
