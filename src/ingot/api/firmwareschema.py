"""FirmwareSchema: which firmware settings a model of server has, and which values each can take.

Made from what the management controller says. Hosts with the same firmware share one, so it is named by its content.
"""

from __future__ import annotations

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
