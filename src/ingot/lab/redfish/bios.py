"""The BIOS: attributes, settings that the next boot applies, and the reset to the factory's."""

from __future__ import annotations

from typing import Final

from ingot.lab.components import ConfigureBios, begin
from ingot.lab.redfish.answers import Answer, Document, Refusal, link
from ingot.lab.redfish.bios_attributes import REGISTRY, attributes, values
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.system import SYSTEM
from ingot.lab.redfish.tasks import accepted

_APPLY_TIME: Final = "@Redfish.SettingsApplyTime"


def add(table: Table) -> None:
    table.show(f"{SYSTEM}/Bios", _bios)
    table.show(f"{SYSTEM}/Bios/Settings", _settings)
    table.act("PATCH", f"{SYSTEM}/Bios/Settings", _patch)
    table.act("POST", f"{SYSTEM}/Bios/Actions/Bios.ResetBios", _reset)


def _bios(call: Call) -> Document:
    server = call.server
    here = f"{server.system}/Bios"
    return {
        "@odata.id": here,
        "@odata.type": "#Bios.v1_2_1.Bios",
        "Id": "Bios",
        "Name": "BIOS",
        "AttributeRegistry": REGISTRY,
        "Attributes": values(server.profile, server.plate, server.parts.bios),
        "ResetBiosToDefaultsPending": server.parts.bios_reset,
        "@Redfish.Settings": {
            "@odata.type": "#Settings.v1_3_5.Settings",
            "SettingsObject": link(f"{here}/Settings"),
            "SupportedApplyTimes": ["OnReset"],
            "Messages": [],
        },
        "Actions": {"#Bios.ResetBios": {"target": f"{here}/Actions/Bios.ResetBios"}},
    }


def _settings(call: Call) -> Document:
    return {
        "@odata.id": f"{call.server.system}/Bios/Settings",
        "@odata.type": "#Bios.v1_2_1.Bios",
        "Id": "Settings",
        "Name": "BIOS settings of the next boot",
        "AttributeRegistry": REGISTRY,
        "Attributes": dict(call.server.parts.bios_pending),
    }


async def _patch(call: Call) -> Answer:
    server = call.server
    wanted = call.body.get("Attributes")
    if not isinstance(wanted, dict):
        raise Refusal(400, "PropertyMissing", "Attributes must be given.", args=["Attributes"])
    _check_apply_time(call.body.get(_APPLY_TIME))
    known = attributes(server.profile)
    for name, value in wanted.items():
        if name not in known:
            raise Refusal(
                400, "PropertyUnknown", f"The BIOS has no attribute {name}.", related=[f"#/Attributes/{name}"]
            )
        if fault := known[name].fault(value):
            raise Refusal(
                400, "PropertyValueNotInList", f"{fault}; it was {value!r}.", related=[f"#/Attributes/{name}"]
            )
    server.parts.bios_pending.update(wanted)
    server.chassis.note(f"BIOS settings for the next boot: {', '.join(wanted)}")
    if server.profile.bios_by_task:
        task = begin(
            server.parts,
            ConfigureBios(),
            "BIOS configuration",
            prefix=server.profile.task_prefix,
            state="Pending",
        )
        await server.save()
        return accepted(server, task)
    await server.save()
    return Answer(status=200, document=_settings(call))


def _check_apply_time(wanted: object) -> None:
    time = wanted.get("ApplyTime") if isinstance(wanted, dict) else None
    if wanted is not None and time != "OnReset":
        raise Refusal(
            400,
            "PropertyValueNotInList",
            f"BIOS settings are applied OnReset only, not {time!r}.",
            args=[str(time)],
        )


async def _reset(call: Call) -> Answer:
    parts = call.server.parts
    parts.bios_reset, parts.bios_pending = True, {}
    call.server.chassis.note("the BIOS is reset to the factory's settings at the next boot")
    await call.server.save()
    return Answer(status=200, document={})
