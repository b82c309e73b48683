"""Kinds made from CustomResourceDefinitions: one for each version, all with one home, the storage version.

A definition is served under the names that were accepted for it (`naming`), which are those it asks for unless another
definition has them. What a definition must be like to be taken at all is said by `rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause
from ingot.embedded.server.kinds import columns, jsonpath
from ingot.embedded.server.kinds.kind import FieldReader, Kind, field_at
from ingot.embedded.server.kinds.registry import Family, version_priority
from ingot.embedded.server.kinds.scale import Scale, problems

Definition = Mapping[str, Any]


def family_of(definition: Definition) -> Family:
    """The versions of the kind that a CustomResourceDefinition defines."""
    spec = definition["spec"]
    # Objects are kept once for all versions, so what any of them can be selected by is read from every object.
    fields: dict[str, FieldReader] = {}
    for version in spec["versions"]:
        fields |= {name: field_at(f".{name}") for name in _selectable(version)}
    stored_in = next(version for version in spec["versions"] if version.get("storage"))
    home = _kind(definition, stored_in, fields, home=None)
    served = (
        home if version is stored_in else _kind(definition, version, fields, home=home)
        for version in spec["versions"]
        if version.get("served")
    )
    return Family(home, tuple(served))


def _kind(
    definition: Definition, version: Definition, fields: Mapping[str, FieldReader], *, home: Kind | None
) -> Kind:
    spec = definition["spec"]
    names = dig(definition, "status", "acceptedNames") or {}
    names = names if names.get("kind") else spec["names"]
    subresources = version.get("subresources") or {}
    scale = _scale(subresources["scale"]) if subresources.get("scale") else None
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
        has_status="status" in subresources,
        fields=fields,
        selectable_fields=frozenset(_selectable(version)),
        scale=scale,
        check=_no_problems if scale is None else _numbers_of(scale),
        stored_as=home,
        name_of_lists=names.get("listKind") or "",
        deprecation=_deprecation(spec, names["kind"], version),
        terminating=bool(dig(definition, "metadata", "deletionTimestamp")),
    )


def _selectable(version: Definition) -> list[str]:
    return [field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ()]


def _scale(paths: Definition) -> Scale:
    selector = paths.get("labelSelectorPath")
    wanted, observed = (_steps(paths[name]) for name in ("specReplicasPath", "statusReplicasPath"))
    return Scale(wanted, observed, _text_at(selector)) if selector else Scale(wanted, observed)


def _numbers_of(scale: Scale) -> Callable[[Document, Document | None], list[Cause]]:
    return lambda new, old: problems(scale, new)


def _no_problems(new: Document, old: Document | None) -> list[Cause]:
    return []


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split("."))


def _text_at(path: str) -> FieldReader:
    find = jsonpath.compiled(path)

    def read(document: Document) -> str:
        return next((value for value in find(document) if isinstance(value, str)), "")

    return read


def _deprecation(spec: Definition, kind: str, version: Definition) -> str:
    """What clients of a deprecated version hear: its own words, or where to go instead."""
    if not version.get("deprecated"):
        return ""
    if words := version.get("deprecationWarning"):
        return str(words)
    name = version["name"]
    better = sorted(
        (
            other["name"]
            for other in spec["versions"]
            if other.get("served")
            and not other.get("deprecated")
            and version_priority(other["name"]) < version_priority(name)
        ),
        key=version_priority,
    )
    use = f"; use {spec['group']}/{better[0]} {kind}" if better else ""
    return f"{spec['group']}/{name} {kind} is deprecated{use}"
