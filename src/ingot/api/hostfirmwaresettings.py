"""HostFirmwareSettings: the BIOS settings of one host, as they are and as they are to be.

Belongs to the host of the same namespace and name. What may be set, and to what, is in the FirmwareSchema that the status names;
`problems_with_settings` is that comparison.

`status.settings` has hundreds of entries and is rarely read, so it stays undecoded, as a host's hardware does: `present()`
decodes it, and whoever keeps the object for long keeps a `compact()` one.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Final

import msgspec

from ingot.api.definition import Definition
from ingot.api.firmwareschema import SettingSchema
from ingot.api.meta import Condition, Model, Object, Resource
from ingot.api.schema import IntOrString, doc, map_list

_NOTHING: Final = msgspec.Raw(b"{}")
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")


class ConditionType(enum.StrEnum):
    CHANGE_DETECTED = "ChangeDetected"
    VALID = "Valid"


class ConditionReason(enum.StrEnum):
    SUCCESS = "Success"
    CONFIGURATION_ERROR = "ConfigurationError"


class SchemaReference(Model):
    name: Annotated[str, doc("Name of the FirmwareSchema.", required=True)] = ""
    namespace: Annotated[str, doc("Its namespace.", required=True)] = ""


class HostFirmwareSettingsSpec(Model):
    """What is wanted of the firmware."""

    settings: Annotated[
        dict[str, IntOrString],
        doc(
            "Settings to change, under the names that status.settings has. Those that are not named stay as they are. "
            "Applied while the host is prepared, or at a reboot if its HostUpdatePolicy says so.",
            required=True,
        ),
    ] = msgspec.field(default_factory=dict)


class HostFirmwareSettingsStatus(Model):
    """What the firmware says."""

    conditions: Annotated[
        list[Condition],
        doc(
            "`ChangeDetected`: something is wanted that is not so yet. `Valid`: all that is wanted can be set.",
            **map_list("type"),
        ),
    ] = msgspec.field(default_factory=list)
    last_updated: Annotated[datetime | None, doc("When this status was last written.")] = None
    schema: Annotated[
        SchemaReference | None, doc("The FirmwareSchema that says what the settings can be.")
    ] = None
    settings: Annotated[
        msgspec.Raw,
        doc(
            "Every setting as the firmware reports it, passwords left out.",
            required=True,
            schema_of=dict[str, str],
        ),
    ] = _NOTHING


class HostFirmwareSettings(Object):
    """The firmware settings of one host."""

    spec: Annotated[HostFirmwareSettingsSpec, doc("What is wanted of the firmware.")] = msgspec.field(
        default_factory=HostFirmwareSettingsSpec
    )
    status: Annotated[HostFirmwareSettingsStatus, doc("What the firmware says.")] = msgspec.field(
        default_factory=HostFirmwareSettingsStatus
    )

    def present(self) -> dict[str, str]:
        """Every setting as the firmware last reported it."""
        return msgspec.json.decode(self.status.settings, type=dict[str, str] | None) or {}

    def compact(self) -> HostFirmwareSettings:
        """The same object, holding on to no more bytes than its own."""
        status = msgspec.structs.replace(self.status, settings=self.status.settings.copy())
        return msgspec.structs.replace(self, status=status)


def is_secret(setting: str) -> bool:
    """Settings with such a name are neither shown nor set."""
    return "Password" in setting


def problems_with_settings(
    wanted: Mapping[str, IntOrString], *, present: Mapping[str, str], schema: Mapping[str, SettingSchema]
) -> Iterator[str]:
    """Why a setting cannot be set, a sentence each. `present` is what the firmware reports now."""
    for name, value in wanted.items():
        if problem := _problem(name, str(value), present, schema):
            yield f"setting {name}: {problem}"


def _problem(
    name: str, value: str, present: Mapping[str, str], schema: Mapping[str, SettingSchema]
) -> str | None:
    if is_secret(name):
        return "passwords cannot be set here."
    if name not in present or name not in schema:
        return "the firmware of this host has no such setting; those it has are in status.settings."
    setting = schema[name]
    if setting.read_only:
        return "the firmware does not allow it to be changed."
    match setting.attribute_type:
        case "Enumeration" if value not in setting.allowable_values:
            return f"{value!r} is not one of {', '.join(map(repr, setting.allowable_values))}."
        case "Integer":
            return _number_problem(value, setting)
        case "String":
            return _length_problem(value, setting)
        case "Boolean" if value not in ("true", "false"):
            return f"{value!r} is neither 'true' nor 'false'."
        case "Password":
            return "passwords cannot be set here."
    return None


def _number_problem(value: str, setting: SettingSchema) -> str | None:
    if not _WHOLE_NUMBER.fullmatch(value):
        return f"{value!r} is not a whole number."
    number = int(value)
    if setting.lower_bound is not None and number < setting.lower_bound:
        return f"{number} is less than {setting.lower_bound}."
    if setting.upper_bound is not None and number > setting.upper_bound:
        return f"{number} is more than {setting.upper_bound}."
    return None


def _length_problem(value: str, setting: SettingSchema) -> str | None:
    if setting.min_length is not None and len(value) < setting.min_length:
        return f"{value!r} is shorter than {setting.min_length} characters."
    if setting.max_length is not None and len(value) > setting.max_length:
        return f"{value!r} is longer than {setting.max_length} characters."
    return None


HOST_FIRMWARE_SETTINGS: Final = Resource(
    group="metal3.io",
    version="v1alpha1",
    kind="HostFirmwareSettings",
    plural="hostfirmwaresettings",
    type=HostFirmwareSettings,
)

DEFINITION: Final = Definition(
    resource=HOST_FIRMWARE_SETTINGS,
    description="The firmware settings of the BareMetalHost of the same name: how they are, and how they are to be.",
    short_names=("hfs",),
    columns=(),
)
