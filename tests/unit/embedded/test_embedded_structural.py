"""The rules for schemas inside definitions, one a line: what a field's schema says, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from ingot.api.crd import all_crds
from ingot.embedded.server.kinds.builtins import DEFINITIONS
from ingot.embedded.server.kinds.definitions import rules, structural, words
from ingot.embedded.server.kinds.definitions.versions import problems as version_problems

TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer"}
EITHER = [{"type": "integer"}, {"type": "string"}]
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "required": ["k"], "properties": {"k": TEXT, "v": TEXT}},
}


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def found_in(field: Any) -> list[tuple[str, str]]:
    """What is wrong with a field's schema: path below the field, and the sentence."""
    schema = an_object(spec=an_object(f=field))
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    at = "spec.validation.openAPIV3Schema.properties[spec].properties[f]"
    return [(cause.field.removeprefix(at), cause.message) for cause in version_problems([version], [])]


@pytest.mark.parametrize(
    "field",
    [
        TEXT,
        {"type": "array", "items": WHOLE},
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "additionalProperties": True},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-int-or-string": True, "anyOf": EITHER},
        {"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": EITHER}, {"pattern": "^a"}]},
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        {**an_object(a=TEXT, b=TEXT), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {**an_object(a=TEXT), "not": {"properties": {"a": {"pattern": "^x"}}}},
        {**TEXT, "nullable": True, "enum": ["a", "b"], "default": "a"},
        {**an_object(a=WHOLE), "default": {"a": 1}},
        KEYED,
        {
            "type": "array",
            "x-kubernetes-list-type": "set",
            "items": {**an_object(a=TEXT), "x-kubernetes-map-type": "atomic"},
        },
    ],
)
def test_what_can_be_said_of_a_field_is_taken(field: Any) -> None:
    assert found_in(field) == []


@pytest.mark.parametrize(
    ("field", "where", "sentence"),
    [
        ({}, ".type", "Required value: must not be empty for specified object fields"),
        ({"type": "array", "items": {}}, ".items.type", "must not be empty for specified array items"),
        ({"type": "array"}, ".items", "Required value: must be specified"),
        ({"type": "null"}, ".type", "use nullable as an alternative"),
        ({"type": "text"}, ".type", 'Unsupported value: "text": supported values: "array", "boolean"'),
        ({"type": "array", "items": [TEXT]}, ".items", "must be a schema object and not an array"),
        ({**an_object(a=TEXT), "additionalProperties": TEXT}, ".additionalProperties", "mutual exclusive"),
        ({**TEXT, "$ref": "#/a"}, ".$ref", "Forbidden: $ref is not supported"),
        ({**TEXT, "id": "a"}, ".id", "Forbidden: id is not supported"),
        ({**TEXT, "definitions": {"a": TEXT}}, ".definitions", "Forbidden: definitions is not supported"),
        ({**TEXT, "dependencies": {"a": ["b"]}}, ".dependencies", "dependencies is not supported"),
        ({**TEXT, "patternProperties": {"a": TEXT}}, ".patternProperties", "is not supported"),
        ({**TEXT, "additionalItems": TEXT}, ".additionalItems", "additionalItems is not supported"),
        ({"type": "array", "items": TEXT, "uniqueItems": True}, ".uniqueItems", "becomes quadratic"),
        ({**TEXT, "pattern": "("}, ".pattern", "must be a valid regular expression"),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            ".x-kubernetes-preserve-unknown-fields",
            "must be true or undefined",
        ),
        (
            {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
            ".x-kubernetes-preserve-unknown-fields",
            "must be false if x-kubernetes-int-or-string is true",
        ),
        (
            {**TEXT, "x-kubernetes-embedded-resource": True},
            ".type",
            'Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
        ),
        (
            {"type": "object", "x-kubernetes-embedded-resource": True},
            ".properties",
            "must not be empty if x-kubernetes-embedded-resource is true without",
        ),
        (
            {**an_object(metadata=TEXT), "x-kubernetes-embedded-resource": True},
            ".properties[metadata].type",
            "must be object",
        ),
        # Under a junctor a schema narrows values, and says nothing else.
        ({**WHOLE, "anyOf": [{"type": "integer"}]}, ".anyOf[0].type", "must be empty to be structural"),
        ({**WHOLE, "allOf": [{"default": 0}]}, ".allOf[0].default", "must be undefined to be structural"),
        ({**WHOLE, "not": {"nullable": True}}, ".not.nullable", "must be false to be structural"),
        ({**WHOLE, "oneOf": [{"description": "d"}]}, ".oneOf[0].description", "must be empty"),
        (
            {"x-kubernetes-int-or-string": True, "not": {"anyOf": EITHER}},
            ".not.anyOf[0].type",
            "must be empty to be structural",
        ),
        (
            {"type": "object", "anyOf": [{"properties": {"metadata": {"pattern": "a"}}}]},
            ".anyOf[0].properties[metadata]",
            "must not be specified in a nested context",
        ),
        # Defaults are what the schema allows.
        ({**TEXT, "default": 3}, ".default", "must be of type string"),
        ({**WHOLE, "maximum": 2, "default": 3}, ".default", "should be less than or equal to 2"),
        ({**an_object(a=WHOLE), "default": {"a": "x"}}, ".default.a", "must be of type integer"),
        ({**an_object(a=WHOLE), "default": {"b": 1}}, ".default", "must not have unknown fields"),
        ({"type": "array", "items": {**WHOLE, "default": "x"}}, ".items.default", "must be of type"),
        # Lists and maps.
        ({**TEXT, "x-kubernetes-list-type": "set"}, ".type", "must be array if x-kubernetes-list-type"),
        ({**TEXT, "x-kubernetes-map-type": "atomic"}, ".type", "must be object if x-kubernetes-map-type"),
        (
            {"type": "array", "items": TEXT, "x-kubernetes-list-type": "bag"},
            ".x-kubernetes-list-type",
            'Unsupported value: "bag": supported values: "atomic", "set", "map"',
        ),
        (
            {"type": "object", "x-kubernetes-map-type": "loose"},
            ".x-kubernetes-map-type",
            'supported values: "atomic", "granular"',
        ),
        (
            {"type": "array", "items": TEXT, "x-kubernetes-list-map-keys": ["a"]},
            ".x-kubernetes-list-type",
            "must be map if x-kubernetes-list-map-keys is non-empty",
        ),
        (
            {**KEYED, "x-kubernetes-list-map-keys": []},
            ".x-kubernetes-list-map-keys",
            "must not be empty if x-kubernetes-list-type is map",
        ),
        (
            {**KEYED, "x-kubernetes-list-map-keys": ["k", "x"]},
            ".x-kubernetes-list-map-keys",
            "entries must all be names of item properties",
        ),
        (
            {**KEYED, "x-kubernetes-list-map-keys": ["k", "k"]},
            ".x-kubernetes-list-map-keys",
            "must not contain duplicate entries",
        ),
        ({**KEYED, "items": TEXT}, ".items.type", "must be object if parent array's"),
        ({**KEYED, "items": an_object(k=TEXT)}, ".items.properties[k].default", "must have a default or be"),
        (
            {**KEYED, "items": {**an_object(k=an_object(a=TEXT)), "required": ["k"]}},
            ".items.properties[k].type",
            "must be a scalar type",
        ),
        (
            {**KEYED, "items": {**an_object(k={**TEXT, "nullable": True}), "required": ["k"]}},
            ".items.properties[k].nullable",
            "so it cannot be nullable",
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": {**TEXT, "nullable": True}},
            ".items.nullable",
            "cannot be nullable when x-kubernetes-list-type is set",
        ),
        (
            {"type": "array", "x-kubernetes-list-type": "set", "items": an_object(a=TEXT)},
            ".items.x-kubernetes-map-type",
            "must be atomic as item of a list with x-kubernetes-list-type=set",
        ),
    ],
)
def test_what_cannot_be_said_of_a_field_is_named(field: Any, where: str, sentence: str) -> None:
    found = found_in(field)
    assert [said for at, said in found if at == where and sentence in said], found


@pytest.mark.parametrize(
    ("schema", "where", "sentence"),
    [
        ({"type": "string"}, ".type", "must be object at the root"),
        ({"properties": {"a": TEXT}}, ".type", "must not be empty at the root"),
        ({"type": "object", "additionalProperties": TEXT}, ".additionalProperties", "at the root"),
        (an_object(kind=WHOLE), ".properties[kind].type", "must be string"),
        (an_object(metadata=TEXT), ".properties[metadata].type", "must be object"),
        (an_object(metadata=an_object(labels=TEXT)), ".properties[metadata]", "other than name and"),
        (
            {**an_object(a=TEXT), "anyOf": [{"properties": {"b": {"pattern": "x"}}}]},
            ".properties[b]",
            "because it is defined in .anyOf[0].properties[b]",
        ),
    ],
)
def test_the_root_of_a_schema_has_rules_of_its_own(schema: Any, where: str, sentence: str) -> None:
    found = structural.problems(schema, "")
    assert [said for said in found if said.field == where and sentence in said.message], found


def test_metadata_may_narrow_the_name() -> None:
    schema = an_object(metadata=an_object(name={**TEXT, "pattern": "^a"}))
    assert structural.problems(schema, "") == []


def test_metadata_of_an_object_has_no_defaults() -> None:
    schema = an_object(metadata=an_object(name={**TEXT, "default": "a"}))
    at = ".properties[metadata].properties[name].default"
    assert [(found.field, found.message) for found in words.problems(schema, "")] == [
        (at, "Forbidden: must not be set in top-level metadata")
    ]


def test_what_is_no_word_of_a_schema_is_cut_out_wherever_it_is() -> None:
    schema = {
        **an_object(a={**TEXT, "wordOfMine": 1}, b={"type": "array", "items": {**TEXT, "other": {}}}),
        "allOf": [{"third": True, "required": ["a"]}],
        "nullable": None,
        "uniqueItems": False,
    }
    cut = words.cut_unknown(schema)
    assert sorted(cut) == ["allOf[0].third", "properties.a.wordOfMine", "properties.b.items.other"]
    assert schema == {
        **an_object(a=TEXT, b={"type": "array", "items": TEXT}),
        "allOf": [{"required": ["a"]}],
    }


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("text", "must be a schema"),
        ({"type": 3}, "type must be a string"),
        ({"properties": []}, "properties must be a map of schemas"),
        ({"properties": {"a": "x"}}, "properties[a].must be a schema"),
        ({"required": "a"}, "required must be a list of strings"),
        ({"anyOf": [3]}, "anyOf must be a list of schemas"),
        ({"items": {"maxItems": "many"}}, "items.maxItems must be an integer"),
        ({"nullable": "yes"}, "nullable must be a boolean"),
        ({"maximum": 3.5, "dependencies": {"a": ["b"]}, "additionalProperties": False}, ""),
    ],
)
def test_a_word_with_a_value_of_another_type_is_found(schema: Any, problem: str) -> None:
    assert words.misshapen(schema) == problem


def test_a_schema_that_has_no_bottom_is_refused_before_anybody_falls_into_it() -> None:
    schema: dict[str, Any] = dict(TEXT)
    for _ in range(150):
        schema = an_object(a=schema)
    assert words.misshapen(schema) == "is nested more than 100 levels deep"


@pytest.mark.parametrize("definition", all_crds(), ids=lambda found: found["spec"]["names"]["kind"])
def test_our_own_definitions_would_be_taken(definition: Any) -> None:
    DEFINITIONS.prepare(definition, None)
    assert rules.problems(definition, None) == []
    assert rules.warnings(definition, None) == []
    for version in definition["spec"]["versions"]:
        assert words.misshapen(version["schema"]["openAPIV3Schema"]) == ""
