"""From annotated structs to structural schemas."""

from __future__ import annotations

import enum
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest

from ingot.api.meta import Model
from ingot.api.schema import ATOMIC_MAP, IntOrString, JsonObject, doc, map_list, part_named, structural


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Wheel(Model):
    size_inches: Annotated[int, doc("Its size.", minimum=1)]
    tyre: Annotated[str, doc("What is on it.", required=True)] = ""
    spare: Annotated[bool, doc("Whether it is in use.", default=False)] = False


class Cart(Model):
    colour: Annotated[Colour | None, doc("Its colour.")] = None
    built: Annotated[datetime | None, doc("When it was built.", nullable=True)] = None
    wheels: Annotated[list[Wheel], doc("What it rolls on.", **map_list("tyre"))] = msgspec.field(
        default_factory=list
    )
    load: Annotated[msgspec.Raw | msgspec.UnsetType, doc("What is on it.", schema_of=Wheel, **ATOMIC_MAP)] = (
        msgspec.UNSET
    )


INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


@pytest.mark.parametrize(
    ("type_", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["z", "a"], {"type": "string", "enum": ["z", "a"]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (int | None, {"type": "integer"}),
        (IntOrString, INT_OR_STRING),
        (IntOrString | None, INT_OR_STRING),
        (JsonObject, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    ],
)
def test_a_plain_type_has_a_schema(type_: Any, schema: Any) -> None:
    assert structural(type_) == schema


WHEEL = {
    "type": "object",
    "required": ["sizeInches", "tyre"],
    "properties": {
        "sizeInches": {"type": "integer", "minimum": 1, "description": "Its size."},
        "spare": {"type": "boolean", "default": False, "description": "Whether it is in use."},
        "tyre": {"type": "string", "description": "What is on it."},
    },
}


def test_a_struct_becomes_an_object_with_its_words_and_limits() -> None:
    assert structural(Wheel) == WHEEL


def test_structs_within_structs_are_written_out() -> None:
    assert structural(Cart) == {
        "type": "object",
        "properties": {
            "built": {
                "type": "string",
                "format": "date-time",
                "nullable": True,
                "description": "When it was built.",
            },
            "colour": {"type": "string", "enum": ["red", "blue"], "description": "Its colour."},
            "load": WHEEL | {"description": "What is on it.", "x-kubernetes-map-type": "atomic"},
            "wheels": {
                "type": "array",
                "items": WHEEL,
                "description": "What it rolls on.",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["tyre"],
            },
        },
    }


def test_a_part_of_another_api_is_kept_whole_and_has_a_name() -> None:
    assert structural(Annotated[JsonObject, part_named("A wheel.", name="Its name.")]) == {
        "type": "object",
        "description": "A wheel.",
        "properties": {"name": {"type": "string", "description": "Its name."}},
        "required": ["name"],
        "x-kubernetes-preserve-unknown-fields": True,
    }


def test_a_struct_without_fields_is_an_object_that_nothing_is_said_of() -> None:
    class Empty(Model):
        """Nothing."""

    assert structural(Empty) == {"type": "object"}


def test_limits_are_the_servers_to_enforce_and_do_not_make_an_object_unreadable() -> None:
    assert msgspec.json.decode(b'{"sizeInches": 0}', type=Wheel).size_inches == 0


@pytest.mark.parametrize("type_", [int | bool, bytes, object])
def test_a_type_that_a_structural_schema_cannot_express_is_an_error_of_ours(type_: Any) -> None:
    with pytest.raises(TypeError):
        structural(type_)
