"""The tables of the built-in kinds: how they are read, what becomes of documents, and protobuf that follows them."""

from __future__ import annotations

import copy
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running_server import served

from ingot.embedded.server.face import protobuf
from ingot.embedded.server.kinds.builtins import BUILT_IN, message_of
from ingot.embedded.server.kinds.builtins.pods import quality
from ingot.embedded.server.kinds.builtins.tables import ListOf, MapOf, Message, Scalar, message, take_in
from ingot.embedded.server.kinds.builtins.tables.intake import Undecodable
from ingot.embedded.server.kinds.quantity import canonical, value_of

CORE = "io.k8s.api.core.v1"

# Quantities


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("0", "0"),
        ("1", "1"),
        ("1000m", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1.", "1"),
        ("-1", "-1"),
        ("2000", "2k"),
        ("1500", "1500"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.1Gi", "107374182400m"),
        ("100M", "100M"),
        ("1e3", "1e3"),
        ("12e6", "12e6"),
        ("1E", "1E"),
        ("1Ei", "1Ei"),
        ("0.0000000001", "1n"),
    ],
)
def test_a_quantity_is_shown_in_one_form(written: str, shown: str) -> None:
    assert canonical(written) == shown


@pytest.mark.parametrize("written", ["", "x", "1 Gi", "1gi", "Gi", "1.2.3", "1e", "٣", "1\n", "1" * 101])
def test_what_is_no_quantity(written: str) -> None:
    assert canonical(written) is None
    assert value_of(written) is None


@given(
    st.integers(-(10**12), 10**12),
    st.sampled_from(["", "m", "u", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "e-3"]),
)
def test_the_one_form_is_the_same_amount_and_its_own_form(number: int, suffix: str) -> None:
    written = f"{number}{suffix}"
    shown = canonical(written)
    assert shown is not None
    assert value_of(shown) == value_of(written)
    assert canonical(shown) == shown


@given(st.text(st.sampled_from("0123456789.-+eEkKmMgGiIn "), max_size=40) | st.text(max_size=10))
def test_no_text_brings_the_reader_of_quantities_down(written: str) -> None:
    shown = canonical(written)
    assert (shown is None) is (value_of(written) is None)


@pytest.mark.parametrize("written", ["1e999", "9" * 50, "1e31Ei"])
def test_what_nobody_has_is_no_quantity(written: str) -> None:
    assert canonical(written) is None


def test_amounts_are_compared_as_numbers() -> None:
    assert value_of("1Gi") == Decimal(2**30)
    assert value_of("1500m") == Decimal("1.5")


# Taking in


def taken(document: dict[str, Any], kind: str = "Pod") -> dict[str, Any]:
    made = copy.deepcopy(document)
    take_in(made, message(f"{CORE}.{kind}"))
    return made


def test_what_says_nothing_is_dropped_and_what_says_something_stays() -> None:
    empty = {"hostNetwork": False, "nodeName": "", "nodeSelector": {}, "volumes": [], "affinity": None}
    meant = {"shareProcessNamespace": False, "terminationGracePeriodSeconds": 0, "securityContext": {}}
    assert taken({"spec": {**empty, **meant}}) == {"spec": meant}


def test_values_get_the_form_the_api_shows() -> None:
    container = {
        "name": "a",
        "resources": {"limits": {"cpu": 0.5, "memory": "1024Ki"}},
        "ports": [{"containerPort": 80.0}],
    }
    status = {"startTime": "2026-01-01T01:00:00.5+01:00"}
    made = taken({"spec": {"containers": [container]}, "status": status})
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "500m", "memory": "1Mi"}
    assert made["spec"]["containers"][0]["ports"] == [{"containerPort": 80}]
    assert made["status"] == {"startTime": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.999Z", "2026-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00+14:00", ""),
        ("2026-02-30T00:00:00Z", ""),
        ("2026-01-01", ""),
    ],
)
def test_times_are_shown_in_one_form_or_refused(written: str, shown: str) -> None:
    document = {"status": {"startTime": written}}
    if shown:
        assert taken(document)["status"] == {"startTime": shown}
    else:
        with pytest.raises(Undecodable, match="no time such as"):
            taken(document)


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ("text", "spec"),
        ({"containers": {}}, "spec.containers"),
        ({"containers": ["x"]}, "spec.containers[0]"),
        ({"containers": [{"args": [1]}]}, "spec.containers[0].args[0]"),
        (
            {"containers": [{"resources": {"limits": {"cpu": "x"}}}]},
            "spec.containers[0].resources.limits[cpu]",
        ),
        ({"hostNetwork": "no"}, "spec.hostNetwork"),
        ({"priority": 2**31}, "spec.priority"),
        ({"priority": True}, "spec.priority"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector[a]"),
    ],
)
def test_a_wrong_type_is_named(spec: Any, where: str) -> None:
    with pytest.raises(Undecodable) as refused:
        taken({"spec": spec})
    assert str(refused.value).startswith(where)


def test_fields_that_no_table_knows_are_left_for_the_schema() -> None:
    assert taken({"spec": {"hostNetwrok": True}}) == {"spec": {"hostNetwrok": True}}


# The tables


def test_every_built_in_kind_says_what_it_is_for() -> None:
    for kind in BUILT_IN:
        assert kind.schema["description"], kind.kind
        for name, part in kind.schema["properties"].items():
            if part.get("type") == "object" and "properties" in part:
                assert part["description"], f"{kind.kind}.{name}"


def test_a_kind_that_no_table_has_has_no_message() -> None:
    assert message_of("metal3.io", "BareMetalHost") is None
    assert message_of("", "PodTemplate") is None


@pytest.mark.parametrize(
    ("requests", "limits", "wanted"),
    [
        ({}, {}, "BestEffort"),
        ({"cpu": "0"}, {}, "BestEffort"),
        ({"cpu": "1"}, {}, "Burstable"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, "Burstable"),
        ({}, {"cpu": "1"}, "Burstable"),
    ],
)
def test_who_has_to_go_first(requests: dict[str, str], limits: dict[str, str], wanted: str) -> None:
    container = {"name": "a", "resources": {"requests": requests, "limits": limits}}
    assert quality({"containers": [container]}) == wanted


# Protobuf: what is written by the tables is read by them


def wire(number: int, value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value & (2**64 - 1))


def varint(value: int) -> bytes:
    made = b""
    while value > 0x7F:
        made += bytes([value & 0x7F | 0x80])
        value >>= 7
    return made + bytes([value])


def scalar(name: str, value: Any) -> int | bytes:
    match name:
        case "text":
            return str(value).encode()
        case "bool" | "int32" | "int64":
            return int(value)
        case "quantity":
            return wire(1, str(value).encode())
        case _:
            assert name == "number-or-text"
            if isinstance(value, str):
                return wire(1, 1) + wire(3, value.encode())
            return wire(1, 0) + wire(2, value)


def encoded(document: dict[str, Any], of: Message) -> bytes:
    made = b""
    for field in of.fields:
        if field.inlined and isinstance(field.type, Message):
            made += wire(field.number, encoded(document, field.type))
        elif field.name in document:
            made += one(field.number, document[field.name], field.type)
    return made


def one(number: int, value: Any, type_: Any) -> bytes:
    match type_:
        case ListOf(of):
            return b"".join(one(number, item, of) for item in value)
        case MapOf(of):
            return b"".join(wire(number, wire(1, k.encode()) + one(2, v, of)) for k, v in value.items())
        case Scalar(name):
            return wire(number, scalar(name, value))
        case _:
            return wire(number, encoded(value, type_))


def body_of(document: dict[str, Any]) -> bytes:
    group, kind = document["apiVersion"].rpartition("/")[0], document["kind"]
    of = message_of(group, kind)
    assert of is not None
    type_ = wire(1, document["apiVersion"].encode()) + wire(2, kind.encode())
    return b"k8s\x00" + wire(1, type_) + wire(2, encoded(document, of))


def test_a_deployment_in_protobuf_is_the_one_it_would_be_in_json() -> None:
    container = {
        "name": "main",
        "image": "example.org/main:1",
        "args": ["-v", "--port=80"],
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}}],
        "resources": {"limits": {"cpu": "500m"}},
        "livenessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 5},
        "readinessProbe": {"tcpSocket": {"port": 80}},
        "securityContext": {"runAsUser": 0, "privileged": False},
    }
    volumes = [{"name": "v", "configMap": {"name": "c", "defaultMode": 420}}, {"name": "e", "emptyDir": {}}]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"a": "b"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [container], "volumes": volumes, "hostNetwork": True},
            },
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "25%"}},
        },
    }
    assert protobuf.decoded(body_of(deployment)) == deployment


def test_negative_numbers_and_packed_lists_are_read() -> None:
    of = message(f"{CORE}.PodSecurityContext")
    (groups,) = [field.number for field in of.fields if field.name == "supplementalGroups"]
    packed = wire(groups, varint(7) + varint(300))
    spec = wire(14, packed) + wire(25, -5)
    raw = b"k8s\x00" + wire(1, wire(1, b"v1") + wire(2, b"Pod")) + wire(2, wire(2, spec))
    assert protobuf.decoded(raw)["spec"] == {
        "securityContext": {"supplementalGroups": [7, 300]},
        "priority": -5,
    }


# What only this API does


async def test_roles_come_with_a_warning_that_they_change_nothing(tmp_path: Path) -> None:
    async with served(tmp_path, crds=()) as caller:
        role = {"metadata": {"name": "r"}, "rules": []}
        place = f"{caller.url}/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
        async with caller.session.post(place, json=role) as answer:
            assert answer.status == 201
            assert "not enforced" in answer.headers["Warning"]


async def test_no_service_gets_an_address_that_nothing_answers_at(tmp_path: Path) -> None:
    async with served(tmp_path, crds=()) as caller:
        place = "/api/v1/namespaces/default/services"
        service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
        code, made = await caller.call("POST", place, service)
        assert (code, made["spec"]["clusterIP"]) == (201, "None")
        given = {"metadata": {"name": "t"}, "spec": {"clusterIP": "127.0.0.1", "ports": [{"port": 80}]}}
        code, made = await caller.call("POST", place, given)
        assert (code, made["spec"]["clusterIPs"]) == (201, ["127.0.0.1"])
