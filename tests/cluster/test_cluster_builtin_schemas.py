"""The tables of the built-in kinds, field by field, against the OpenAPI of a real kube-apiserver.

Names, types, what is required, how lists are merged: whoever writes a manifest for a cluster finds the same here. There is
no departure. Words are our own; defaults are compared by behaviour, in `tests/api`. Quantities may be numbers on both sides,
though a cluster announces text.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import urllib.request
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from ingot.embedded.server.kinds.builtins import BUILT_IN, DEFINITIONS
from ingot.embedded.server.kinds.kind import Kind

pytestmark = pytest.mark.skipif(
    "INGOT_TEST_KUBECONFIG" not in os.environ, reason="needs a cluster; INGOT_TEST_KUBECONFIG names none"
)

_COMPARED: Final = (
    "type",
    "format",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-map-type",
)


@cache
def _get(path: str) -> Any:
    config = yaml.safe_load(Path(os.environ["INGOT_TEST_KUBECONFIG"]).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    request = urllib.request.Request(
        cluster["server"] + path, headers={"Authorization": f"Bearer {user['token']}"}
    )
    context = ssl.create_default_context(cadata=authority)
    with urllib.request.urlopen(request, context=context, timeout=60) as answer:
        return json.load(answer)


def _theirs(kind: Kind) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of the kind, and all schemas it may point to."""
    place = f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"
    schemas = _get(f"/openapi/v3/{place}")["components"]["schemas"]
    wanted = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    for schema in schemas.values():
        if wanted in schema.get("x-kubernetes-group-version-kind", ()):
            return schema, schemas
    raise AssertionError(f"the cluster does not describe {kind.kind} of {kind.group or 'the core group'}")


def _resolved(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref") or next(
        (part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part), ""
    )
    if not reference:
        return schema
    target = schemas[reference.rpartition("/")[2]]
    return {**target, **{name: value for name, value in schema.items() if name not in ("allOf", "$ref")}}


def _differences(
    ours: dict[str, Any], theirs: dict[str, Any], schemas: dict[str, Any], at: str
) -> Iterator[str]:
    theirs = _resolved(theirs, schemas)
    if ours.get("x-kubernetes-preserve-unknown-fields"):
        return
    if ours.get("x-kubernetes-int-or-string"):
        if (
            theirs.get("format") != "int-or-string"
            and theirs.get("type") != "string"
            and "oneOf" not in theirs
        ):
            yield f"{at}: an integer or text here, {theirs.get('type')} there"
        return
    for word in _COMPARED:
        if ours.get(word) != theirs.get(word):
            yield f"{at}: {word} is {ours.get(word)} here, {theirs.get(word)} there"
    # A list without a word about it is atomic.
    lists = [schema.get("x-kubernetes-list-type", "atomic") for schema in (ours, theirs)]
    if ours.get("type") == "array" and lists[0] != lists[1]:
        yield f"{at}: x-kubernetes-list-type is {lists[0]} here, {lists[1]} there"
    if sorted(ours.get("required", ())) != sorted(theirs.get("required", ())):
        yield f"{at}: required are {sorted(ours.get('required', ()))} here, {sorted(theirs.get('required', ()))} there"
    yield from _differing_parts(ours, theirs, schemas, at)


def _differing_parts(
    ours: dict[str, Any], theirs: dict[str, Any], schemas: dict[str, Any], at: str
) -> Iterator[str]:
    here, there = ours.get("properties", {}), theirs.get("properties", {})
    for name in sorted(here.keys() ^ there.keys()):
        yield f"{at}.{name}: only {'here' if name in here else 'there'}"
    for name in sorted(here.keys() & there.keys()):
        yield from _differences(here[name], there[name], schemas, f"{at}.{name}")
    for part in ("items", "additionalProperties"):
        if isinstance(ours.get(part), dict) and isinstance(theirs.get(part), dict):
            yield from _differences(ours[part], theirs[part], schemas, f"{at}.{part}")


@pytest.mark.parametrize(
    "kind", [kind for kind in BUILT_IN if kind is not DEFINITIONS], ids=lambda kind: kind.resource
)
def test_a_built_in_kind_has_the_fields_it_has_on_a_cluster(kind: Kind) -> None:
    theirs, schemas = _theirs(kind)
    theirs = {**theirs, "properties": dict(theirs["properties"])}
    for name in ("apiVersion", "kind", "metadata"):
        theirs["properties"].pop(name)
    theirs["required"] = [name for name in theirs.get("required", ()) if name != "metadata"]
    ours = {**kind.schema, "required": kind.schema.get("required", [])}
    assert list(_differences(dict(ours), theirs, schemas, kind.kind)) == []


def test_kinds_are_called_and_placed_as_on_a_cluster() -> None:
    different = []
    for kind in BUILT_IN:
        place = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        resources = {resource["name"]: resource for resource in _get(place)["resources"]}
        there = resources[kind.plural]
        here = {
            "kind": kind.kind,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "shortNames": list(kind.short_names),
            "categories": list(kind.categories),
            "verbs": sorted(kind.verbs),
        }
        found = {name: there.get(name, []) for name in here} | {"verbs": sorted(there["verbs"])}
        if here != found:
            different.append((here, found))
        if kind.has_status is not (f"{kind.plural}/status" in resources):
            different.append((kind.plural, "status"))
        if (kind.scale is not None) is not (f"{kind.plural}/scale" in resources):
            different.append((kind.plural, "scale"))
    assert different == []
