"""How strictly bodies and options are read: the words of YAML, what cannot be read, what is there twice or not known."""

from __future__ import annotations

import json

import pytest
from kubernetes_api import MERGE, STRATEGIC, Answer, Api, a_host

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
APPLY = "application/apply-patch+yaml"


def config_maps(api: Api) -> str:
    return f"/api/v1/namespaces/{api.namespace}/configmaps"


def warnings(answer: Answer) -> list[str]:
    found = answer.headers.getall("Warning", [])
    return [text.removeprefix('299 - "').removesuffix('"').replace('\\"', '"') for text in found]


# YAML


async def test_yaml_is_as_good_as_json(api: Api) -> None:
    text = b"""
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  labels: &labels {a: "1", b: yes-ish}
  annotations: *labels
data:
  number: "0o17"
  folded: >-
    one
    two
"""
    made = await api.post(config_maps(api), text, type_=YAML)
    assert made.code == 201, made.body
    assert made.body["data"] == {"number": "0o17", "folded": "one two"}
    assert made.body["metadata"]["annotations"] == {"a": "1", "b": "yes-ish"}
    changed = text.replace(b"one\n    two", b"three")
    put = await api.put(f"{config_maps(api)}/c", changed, type_=YAML)
    assert put.body["data"]["folded"] == "three"


async def test_the_words_of_yaml_are_those_of_kubernetes(api: Api) -> None:
    text = b"""
apiVersion: metal3.io/v1alpha1
kind: BareMetalHost
metadata: {name: h1}
spec:
  online: yes
  description: !!str 12
  rootDeviceHints: {minSizeGigabytes: 0x10, rotational: off, model: ~}
"""
    made = await api.post(api.hosts, text, type_=YAML)
    assert made.code == 201, made.body
    assert made.body["spec"]["online"] is True
    assert made.body["spec"]["description"] == "12"
    assert made.body["spec"]["rootDeviceHints"] == {"minSizeGigabytes": 16, "rotational": False}


@pytest.mark.parametrize("type_", [YAML, APPLY])
async def test_aliases_of_aliases_cannot_fill_the_memory(api: Api, type_: str) -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    text = "\n".join(["apiVersion: v1", "kind: ConfigMap", "metadata: {name: c}", *lines]).encode()
    if type_ == APPLY:
        answer = await api.patch(f"{config_maps(api)}/c", text, APPLY, fieldManager="m")
    else:
        answer = await api.post(config_maps(api), text, type_=YAML)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")


# What cannot be read


@pytest.mark.parametrize(
    ("body", "type_", "code", "reason"),
    [
        (b"", JSON, 400, "BadRequest"),
        (b'{"metadata":', JSON, 400, "BadRequest"),
        (b"[1]", JSON, 400, "BadRequest"),
        (b'"x"', JSON, 400, "BadRequest"),
        (b"{} x", JSON, 400, "BadRequest"),
        (b"\xff", JSON, 400, "BadRequest"),
        (b"metadata: {name: c", YAML, 400, "BadRequest"),
        (b"abc", PROTOBUF, 400, "BadRequest"),
        (b"k8s\x00\xff\xff", PROTOBUF, 400, "BadRequest"),
        (b"{}", "text/plain", 415, "UnsupportedMediaType"),
        (b'{"metadata":{"name":5}}', JSON, 400, "BadRequest"),
        (b'{"metadata":{"name":"c"},"data":{"x":5}}', JSON, 400, "BadRequest"),
        (b'{"metadata":{"name":"c"},"data":[]}', JSON, 400, "BadRequest"),
        (b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"c"}}', JSON, 400, "BadRequest"),
        (b"null", JSON, 422, "Invalid"),
        (b"[" * 20_000, JSON, 400, "BadRequest"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(
    api: Api, body: bytes, type_: str, code: int, reason: str
) -> None:
    answer = await api.post(config_maps(api), body, type_=type_)
    assert (answer.code, answer.body["reason"]) == (code, reason), answer.body
    assert (await api.get(f"{config_maps(api)}/c")).code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
async def test_a_body_over_the_limit_is_too_large(api: Api, method: str) -> None:
    await api.post(config_maps(api), {"metadata": {"name": "c"}})
    path = config_maps(api) if method == "POST" else f"{config_maps(api)}/c"
    body = json.dumps({"data": {"x": "y" * (3 * 1024 * 1024)}}).encode()
    answer = await api.call(method, path, body, type_=MERGE if method == "PATCH" else JSON)
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
    assert "limit is 3145728" in answer.body["message"]


# What a strict reader objects to

TWICE = (
    b'{"apiVersion":"metal3.io/v1alpha1","kind":"BareMetalHost","metadata":{"name":"h1","bogus":1},'
    b'"spec":{"online":false,"online":true,"foo":1,"bmc":{"bar":2,"address":"","credentialsName":""},'
    b'"raid":{"hardwareRAIDVolumes":[{"level":"1","zip":3,"level":"0"}]}},"zap":1}'
)
DOUBTS = [
    'duplicate field "spec.online"',
    'duplicate field "spec.raid.hardwareRAIDVolumes[0].level"',
    'unknown field "metadata.bogus"',
    'unknown field "spec.bmc.bar"',
    'unknown field "spec.foo"',
    'unknown field "spec.raid.hardwareRAIDVolumes[0].zip"',
    'unknown field "zap"',
]


async def test_what_is_there_twice_or_not_known_is_refused_when_asked_for_strictness(api: Api) -> None:
    answer = await api.post(api.hosts, TWICE, fieldValidation="Strict")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"] == (
        'BareMetalHost in version "v1alpha1" cannot be handled as a BareMetalHost: '
        f"strict decoding error: {', '.join(DOUBTS)}"
    )


async def test_and_a_warning_otherwise_where_the_last_one_counts(api: Api) -> None:
    answer = await api.post(api.hosts, TWICE)
    assert answer.code == 201, answer.body
    assert warnings(answer) == DOUBTS
    assert answer.body["spec"]["online"] is True


async def test_who_does_not_want_to_know_is_not_told(api: Api) -> None:
    answer = await api.post(api.hosts, TWICE, fieldValidation="Ignore")
    assert answer.code == 201
    assert warnings(answer) == []


async def test_a_key_that_is_there_twice_in_yaml_is_told_by_its_line(api: Api) -> None:
    text = b'metadata: {name: c}\ndata: {x: "1"}\ndata: {z: "1"}'
    strict = await api.post(config_maps(api), text, type_=YAML, fieldValidation="Strict")
    assert strict.code == 400
    assert 'line 3: key "data" already set in map' in strict.body["message"]
    lax = await api.post(config_maps(api), text, type_=YAML)
    assert warnings(lax) == ['line 3: key "data" already set in map']
    assert lax.body["data"] == {"z": "1"}


async def test_an_applied_configuration_that_says_a_thing_twice(api: Api) -> None:
    text = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"x":"1","x":"2"}}'
    path = f"{config_maps(api)}/c"
    strict = await api.patch(path, text, APPLY, fieldManager="m", fieldValidation="Strict")
    assert (strict.code, strict.body["reason"]) == (400, "BadRequest")
    assert 'line 1: key "x" already set in map' in strict.body["message"]
    lax = await api.patch(path, text, APPLY, fieldManager="m")
    assert warnings(lax) == ['line 1: key "x" already set in map']
    assert lax.body["data"] == {"x": "2"}


@pytest.mark.parametrize("type_", [MERGE, STRATEGIC])
async def test_a_patch_that_says_a_thing_twice_or_sets_what_is_not_known(api: Api, type_: str) -> None:
    await api.post(config_maps(api), {"metadata": {"name": "c"}})
    patch = b'{"data":{"q":"1","q":"2"},"bogus":1}'
    strict = await api.patch(f"{config_maps(api)}/c", patch, type_, fieldValidation="Strict")
    assert (strict.code, strict.body["reason"]) == (422, "Invalid")
    assert 'strict decoding error: duplicate field "data.q", unknown field "bogus"' in strict.body["message"]
    lax = await api.patch(f"{config_maps(api)}/c", patch, type_)
    assert (lax.code, lax.body["data"]) == (200, {"q": "2"})
    assert warnings(lax) == ['duplicate field "data.q"', 'unknown field "bogus"']


async def test_what_is_not_known_is_told_even_where_it_would_not_be_heard(api: Api) -> None:
    services = f"/api/v1/namespaces/{api.namespace}/services"
    service = {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}
    for path, body in ((api.hosts, a_host("x")), (services, service)):
        odd = {**body, "status": {"zap": 1}}
        strict = await api.post(path, odd, fieldValidation="Strict")
        assert (strict.code, strict.body["reason"]) == (400, "BadRequest")
        assert 'strict decoding error: unknown field "status.zap"' in strict.body["message"]
        made = await api.post(path, odd)
        assert (made.code, warnings(made)) == (201, ['unknown field "status.zap"'])
        for place, patch, name in (
            (f"{path}/x", {"status": {"zap": 1}}, "status.zap"),
            (f"{path}/x/status", {"spec": {"zap": 1}}, "spec.zap"),
        ):
            patched = await api.patch(place, patch)
            assert (patched.code, warnings(patched)) == (200, [f'unknown field "{name}"'])
            assert patched.version == made.version
            refused = await api.patch(place, patch, fieldValidation="Strict")
            assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (422, "patch")


async def test_a_refusal_takes_its_warnings_along(api: Api) -> None:
    odd = a_host("x", spec={"online": "no", "zap": 1})
    refused = await api.post(api.hosts, odd)
    assert (refused.code, warnings(refused)) == (422, ['unknown field "spec.zap"'])
    await api.new_host("x")
    there = await api.post(api.hosts, a_host("x", spec={"online": False, "zap": 1}))
    assert (there.code, warnings(there)) == (409, ['unknown field "spec.zap"'])
    patched = await api.patch(api.host("x"), {"spec": {"online": "no", "zap": 1}})
    assert (patched.code, warnings(patched)) == (422, ['unknown field "spec.zap"'])


# Options


@pytest.mark.parametrize(
    ("option", "value"), [("dryRun", "Some"), ("fieldValidation", "Perhaps"), ("fieldManager", "m" * 129)]
)
async def test_options_that_make_no_sense_are_told_by_name(api: Api, option: str, value: str) -> None:
    await api.new_host("h1")
    for answer, kind in (
        (await api.post(api.hosts, a_host("h2"), **{option: value}), "CreateOptions"),
        (await api.put(api.host("h1"), a_host("h1"), **{option: value}), "UpdateOptions"),
        (await api.patch(api.host("h1"), {}, **{option: value}), "PatchOptions"),
    ):
        assert (answer.code, answer.body["reason"]) == (422, "Invalid")
        assert answer.body["details"]["kind"] == kind
        assert [cause["field"] for cause in answer.body["details"]["causes"]] == [option]
