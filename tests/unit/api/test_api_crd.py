"""The CRDs are the published ones: same names, columns, types and limits, with descriptions of our own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
import yaml
from click.testing import CliRunner

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHostStatus
from ingot.api.core import SECRETS
from ingot.api.crd import DEFINITIONS, all_crds, crd
from ingot.api.wire import wire
from ingot.cli.main import main

Json = Any

ROOT = "/versions/0/schema/openAPIV3Schema/properties"

_OVERRIDES = "/spec/properties/overrides/properties"
_POD_PART = "a part of a pod is kept whole; the API that gets the pod checks it"

_COREOS = "`coreos` is a format of the proposals: CoreOS as the ramdisk brings it"

DEPARTURES: dict[tuple[str, str], str] = {
    ("BareMetalHost", "/spec/properties/image/properties/format/enum"): _COREOS,
    ("BareMetalHost", "/status/properties/lastAttemptedImage/properties/format/enum"): _COREOS,
    (
        "BareMetalHost",
        "/status/properties/provisioning/properties/image/properties/format/enum",
    ): _COREOS,
    (
        "BareMetalHost",
        "/status/properties/nextTry",
    ): "when a failed host is tried again, for people and programs",
    ("BareMetalHost", "/status/properties/ramdisk"): "which ramdisk the host booted last",
    ("PreprovisioningImage", "/status/properties/version"): "what the ramdisk was made of",
    ("BareMetalHost", "/status/properties/errorType/enum"): (
        "`detach error`, which Metal3 uses and its schema refuses: a host that cannot be detached has to be able to say so"
    ),
    ("HostClaim", "/spec/properties/image/properties/format/enum"): _COREOS,
    ("Ironic", "/spec/properties/credentialsRef"): "the proposals' spelling of apiCredentialsName",
    ("Ironic", "/spec/properties/databaseRef"): "an IronicDatabase, as in the proposals",
    ("Ironic", "/spec/properties/tlsRef"): "the proposals' spelling of tls.certificateName",
    ("Ironic", f"{_OVERRIDES}/containers/items"): _POD_PART,
    ("Ironic", f"{_OVERRIDES}/initContainers/items"): _POD_PART,
    ("Ironic", f"{_OVERRIDES}/volumes/items"): _POD_PART,
    ("Ironic", f"{_OVERRIDES}/httpdLivenessProbe"): _POD_PART,
    ("Ironic", f"{_OVERRIDES}/httpdReadinessProbe"): _POD_PART,
}
"""(kind, path below ROOT) of each difference from the published schema that is meant, with the reason."""


OURS_ALONE = {"IronicDatabase": "from the proposals; nobody publishes it today"}
"""Kinds that there is nothing to compare with, with the reason."""


def published_schemas() -> dict[str, Json]:
    folder = os.environ.get("INGOT_CRD_SCHEMAS")
    if not folder:
        pytest.skip("set INGOT_CRD_SCHEMAS to a folder with the published CRDs as bare schemas")
    found = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]
    return {schema["names"]["kind"]: schema for schema in found}


def without_words(node: Json, path: str = "") -> Json:
    """Descriptions are ours, and the bare schemas have none. A *field* called description stays."""
    if isinstance(node, dict):
        in_properties = path.endswith("/properties")
        return {
            key: without_words(value, f"{path}/{key}")
            for key, value in node.items()
            if in_properties or key != "description"
        }
    if isinstance(node, list):
        return [without_words(value, path) for value in node]
    return node


def flat(node: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Each leaf with its path. No subresources and an empty list of them are the same."""
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from flat(value, f"{path}/{key}")
    elif isinstance(node, list) and node and isinstance(node[0], dict):
        for index, value in enumerate(node):
            yield from flat(value, f"{path}/{index}")
    elif not path.endswith("/subresources"):
        yield path, sorted(node) if path.endswith("/required") else node


def reason_for(kind: str, path: str) -> tuple[str, str] | None:
    """The departure that a difference belongs to; one covers all that is below it."""
    return next(
        (
            (of, place)
            for of, place in DEPARTURES
            if of == kind and (path == f"{ROOT}{place}" or path.startswith(f"{ROOT}{place}/"))
        ),
        None,
    )


def kind_of(definition: Json) -> str:
    return str(definition["spec"]["names"]["kind"])


@pytest.mark.parametrize(
    "generated", [found for found in all_crds() if kind_of(found) not in OURS_ALONE], ids=kind_of
)
def test_a_generated_crd_differs_from_the_published_one_only_where_a_reason_is_written(
    generated: Json,
) -> None:
    kind = kind_of(generated)
    ours = dict(flat(without_words(generated["spec"])))
    theirs = dict(flat(without_words(published_schemas()[kind])))
    differing = {path for path in {*ours, *theirs} if ours.get(path, "absent") != theirs.get(path, "absent")}
    assert {
        path: (ours.get(path), theirs.get(path)) for path in differing if reason_for(kind, path) is None
    } == {}
    used = {reason_for(kind, path) for path in differing}
    assert {place for place in DEPARTURES if place[0] == kind} <= used, "a departure is listed that is none"


def test_every_published_kind_is_there() -> None:
    assert {kind_of(found) for found in all_crds()} == {*published_schemas(), *OURS_ALONE}


def fields(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    for name, sub in schema.get("properties", {}).items():
        yield f"{path}.{name}", sub
        yield from fields(sub, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield from fields(schema[inner], f"{path}[]")


def schema_of(definition: Json) -> Json:
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize("generated", all_crds(), ids=kind_of)
def test_every_field_has_a_sentence_for_kubectl_explain(generated: Json) -> None:
    silent = [
        path
        for path, sub in fields(schema_of(generated))
        if path != ".metadata" and not sub.get("description")
    ]
    assert silent == []


def parts(schema: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """A schema and all schemas in it."""
    yield path, schema
    for name, sub in schema.get("properties", {}).items():
        yield from parts(sub, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            yield from parts(schema[inner], f"{path}[]")


@pytest.mark.parametrize("generated", all_crds(), ids=kind_of)
def test_every_schema_is_structural_as_a_kubernetes_api_demands(generated: Json) -> None:
    for path, part in parts(schema_of(generated)):
        assert "type" in part or part.get("x-kubernetes-int-or-string"), path
        assert not ("properties" in part and "additionalProperties" in part), path
        assert ("items" in part) is (part.get("type") == "array"), path
        assert set(part.get("required", ())) <= set(part.get("properties", {})), path
        for key in part.get("x-kubernetes-list-map-keys", ()):
            assert key in part["items"]["required"], path
        if "default" in part:
            assert jsonschema_rs.is_valid(part, part["default"]), path


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda found: found.resource.kind)
def test_an_object_of_which_only_the_name_is_known_can_be_read_and_its_status_sent(definition: Json) -> None:
    found = msgspec.convert({"metadata": {"name": "x1"}}, definition.resource.type)
    assert found.metadata.name == "x1"
    if definition.has_status and hasattr(found, "status"):
        schema = schema_of(crd(definition.resource))["properties"]["status"]
        assert jsonschema_rs.is_valid(schema, wire(found.status))


def test_the_undecoded_hardware_is_described_in_full() -> None:
    properties = schema_of(crd(BARE_METAL_HOSTS))["properties"]["status"]["properties"]
    assert properties["hardware"]["properties"]["nics"]["items"]["properties"]["mac"]["type"] == "string"


def test_an_empty_status_as_it_is_sent_passes_the_schema_that_requires_its_fields() -> None:
    schema = schema_of(crd(BARE_METAL_HOSTS))["properties"]["status"]
    assert jsonschema_rs.is_valid(schema, wire(BareMetalHostStatus()))
    assert not jsonschema_rs.is_valid(schema, {})


def test_a_kind_of_kubernetes_itself_has_no_crd() -> None:
    with pytest.raises(KeyError, match="Secret"):
        crd(SECRETS)


def test_the_command_prints_one_yaml_document_for_each_kind() -> None:
    result = CliRunner().invoke(main, ["crds"])
    assert result.exit_code == 0
    assert list(yaml.safe_load_all(result.output)) == all_crds()


def test_the_command_prints_one_json_list() -> None:
    result = CliRunner().invoke(main, ["crds", "-o", "json"])
    assert result.exit_code == 0
    assert json.loads(result.output) == {"apiVersion": "v1", "kind": "List", "items": all_crds()}
