"""The update service: firmware by a URL that the BMC fetches, and what is installed now."""

from __future__ import annotations

from typing import Final

from ingot.lab.components import UpdateFirmware, begin
from ingot.lab.redfish.answers import Answer, Document, Refusal, collection, link, missing
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.server import BASE, Server
from ingot.lab.redfish.system import HEALTHY
from ingot.lab.redfish.tasks import accepted

SERVICE: Final = f"{BASE}/UpdateService"
INVENTORY: Final = f"{SERVICE}/FirmwareInventory"
_SIMPLE: Final = f"{SERVICE}/Actions/UpdateService.SimpleUpdate"
_NAMES: Final = {"BIOS": "bios", "BMC": "bmc", "NIC": "nic"}


def add(table: Table) -> None:
    table.show(SERVICE, _service)
    table.act("POST", _SIMPLE, _simple_update)
    table.show(
        INVENTORY,
        lambda _: collection(INVENTORY, "Firmware Inventory", [f"{INVENTORY}/{one}" for one in _NAMES]),
    )
    table.show(f"{INVENTORY}/{{component}}", _component)


def _service(_: Call) -> Document:
    return {
        "@odata.id": SERVICE,
        "@odata.type": "#UpdateService.v1_14_0.UpdateService",
        "Id": "UpdateService",
        "Name": "Update Service",
        "ServiceEnabled": True,
        "FirmwareInventory": link(INVENTORY),
        "Actions": {
            "#UpdateService.SimpleUpdate": {
                "target": _SIMPLE,
                "TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS"],
            }
        },
        "Status": HEALTHY,
    }


def version(server: Server, component: str) -> str:
    factory = {
        "bios": server.profile.bios_version,
        "bmc": server.profile.bmc_version,
        "nic": server.profile.nic_version,
    }
    return server.parts.versions.get(component, factory[component])


def _component(call: Call) -> Document:
    name = call.ids["component"]
    if name not in _NAMES:
        raise missing(call.path)
    return {
        "@odata.id": f"{INVENTORY}/{name}",
        "@odata.type": "#SoftwareInventory.v1_10_0.SoftwareInventory",
        "Id": name,
        "Name": name,
        "Version": version(call.server, _NAMES[name]),
        "Updateable": True,
        "Manufacturer": call.server.profile.manufacturer,
        "Status": HEALTHY,
    }


async def _simple_update(call: Call) -> Answer:
    server, url = call.server, call.body.get("ImageURI")
    if not isinstance(url, str) or not url.startswith(("https://", "http://")):
        raise Refusal(
            400,
            "ActionParameterValueFormatError",
            "ImageURI must be an http or https URL.",
            args=["ImageURI"],
        )
    if call.body.get("TransferProtocol", "HTTP") not in ("HTTP", "HTTPS"):
        raise Refusal(400, "ActionParameterValueNotInList", "TransferProtocol must be HTTP or HTTPS.")
    if any(task.live and isinstance(task.work, UpdateFirmware) for task in server.parts.tasks):
        raise Refusal(
            503, "ServiceTemporarilyUnavailable", "An update is under way; only one at a time can be."
        )
    work = UpdateFirmware(url=url, component=_target(call.body.get("Targets")))
    task = begin(server.parts, work, "Firmware update", prefix=server.profile.task_prefix, state="New")
    server.chassis.note(f"firmware update by task {task.id}")
    await server.save()
    server.workshop.take(task)
    return accepted(server, task)


def _target(targets: object) -> str:
    """The component that the client names; empty when it leaves that to the image."""
    if targets is None:
        return ""
    paths = targets if isinstance(targets, list) else []
    for path in paths:
        name = str(path).removeprefix(f"{INVENTORY}/")
        if name in _NAMES:
            return _NAMES[name]
    raise Refusal(400, "ActionParameterValueNotInList", f"Targets must be members of {INVENTORY}.")
