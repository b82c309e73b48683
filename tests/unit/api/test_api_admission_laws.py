"""A law of all rules: whatever a user writes gets an answer in words, never an exception."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot.api.admission import check
from ingot.api.crd import all_crds

Json = Any

NASTY = [
    "",
    " ",
    "[",
    "]",
    "file://[",
    "file://h",
    "http://[",
    "http://[::1",
    "http://h:99999/",
    "https://h:x/",
    "oci://",
    "://",
    "10.0.0.0/33",
    "10.0.0.0/-1",
    "::/0",
    "fe80::1%eth0",
    "0.0.0.0/0",
    "255.255.255.255/32",
    "1-2-3",
    "9" * 5000,
    "4094-" + "9" * 400,
    "(?P<",
    "[[a]",
    "a{99999999999}",
    "\x00",
    "\ud800",
    "é",
    "a/b/c",
    "/",
    "-",
    "٣",
    "²",
    "http://u:p@h/p q",
]
TEXT = st.sampled_from(NASTY) | st.text(max_size=20)


def written(schema: Json) -> st.SearchStrategy[Json]:
    """Anything that has the types of the schema, with odd text in it."""
    if schema.get("x-kubernetes-int-or-string"):
        return st.integers() | TEXT
    match schema.get("type"):
        case "object":
            return _written_object(schema)
        case "array":
            return st.lists(written(schema["items"]), max_size=3)
        case "string" if "enum" in schema:
            return st.sampled_from(schema["enum"])
        case "string" if schema.get("format") == "date-time":
            return st.just("2026-01-01T00:00:00Z")
        case "string":
            return TEXT
        case "integer":
            return st.integers(min_value=schema.get("minimum", -5), max_value=schema.get("maximum", 70000))
        case "number":
            return st.floats(allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
    raise AssertionError(f"a type that no schema of ours has: {schema}")


def _written_object(schema: Json) -> st.SearchStrategy[Json]:
    if "additionalProperties" in schema:
        return st.dictionaries(TEXT, written(schema["additionalProperties"]), max_size=2)
    fields = {name: written(sub) for name, sub in schema.get("properties", {}).items()}
    required = {name: fields[name] for name in schema.get("required", ())}
    optional = {name: field for name, field in fields.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional)


def kind_of(definition: Json) -> str:
    return str(definition["spec"]["names"]["kind"])


def with_one_odd_text(schema: Json, odd: str) -> Iterator[Json]:
    """Documents with every field, of which one text is odd, for each text of the schema in turn."""
    match schema.get("type"):
        case "object" if "additionalProperties" in schema:
            yield {odd: plain(schema["additionalProperties"])}
            for value in with_one_odd_text(schema["additionalProperties"], odd):
                yield {"a": value}
        case "object":
            whole = plain(schema)
            for name, sub in schema.get("properties", {}).items():
                for value in with_one_odd_text(sub, odd):
                    yield whole | {name: value}
        case "array":
            for value in with_one_odd_text(schema["items"], odd):
                yield [value]
        case "string" if "enum" not in schema and schema.get("format") != "date-time":
            yield odd


def plain(schema: Json) -> Json:
    """A value with every field that the schema has."""
    match schema.get("type"):
        case "object" if "additionalProperties" in schema:
            return {"a": plain(schema["additionalProperties"])}
        case "object":
            return {name: plain(sub) for name, sub in schema.get("properties", {}).items()}
        case "array":
            return [plain(schema["items"])]
        case "string" if schema.get("format") == "date-time":
            return "2026-01-01T00:00:00Z"
        case "string" if "enum" in schema:
            return schema["enum"][-1]
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("minimum", 1)
    return "a"


KINDS = [(found["spec"]["group"], kind_of(found)) for found in all_crds()]


@cache
def schema_of(kind: str) -> Json:
    definition = next(found for found in all_crds() if kind_of(found) == kind)
    return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


@cache
def specs(kind: str) -> st.SearchStrategy[Json]:
    return written(schema_of(kind))


def assert_answered(group: str, kind: str, new: Json, old: Json | None) -> None:
    for error in check(group, kind, new, old):
        assert error.path
        assert error.message
        assert str(error)


def an_object(spec: Json) -> Json:
    return {"metadata": {"name": "x1", "namespace": "lab"}, "spec": spec}


@pytest.mark.parametrize("odd", NASTY, ids=lambda odd: ascii(odd)[:20])
def test_an_odd_text_in_any_field_gets_an_answer(odd: str) -> None:
    for group, kind in KINDS:
        for spec in with_one_odd_text(schema_of(kind), odd):
            assert_answered(group, kind, an_object(spec), None)


@pytest.mark.parametrize(("group", "kind"), KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_every_object_gets_an_answer(group: str, kind: str, data: st.DataObject) -> None:
    new, old = (an_object(data.draw(specs(kind))) for _ in range(2))
    assert_answered(group, kind, new, None)
    assert_answered(group, kind, new, old)
