"""The manager: the BMC speaks of itself, and restarts when it is told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from ingot.lab.redfish import dell
from ingot.lab.redfish.answers import Answer, Document, Refusal, collection, link
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.media import path_of
from ingot.lab.redfish.server import BASE
from ingot.lab.redfish.system import HEALTHY

MANAGER: Final = f"{BASE}/Managers/{{manager}}"
_YEARS: Final = range(1970, 2101)
"""What the clock can be set to; it goes on from there, and must not come to the end of what a date can say."""
_RESETS: Final = ("GracefulRestart", "ForceRestart")


def add(table: Table) -> None:
    table.show(
        f"{BASE}/Managers", lambda call: collection(f"{BASE}/Managers", "Managers", [call.server.manager])
    )
    table.show(MANAGER, _manager, tag=lambda call: {"clock": call.server.parts.clock_seconds})
    table.act("PATCH", MANAGER, _set_clock)
    table.act("POST", f"{MANAGER}/Actions/Manager.Reset", _reset)


def _manager(call: Call) -> Document:
    server, profile = call.server, call.server.profile
    document: Document = {
        "@odata.id": server.manager,
        "@odata.type": "#Manager.v1_19_0.Manager",
        "Id": profile.manager,
        "Name": "Manager",
        "ManagerType": "BMC",
        "FirmwareVersion": server.parts.versions.get("bmc", profile.bmc_version),
        "Model": profile.bmc_model,
        "UUID": server.plate.system_id,
        "DateTime": (_now() + timedelta(seconds=server.parts.clock_seconds)).isoformat(timespec="seconds"),
        "DateTimeLocalOffset": "+00:00",
        "PowerState": "On",
        "Links": {"ManagerForServers": [link(server.system)], "ManagerForChassis": [link(server.enclosure)]},
        "Actions": {
            "#Manager.Reset": {
                "target": f"{server.manager}/Actions/Manager.Reset",
                "ResetType@Redfish.AllowableValues": list(_RESETS),
            }
        },
        "Status": HEALTHY,
    }
    if not profile.media_of_system:
        document["VirtualMedia"] = link(path_of(server))
    if profile.dell:
        document["Links"]["Oem"] = {"Dell": dell.services(server)}
        document["Actions"]["Oem"] = dell.actions(server)
    return document


def _now() -> datetime:
    return datetime.now(UTC)


async def _set_clock(call: Call) -> Answer:
    given = call.body.get("DateTime")
    try:
        wanted = datetime.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        wanted = None
    if wanted is None or wanted.tzinfo is None:
        raise Refusal(
            400, "PropertyValueFormatError", "DateTime must be a time with an offset.", args=["DateTime"]
        )
    if wanted.year not in _YEARS:
        raise Refusal(
            400,
            "PropertyValueNotInList",
            f"The clock can be set to the years {_YEARS[0]} to {_YEARS[-1]}, not to {wanted.year}.",
            args=["DateTime"],
        )
    call.server.parts.clock_seconds = (wanted - _now()).total_seconds()
    call.server.chassis.note(f"the BMC's clock was set to {wanted.isoformat(timespec='seconds')}")
    await call.server.save()
    return Answer()


async def _reset(call: Call) -> Answer:
    kind = call.body.get("ResetType", "GracefulRestart")
    if kind not in _RESETS:
        raise Refusal(
            400,
            "ActionParameterValueNotInList",
            f"The BMC can be reset by {', '.join(_RESETS)}, not {kind!r}.",
        )
    call.server.workshop.restart_soon()
    return Answer()
