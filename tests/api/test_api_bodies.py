"""Bodies: JSON, YAML and protobuf that can be read, and what is said about those that cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubernetes_api import JSON_PATCH, MERGE, STRATEGIC, Api, a_host

YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def field(number: int, value: bytes) -> bytes:
    """One length-delimited field, as protobuf writes it (for lengths below 128)."""
    assert len(value) < 128
    return bytes([number << 3 | 2, len(value)]) + value


def envelope(version: str, kind: str, content: bytes) -> bytes:
    """What Kubernetes wraps around every protobuf: four bytes and a runtime.Unknown."""
    return b"k8s\0" + field(1, field(1, version.encode()) + field(2, kind.encode())) + field(2, content)


def a_protobuf_secret(name: str, **data: bytes) -> bytes:
    entries = b"".join(field(2, field(1, key.encode()) + field(2, value)) for key, value in data.items())
    return envelope("v1", "Secret", field(1, field(1, name.encode())) + entries)


async def test_a_secret_can_be_written_in_protobuf(api: Api) -> None:
    made = await api.post(api.secrets, a_protobuf_secret("s", user=b"me"), type_=PROTOBUF)
    assert (made.code, made.body["data"], made.body["type"]) == (201, {"user": "bWU="}, "Opaque")
    put = await api.put(f"{api.secrets}/s", a_protobuf_secret("s", user=b"you"), type_=PROTOBUF)
    assert (put.code, put.body["data"]) == (200, {"user": "eW91"})


async def test_a_delete_can_say_its_conditions_in_protobuf(api: Api) -> None:
    made = await api.post(api.secrets, {"metadata": {"name": "s"}})
    wrong = envelope("v1", "DeleteOptions", field(2, field(1, b"00000000-0000-0000-0000-000000000000")))
    right = envelope("v1", "DeleteOptions", field(2, field(1, made.body["metadata"]["uid"].encode())))
    refused = await api.call("DELETE", f"{api.secrets}/s", wrong, type_=PROTOBUF)
    assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    assert (await api.call("DELETE", f"{api.secrets}/s", right, type_=PROTOBUF)).code == 200


@pytest.mark.parametrize("body", [b"k8s\0junk", b"junk", b"", a_protobuf_secret("s")[:-2]])
async def test_broken_protobuf_is_a_bad_request(api: Api, body: bytes) -> None:
    answer = await api.post(api.secrets, body, type_=PROTOBUF)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


async def test_objects_can_be_written_in_yaml(api: Api) -> None:
    host = (
        b"apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {name: h1}\nspec:\n  online: true\n"
    )
    made = await api.post(api.hosts, host, type_=YAML)
    assert (made.code, made.body["spec"]["online"]) == (201, True)
    secret = b"metadata: {name: s}\nstringData:\n  a: '1'\n"
    assert (await api.post(api.secrets, secret, type_=YAML)).body["data"] == {"a": "MQ=="}
    broken = await api.post(api.secrets, b"a: b: c\n", type_=YAML)
    assert (broken.code, broken.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("text", ["0x_", "1e999", "0x1ffffffffffffffff", "9" * 400, "_1"])
async def test_what_fits_in_no_number_is_text_in_yaml(api: Api, text: str) -> None:
    body = f"metadata: {{name: c}}\ndata:\n  a: {text}\n".encode()
    made = await api.post(f"/api/v1/namespaces/{api.namespace}/configmaps", body, type_=YAML)
    assert (made.code, made.body.get("data")) == (201, {"a": text})


@pytest.mark.parametrize("type_", ["text/plain", "application/xml", "application/x-www-form-urlencoded"])
async def test_a_language_that_is_not_spoken_here_is_unsupported(api: Api, type_: str) -> None:
    for path, body in ((api.hosts, a_host("h1")), (api.secrets, {"metadata": {"name": "s"}})):
        answer = await api.post(path, body, type_=type_)
        assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")


async def test_an_object_of_a_built_in_kind_is_what_its_place_says(api: Api) -> None:
    made = await api.post(api.secrets, {"metadata": {"name": "s"}})
    assert (made.code, made.body["kind"], made.body["apiVersion"]) == (201, "Secret", "v1")


async def test_an_object_of_a_custom_kind_says_which_kind_it_is(api: Api) -> None:
    made = await api.new_host("h1")
    for body in ({}, {"metadata": {"name": "h1"}, "spec": {"online": True}}, {**a_host("h1"), "kind": None}):
        for answer in (await api.post(api.hosts, body), await api.put(api.host("h1"), body)):
            assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
            assert "Object 'Kind' is missing" in answer.body["message"]
    without_version = a_host("h2") | {"apiVersion": ""}
    answer = await api.post(api.hosts, without_version)
    assert (answer.code, answer.body["message"]) == (
        400,
        "the API version in the data () does not match the expected API version (metal3.io/v1alpha1)",
    )
    for path in (api.hosts, api.secrets):
        odd = await api.post(path, {**a_host("h2"), "kind": 7})
        assert (odd.code, odd.body["reason"]) == (400, "BadRequest")
        assert "couldn't get version/kind" in odd.body["message"]
    assert (await api.get(api.host("h1"))).version == made.version


@pytest.mark.parametrize(
    ("patch", "fields"),
    [
        ({"kind": "Other"}, ["kind"]),
        ({"apiVersion": "metal3.io/v2"}, ["apiVersion"]),
        ({"kind": "Other", "apiVersion": "v2"}, ["kind", "apiVersion"]),
        ({"kind": None}, ["patch"]),
        ({"kind": 7}, ["patch"]),
    ],
)
async def test_a_patch_cannot_make_another_kind_of_an_object(
    api: Api, patch: dict[str, Any], fields: list[str]
) -> None:
    made = await api.new_host("h1")
    answer = await api.patch(api.host("h1"), patch)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == fields
    assert (await api.get(api.host("h1"))).version == made.version


async def test_what_a_patch_says_about_the_kind_of_a_built_in_object(api: Api) -> None:
    await api.post(api.secrets, {"metadata": {"name": "s"}})
    for patch in ({"kind": "Other"}, {"apiVersion": "v2"}, {"kind": 7}):
        merged = await api.patch(f"{api.secrets}/s", patch, MERGE)
        assert (merged.code, merged.body["reason"]) == (422, "Invalid")
        assert [cause["field"] for cause in merged.body["details"]["causes"]] == ["patch"]
    for patch in ({"kind": "Other"}, {"apiVersion": "v2"}):
        # A strategic patch is laid over an object whose kind is known.
        answer = await api.patch(f"{api.secrets}/s", patch, STRATEGIC)
        assert (answer.code, answer.body["kind"], answer.body["apiVersion"]) == (200, "Secret", "v1")
    odd = await api.patch(f"{api.secrets}/s", {"kind": 7}, STRATEGIC)
    assert (odd.code, odd.body["reason"]) == (422, "Invalid")


async def test_a_change_says_whom_it_changes(api: Api) -> None:
    await api.new_host("h1")
    await api.post(api.secrets, {"metadata": {"name": "s"}})
    for answer in (
        await api.patch(api.host("h1"), {"metadata": None}),
        await api.put(f"{api.secrets}/s", {"metadata": {}}),
    ):
        assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
        assert "name must be provided" in answer.body["message"]


@pytest.mark.parametrize(("validation", "code"), [("Strict", 400), ("Warn", 201), ("Ignore", 201), ("", 201)])
async def test_what_is_said_twice_is_refused_warned_about_or_ignored(
    api: Api, validation: str, code: int
) -> None:
    text = json.dumps(a_host("h1")).replace('"online": false', '"online": true, "online": false')
    answer = await api.post(api.hosts, text.encode(), fieldValidation=validation)
    assert answer.code == code, answer.body
    if validation == "Strict":
        assert 'strict decoding error: duplicate field "spec.online"' in answer.body["message"]
    elif validation != "Ignore":
        assert 'duplicate field \\"spec.online\\"' in answer.headers["Warning"]
    else:
        assert "Warning" not in answer.headers


async def test_all_unknown_fields_are_named_wherever_they_are(api: Api) -> None:
    spec = {"online": False, "onlin": 1, "bmc": {"address": "a", "credentialsName": "s", "adress": "b"}}
    answer = await api.post(api.hosts, a_host("h1", spec=spec), fieldValidation="Strict")
    assert answer.code == 400
    for name in ("spec.onlin", "spec.bmc.adress"):
        assert f'unknown field "{name}"' in answer.body["message"]
    secret = {"metadata": {"name": "s", "label": {}}, "dat": {}}
    answer = await api.post(api.secrets, secret, fieldValidation="Strict")
    assert answer.code == 400
    for name in ("metadata.label", "dat"):
        assert f'unknown field "{name}"' in answer.body["message"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'"x"', 400),
        (b'{"metadata":{"name":"other"}}', 400),
        (b'{"metadata":{"namespace":"other"}}', 400),
        (b'{"metadata":{"resourceVersion":"1"}}', 409),
        (b'{"metadata":{"labels":{"a b":"c"}}}', 422),
        (b"{}", 200),
    ],
)
async def test_merge_patches_that_cannot_be_are_refused_with_a_reason(
    api: Api, body: bytes, code: int
) -> None:
    made = await api.new_host("h1")
    await api.post(api.secrets, {"metadata": {"name": "s"}})
    assert (await api.patch(api.host("h1"), body, MERGE)).code == code
    assert (await api.patch(f"{api.secrets}/s", body, MERGE)).code == code
    assert (await api.patch(f"{api.secrets}/s", body, STRATEGIC)).code == code
    assert (await api.get(api.host("h1"))).version == made.version


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([], 200),
        ({"op": "add"}, 400),
        ([{"op": "remove", "path": "/spec/none"}], 422),
        ([{"op": "test", "path": "/spec/online", "value": 5}], 422),
        ([{"op": "move", "from": "/spec/none", "path": "/spec/other"}], 422),
        ([{"op": "add", "path": "/none/of/this", "value": 1}], 422),
        ([{"op": "jump", "path": "/spec"}], 422),
        ([{"op": "replace", "path": "/metadata/name", "value": "other"}], 400),
        ([{"op": "replace", "path": "/spec/online", "value": "yes"}], 422),
        ([{"op": "test", "path": "/spec/online", "value": False}] * 10_001, 413),
    ],
)
async def test_json_patches_that_cannot_be_applied_change_nothing(
    api: Api, operations: Any, code: int
) -> None:
    made = await api.new_host("h1")
    assert (await api.patch(api.host("h1"), operations, JSON_PATCH)).code == code
    assert (await api.get(api.host("h1"))).version == made.version


async def test_finalizers_say_whose_they_are(api: Api) -> None:
    warned = await api.post(api.hosts, a_host("h1", finalizers=["mine"]))
    assert warned.code == 201
    assert "prefer a domain-qualified finalizer name" in warned.headers["Warning"]
    await api.patch(api.host("h1"), {"metadata": {"finalizers": None}})
    refused = await api.post(api.secrets, {"metadata": {"name": "s", "finalizers": ["mine"]}})
    assert refused.code == 422
    assert refused.body["details"]["causes"][0]["field"] == "metadata.finalizers[0]"
    broken = await api.post(api.hosts, a_host("h2", finalizers=["a b/c"]))
    assert broken.body["details"]["causes"][0]["field"] == "metadata.finalizers"


async def test_owners_are_whole_and_one_of_them_at_most_controls(api: Api) -> None:
    owner = {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u1", "controller": True}
    half = await api.post(api.hosts, a_host("h1", ownerReferences=[{"kind": "Secret", "name": "s"}]))
    assert {cause["field"] for cause in half.body["details"]["causes"]} == {
        "metadata.ownerReferences.apiVersion",
        "metadata.ownerReferences.uid",
    }
    two = await api.post(api.hosts, a_host("h1", ownerReferences=[owner, {**owner, "uid": "u2"}]))
    assert (two.code, two.body["details"]["causes"][0]["field"]) == (422, "metadata.ownerReferences")
