"""FirmwareSchema: which firmware settings a model of server has, and which values each can take.

Made from what the management controller says. Hosts with the same firmware share one, so it is named by its content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

import msgspec

from ingot.api.definition import Definition
from ingot.api.meta import Model, Object, Resource
from ingot.api.schema import doc

AttributeType = Literal["Enumeration", "String", "Integer", "Boolean", "Password"]


# Unlike everything else in the API, these names are written with underscores.
class SettingSchema(Model, rename="lower"):
    """What one setting can be."""

    allowable_values: Annotated[
        list[str], doc("The values that an Enumeration can take. Others are refused.")
    ] = msgspec.field(default_factory=list)
    attribute_type: Annotated[
        AttributeType | None, doc("What sort of value it is; anything is accepted when absent.")
    ] = None
    lower_bound: Annotated[int | None, doc("Smallest value of an Integer.")] = None
    max_length: Annotated[int | None, doc("Most characters of a String.")] = None
    min_length: Annotated[int | None, doc("Fewest characters of a String.")] = None
    read_only: Annotated[bool | None, doc("Whether the setting can be read and not be set.")] = None
    unique: Annotated[
        bool | None, doc("Whether its value belongs to this one machine, like a serial number.")
    ] = None
    upper_bound: Annotated[int | None, doc("Largest value of an Integer.")] = None


class FirmwareSchemaSpec(Model):
    """The settings of a firmware."""

    hardware_model: Annotated[str, doc("The model of server that the schema was read from.")] = ""
    hardware_vendor: Annotated[str, doc("Who made that server.")] = ""
    schema: Annotated[
        dict[str, SettingSchema],
        doc("What each setting can be, under the name that the firmware has for it.", required=True),
    ] = msgspec.field(default_factory=dict)


class FirmwareSchema(Object):
    """The firmware settings that some servers have in common."""

    spec: Annotated[FirmwareSchemaSpec, doc("The settings and what they can be.")] = msgspec.field(
        default_factory=FirmwareSchemaSpec
    )


def schema_name(schema: Mapping[str, SettingSchema]) -> str:
    """What the schema with this content is called; the same as elsewhere in Metal3, so that hosts can move.

    A digest of all the words in it, in the order of their bytes, written as Go writes a list of strings.
    """
    words = sorted((word for item in schema.items() for word in _words(*item)), key=str.encode)
    digest = hashlib.sha256(f"[{' '.join(words)}]".encode()).hexdigest()
    return f"schema-{digest[:8]}"


def _words(name: str, setting: SettingSchema) -> Iterator[str]:
    yield name
    # A setting without a type counts with an empty word.
    yield setting.attribute_type or ""
    yield from setting.allowable_values
    for bound in (setting.lower_bound, setting.upper_bound, setting.min_length, setting.max_length):
        if bound is not None:
            yield str(bound)
    if setting.read_only is not None:
        yield "true" if setting.read_only else "false"


FIRMWARE_SCHEMAS: Final = Resource(
    group="metal3.io",
    version="v1alpha1",
    kind="FirmwareSchema",
    plural="firmwareschemas",
    type=FirmwareSchema,
)

DEFINITION: Final = Definition(
    resource=FIRMWARE_SCHEMAS,
    description="The firmware settings that servers of one model have, and the values that each can take.",
    columns=(),
    has_status=False,
)
