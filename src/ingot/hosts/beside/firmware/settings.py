"""HostFirmwareSettings of a host: how its firmware is set, and what is thought of what is wanted.

The firmware is read when there is a reason to believe that it changed; a changed wish is judged against what was read last. The
status is written in one go, with the schema it names, and only when something in it changed. What cannot be set is told in an
Event once for every change of the wish.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from ingot.api.firmwareschema import FIRMWARE_SCHEMAS, FirmwareSchemaSpec, SettingSchema, schema_name
from ingot.api.hardwaredata import SystemVendor
from ingot.api.hostfirmwaresettings import (
    HOST_FIRMWARE_SETTINGS,
    ConditionType,
    HostFirmwareSettings,
    SchemaReference,
    is_secret,
)
from ingot.api.meta import Condition, Key
from ingot.hosts.beside.firmware.beside import make, own, write_status
from ingot.hosts.beside.firmware.judging import condition, has_newly_failed, is_judged, settings_conditions
from ingot.hosts.host_pass import Pass
from ingot.kube import NotFound
from ingot.provisioner import Busy, FirmwareReport, NotRegistered, Ready

VALIDATION_FAILED: Final = "ValidationFailed"


async def settings_of(p: Pass) -> HostFirmwareSettings:
    """The object beside the host; made where there is none, taken over where somebody made it before."""
    informer = p.tools.companions.firmware_settings
    found = informer.get(p.key)
    if found is None:
        return await make(p, informer, HOST_FIRMWARE_SETTINGS, {"settings": {}})
    return await own(p, informer, HOST_FIRMWARE_SETTINGS, found)


def must_be_read(p: Pass, settings: HostFirmwareSettings) -> bool:
    """Whether nobody knows yet how this firmware is set, or what it can be set to."""
    return not settings.status.conditions or not p.tools.companions.schemas.exists(settings)


async def judge_settings(p: Pass, settings: HostFirmwareSettings) -> None:
    """Judge what is wanted against what was read last, unless that has been done."""
    if not is_judged(settings, settings.status.conditions):
        schema = await _known_schema(p, settings)
        await _write(p, settings, settings.present(), schema=schema, reference=settings.status.schema)


async def read_settings(p: Pass, settings: HostFirmwareSettings) -> Busy | NotRegistered | None:
    """Read the firmware, and judge what is wanted against it."""
    match await p.tools.backend.firmware_settings(p.ref):
        case Ready(report):
            await _keep(p, settings, report)
            return None
        case not_yet:
            return not_yet


async def settings_not_taken(p: Pass) -> None:
    """What was ordered is done, and nothing came of it: the wish counts as a new one, and is ordered when it is tried again.

    Work is named by when its change was detected (`work`), and what was done under a name is not done again.
    """
    settings = await settings_of(p)
    before = settings.status
    after = replace(before, conditions=[_detected_later(one, p.tools.now()) for one in before.conditions])
    informer = p.tools.companions.firmware_settings
    await write_status(p, informer, HOST_FIRMWARE_SETTINGS, settings, old=before, new=after)


async def _keep(p: Pass, settings: HostFirmwareSettings, report: FirmwareReport) -> None:
    told = {
        name: value
        for name, value in report.settings.items()
        if not _is_password(name, report.schema.get(name))
    }
    if not report.schema:
        await _write(p, settings, told, schema={}, reference=None)
        return
    name, spec = schema_name(report.schema), _without_passwords(p, report)
    async with p.tools.companions.schemas.having(Key(p.key.namespace, name), spec) as reference:
        await _write(p, settings, told, schema=report.schema, reference=reference)


def _detected_later(found: Condition, now: datetime) -> Condition:
    if found.type != ConditionType.CHANGE_DETECTED:
        return found
    # Moments are written in whole seconds, and this has to be another one.
    return replace(found, last_transition_time=max(now, found.last_transition_time + timedelta(seconds=1)))


def _is_password(name: str, setting: SettingSchema | None) -> bool:
    return is_secret(name) or (setting is not None and setting.attribute_type == "Password")


def _without_passwords(p: Pass, report: FirmwareReport) -> FirmwareSchemaSpec:
    hardware = p.current.hardware()
    vendor = hardware.system_vendor if hardware is not None else SystemVendor()
    return FirmwareSchemaSpec(
        hardware_vendor=vendor.manufacturer or report.vendor,
        hardware_model=vendor.product_name or report.model,
        schema={name: found for name, found in report.schema.items() if not _is_password(name, found)},
    )


async def _known_schema(p: Pass, settings: HostFirmwareSettings) -> Mapping[str, SettingSchema]:
    reference = settings.status.schema
    if reference is None or not settings.spec.settings:
        return {}
    key = Key(reference.namespace or p.key.namespace, reference.name)
    try:
        return (await p.tools.client.get(FIRMWARE_SCHEMAS, key)).spec.schema
    except NotFound:
        return {}


async def _write(
    p: Pass,
    settings: HostFirmwareSettings,
    present: Mapping[str, str],
    *,
    schema: Mapping[str, SettingSchema],
    reference: SchemaReference | None,
) -> None:
    before = settings.status
    after = replace(
        before,
        settings=msgspec.Raw(msgspec.json.encode(present)),
        schema=reference,
        conditions=settings_conditions(settings, present=present, schema=schema, at=p.tools.now()),
    )
    informer = p.tools.companions.firmware_settings
    await write_status(p, informer, HOST_FIRMWARE_SETTINGS, settings, old=before, new=after)
    if present and has_newly_failed(before.conditions, after.conditions):
        found = condition(after.conditions, ConditionType.VALID)
        p.tools.recorder.record(
            settings,
            type="Warning",
            reason=VALIDATION_FAILED,
            controller="hostfirmwaresettings",
            message=f"Invalid BIOS setting: {found.message if found is not None else ''}",
        )
