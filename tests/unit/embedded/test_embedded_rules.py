"""The pure rules: selectors, patches, schemas, columns, paths, protobuf, names."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.embedded.server.errors import Refused
from ingot.embedded.server.face import protobuf
from ingot.embedded.server.kinds.columns import age, of_crd
from ingot.embedded.server.kinds.jsonpath import PathError, compiled
from ingot.embedded.server.kinds.names import generated, label_key_problem, label_problem, subdomain_problem
from ingot.embedded.server.kinds.schema import Shape
from ingot.embedded.server.kinds.selectors import Selectable, parse
from ingot.embedded.server.writes.apply import structure_of
from ingot.embedded.server.writes.patches import json_patched, merged
from ingot.embedded.server.writes.strategic import strategically_merged

# Selectors


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("a=1", {"a": "1"}, True),
        ("a = 1", {"a": "1"}, True),
        ("a=1", {"a": "2"}, False),
        ("a=", {"a": ""}, True),
        ("a==", {"a": ""}, True),
        ("a!=1", {}, True),
        ("a in (1,2)", {"a": "2"}, True),
        ("a in (1,2),b", {"a": "2"}, False),
        ("a notin (1)", {"a": "1"}, False),
        ("!a", {"a": "1"}, False),
        ("example.com/a=1", {"example.com/a": "1"}, True),
        ("a>5", {"a": "6"}, True),
        ("a>5", {"a": "x"}, False),
        ("a<5", {}, False),
    ],
)
def test_label_selectors_decide(text: str, labels: dict[str, str], matches: bool) -> None:
    assert parse(text, "", known_fields=frozenset()).matches(Selectable(labels, {})) is matches


@pytest.mark.parametrize("text", ["a=b=c", "a in 1", "(a)", "a b", "a>x", "a=b c", "/a", "a" * 64])
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse(text, "", known_fields=frozenset())


def test_field_selectors_know_their_fields_and_unescape_values() -> None:
    selector = parse("", r"type=a\=b,metadata.name!=x", known_fields=frozenset({"type", "metadata.name"}))
    assert selector.matches(Selectable({}, {"type": "a=b", "metadata.name": "y"}))
    assert not selector.matches(Selectable({}, {"type": "a=b", "metadata.name": "x"}))


# Patches

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abc"), json_values, max_size=3)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_follow_the_examples_of_rfc_7386(target: Any, patch: Any, result: Any) -> None:
    assert merged(target, patch) == result


@given(documents, documents)
def test_a_merge_patch_applied_twice_is_as_good_as_once_and_changes_nothing_it_was_given(
    target: Any, patch: Any
) -> None:
    before = copy.deepcopy((target, patch))
    once = merged(target, patch)
    assert merged(once, patch) == once
    assert (target, patch) == before


@given(
    documents,
    st.lists(
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "remove", "copy", "move", "test", "x"]),
                "path": st.sampled_from(["", "/a", "/a/b", "/c/0", "a", "/-"]),
                "from": st.sampled_from(["/a", "/b", "x"]),
                "value": json_values,
            }
        ),
        max_size=4,
    ),
)
def test_any_json_patch_gives_an_object_or_a_refusal(target: Any, operations: Any) -> None:
    before = copy.deepcopy(target)
    try:
        made = json_patched(target, operations)
    except Refused:
        made = {}
    assert isinstance(made, dict)
    assert target == before


def test_copies_of_copies_cannot_fill_the_memory() -> None:
    bomb = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(60)]
    with pytest.raises(Refused) as refused:
        json_patched({"a": ["x" * 1000]}, bomb)
    assert refused.value.code == 413


def test_a_failed_test_does_not_tell_what_was_there() -> None:
    with pytest.raises(Refused) as refused:
        json_patched({"data": {"p": "hidden"}}, [{"op": "test", "path": "/data/p", "value": "guess"}])
    assert "hidden" not in refused.value.message


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"data": {"a": "1"}}, {"data": {"b": "2"}}, {"data": {"a": "1", "b": "2"}}),
        ({"data": {"a": "1"}}, {"data": {"$patch": "replace", "b": "2"}}, {"data": {"b": "2"}}),
        ({"data": {"a": "1", "b": "2"}}, {"data": {"$retainKeys": ["b"], "b": "3"}}, {"data": {"b": "3"}}),
        ({"data": {"a": "1"}}, {"data": {"a": None}}, {"data": {}}),
        (
            {"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}]}},
            {"metadata": {"ownerReferences": [{"uid": "2", "$patch": "delete"}, {"uid": "1", "name": "c"}]}},
            {"metadata": {"ownerReferences": [{"uid": "1", "name": "c"}]}},
        ),
        (
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$setElementOrder/finalizers": ["b", "c"], "finalizers": ["c"]}},
            {"metadata": {"finalizers": ["a", "b", "c"]}},
        ),
        ({"spec": {"list": [1, 2]}}, {"spec": {"list": [3]}}, {"spec": {"list": [3]}}),
    ],
)
def test_strategic_patches(target: Any, patch: Any, result: Any) -> None:
    assert strategically_merged(target, patch, structure_of({})) == result


# Schemas

SHAPE = Shape(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 9, "exclusiveMaximum": True},
                    "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
                    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 4},
                    "port": {"x-kubernetes-int-or-string": True},
                    "maybe": {"type": "string", "nullable": True},
                    "count": {"type": "integer", "format": "int32"},
                    "when": {"type": "string", "format": "date-time"},
                    "nested": {
                        "type": "object",
                        "default": {},
                        "properties": {"deep": {"type": "boolean", "default": True}},
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "map": {
                        "type": "object",
                        "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}},
                    },
                    "items": {
                        "type": "array",
                        "items": {"type": "object", "properties": {"x": {"type": "string"}}},
                    },
                },
            }
        },
    }
)


def test_unknown_fields_are_cut_out_wherever_they_are_and_named() -> None:
    document = {
        "metadata": {"anything": 1},
        "other": 1,
        "spec": {
            "size": 1,
            "x": 1,
            "free": {"x": 1},
            "map": {"k": {"x": "1", "y": 1}},
            "items": [{"x": "1"}, {"z": 1}],
        },
    }
    assert SHAPE.conform(document) == ["other", "spec.x", "spec.map.k.y", "spec.items[1].z"]
    assert document["spec"]["free"] == {"x": 1}
    assert document["spec"]["items"] == [{"x": "1"}, {}]
    assert document["metadata"] == {"anything": 1}


def test_defaults_are_filled_in_at_every_depth_and_never_shared() -> None:
    first, second = {"spec": {"size": 1}}, {"spec": {"size": 1}}
    SHAPE.conform(first)
    SHAPE.conform(second)
    assert first["spec"] == {"size": 1, "mode": "slow", "nested": {"deep": True}}
    assert first["spec"]["nested"] is not second["spec"]["nested"]


def test_nulls_are_dropped_where_they_may_not_be_and_then_defaulted() -> None:
    document: dict[str, Any] = {"spec": {"size": 1, "mode": None, "name": None, "maybe": None}}
    SHAPE.conform(document)
    assert document["spec"] == {"size": 1, "mode": "slow", "maybe": None, "nested": {"deep": True}}
    assert SHAPE.problems(document) == []


@pytest.mark.parametrize(
    ("spec", "field", "reason", "words"),
    [
        ({}, "spec.size", "FieldValueRequired", "Required value"),
        ({"size": 0}, "spec.size", "FieldValueInvalid", "greater than or equal to 1"),
        ({"size": 9}, "spec.size", "FieldValueInvalid", "9"),
        ({"size": "1"}, "spec.size", "FieldValueTypeInvalid", "must be of type integer"),
        ({"size": 1, "mode": "x"}, "spec.mode", "FieldValueNotSupported", 'supported values: "fast", "slow"'),
        ({"size": 1, "name": "A"}, "spec.name", "FieldValueInvalid", "should match '^[a-z]+$'"),
        ({"size": 1, "name": "abcde"}, "spec.name", "FieldValueInvalid", "at most 4 chars"),
        ({"size": 1, "port": 1.5}, "spec.port", "FieldValueTypeInvalid", "must be of type"),
        ({"size": 1, "count": 2**31}, "spec.count", "FieldValueInvalid", "less than or equal to"),
        ({"size": 1, "when": "yesterday"}, "spec.when", "FieldValueInvalid", "date-time"),
        ({"size": 1, "items": [{"x": 1}]}, "spec.items[0].x", "FieldValueTypeInvalid", "string"),
        ("text", "spec", "FieldValueTypeInvalid", "must be of type object"),
    ],
)
def test_problems_name_field_reason_and_expectation(spec: Any, field: str, reason: str, words: str) -> None:
    (cause,) = SHAPE.problems({"spec": spec})
    assert (cause.field, cause.reason) == (field, reason)
    assert words in cause.message


@given(json_values)
def test_whatever_is_sent_conforming_and_checking_never_fail(value: Any) -> None:
    document = {"spec": value}
    SHAPE.conform(document)
    SHAPE.problems(document)
    assert SHAPE.conform(document) == []


# Paths and columns


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", ["x"]),
        ("{.a.b}", ["x"]),
        (".missing.b", []),
        (".list[0].t", ["one"]),
        (".list[-1].t", ["two"]),
        (".list[*].t", ["one", "two"]),
        ('.list[?(@.t=="two")].v', [2]),
        (".list[?(@.t!='two')].v", [1]),
        (r".map.example\.com/x", ["y"]),
        ("['map']['example.com/x']", ["y"]),
        (r".map['example\.com/x']", ["y"]),
    ],
)
def test_json_paths(path: str, found: list[Any]) -> None:
    document = {
        "a": {"b": "x"},
        "list": [{"t": "one", "v": 1}, {"t": "two", "v": 2}],
        "map": {"example.com/x": "y"},
    }
    assert compiled(path)(document) == found


def test_a_path_beyond_us_is_an_error_and_not_a_wrong_answer() -> None:
    with pytest.raises(PathError):
        compiled(".a[?(@.b < 3)]")


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (timedelta(seconds=5), "5s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2, seconds=5), "2m5s"),
        (timedelta(minutes=5), "5m"),
        (timedelta(minutes=90), "90m"),
        (timedelta(hours=4, minutes=10), "4h10m"),
        (timedelta(hours=30), "30h"),
        (timedelta(days=3, hours=2), "3d2h"),
        (timedelta(days=400), "400d"),
        (timedelta(days=800), "2y70d"),
    ],
)
def test_ages_are_short(ago: timedelta, shown: str) -> None:
    since = datetime.now(UTC) - ago - timedelta(milliseconds=300)
    assert age(since.isoformat()) == shown


def test_cells_are_read_by_type() -> None:
    columns = of_crd(
        [
            {"name": "Text", "type": "string", "jsonPath": ".a"},
            {"name": "Flag", "type": "boolean", "jsonPath": ".b"},
            {"name": "Number", "type": "integer", "jsonPath": ".c"},
            {"name": "Wrong", "type": "integer", "jsonPath": ".a"},
            {"name": "Nothing", "type": "string", "jsonPath": ".z"},
            {"name": "Many", "type": "string", "jsonPath": ".l[*]"},
        ]
    )
    document = {"metadata": {"name": "n"}, "a": "x", "b": True, "c": 3, "l": [1, 2]}
    assert [column.read(document) for column in columns] == ["n", "x", True, 3, None, None, "1,2"]


# Names


@pytest.mark.parametrize("name", ["a", "a.b", "a-b.c1", "1", "a" * 253])
def test_names(name: str) -> None:
    assert subdomain_problem(name) == ""


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a.", "a..b", "a/b", "../x", "a\n", "a" * 254, "ä"])
def test_no_names(name: str) -> None:
    assert subdomain_problem(name)
    assert label_problem(name)


@pytest.mark.parametrize("key", ["a b", "/a", "a/", "A.b/c d", "x/y/z", ""])
def test_no_label_keys(key: str) -> None:
    assert label_key_problem(key)


def test_a_generated_name_fits() -> None:
    name = generated("a" * 300, lambda _: False)
    assert len(name) == 63
    assert subdomain_problem(name) == ""


def test_a_generated_name_that_is_taken_is_not_given() -> None:
    seen: list[str] = []

    def is_taken(name: str) -> bool:
        seen.append(name)
        return len(seen) < 4

    assert generated("a-", is_taken) == seen[3]
    assert len(set(seen)) == 4


# Protobuf


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3, value])
    assert len(value) < 128
    return bytes([(number << 3) | 2, len(value)]) + value


def unknown(api_version: bytes, kind: bytes, raw: bytes) -> bytes:
    return (
        b"k8s\x00"
        + field(1, field(1, api_version) + field(2, kind))
        + field(2, raw)
        + field(3, b"")
        + field(4, b"")
    )


def test_a_secret_in_protobuf_is_the_secret_it_would_be_in_json() -> None:
    metadata = (
        field(1, b"s") + field(3, b"") + field(11, field(1, b"k") + field(2, b"v")) + field(14, b"x.y/z")
    )
    body = unknown(
        b"v1",
        b"Secret",
        field(1, metadata) + field(2, field(1, b"a") + field(2, b"\x00\xff")) + field(3, b"t") + field(5, 1),
    )
    assert protobuf.decoded(body) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "labels": {"k": "v"}, "finalizers": ["x.y/z"]},
        "data": {"a": "AP8="},
        "type": "t",
        "immutable": True,
    }


def test_a_kind_that_is_not_read_in_protobuf_is_refused_with_advice() -> None:
    with pytest.raises(Refused, match="send it as application/json"):
        protobuf.decoded(unknown(b"metal3.io/v1alpha1", b"BareMetalHost", b""))


@given(st.binary(max_size=60))
def test_no_bytes_bring_the_protobuf_reader_down(data: bytes) -> None:
    for body in (data, b"k8s\x00" + data, unknown(b"v1", b"Namespace", data)):
        code = 0
        try:
            protobuf.decoded(body)
        except Refused as refused:
            code = refused.code
        assert code in (0, 400, 415)
