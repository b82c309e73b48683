"""What only an iDRAC has: the server configuration profile, the job queue, and the services behind Ironic's idrac steps.

The boot device comes as a profile to import, in XML: ServerBoot.1#FirstBootDevice, once or for good.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ingot.lab.components import (
    ExportConfiguration,
    ImportConfiguration,
    Task,
    begin,
    clear_tasks,
    remove_task,
)
from ingot.lab.record import Override
from ingot.lab.redfish import bios_attributes, tasks
from ingot.lab.redfish.answers import Answer, Document, Refusal, collection, link, missing
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.server import BASE, Server
from ingot.lab.redfish.system import SYSTEM, interface_ids

_MANAGER: Final = f"{BASE}/Managers/{{manager}}"
_DELL: Final = f"{_MANAGER}/Oem/Dell"
_IMPORT: Final = "Actions/Oem/EID_674_Manager.ImportSystemConfiguration"
_EXPORT: Final = "Actions/Oem/EID_674_Manager.ExportSystemConfiguration"
_ATTRIBUTE: Final = re.compile(r'<Attribute Name="([^"<>]{1,100})">([^<]{0,1000})</Attribute>')
_BOOT_DEVICES: Final = {"VCD-DVD": "Cd", "VFDD": "Usb", "PXE": "Pxe", "HDD": "Hdd", "Normal": "None"}
_FIRST: Final = "ServerBoot.1#FirstBootDevice"
_ONCE: Final = "ServerBoot.1#BootOnce"
_TARGETS: Final = ("ALL", "IDRAC", "BIOS", "NIC", "RAID")


def add(table: Table) -> None:
    table.act("POST", f"{_MANAGER}/{_IMPORT}", _import)
    table.act("POST", f"{_MANAGER}/{_EXPORT}", _export)
    table.act("GET", f"{_DELL}/Exports/{{task}}", _exported)
    table.show(f"{_DELL}/DellJobService", _job_service)
    table.act("POST", f"{_DELL}/DellJobService/Actions/DellJobService.DeleteJobQueue", _delete_jobs)
    table.show(f"{_DELL}/Jobs", _jobs)
    table.show(f"{_DELL}/Jobs/{{task}}", _job)
    table.show(f"{_DELL}/DellLCService", _lc_service)
    table.act("POST", f"{_DELL}/DellLCService/Actions/DellLCService.GetRemoteServicesAPIStatus", _lc_status)
    table.show(f"{_DELL}/DelliDRACCardService", _card_service)
    table.act("POST", f"{_DELL}/DelliDRACCardService/Actions/DelliDRACCardService.iDRACReset", _card_reset)
    raid = f"{SYSTEM}/Oem/Dell/DellRaidService"
    table.show(raid, _raid_service)
    for action in ("ConvertToRAID", "ConvertToNonRAID", "ClearForeignConfig"):
        table.act("POST", f"{raid}/Actions/DellRaidService.{action}", _nothing_to_do)
    table.show(f"{SYSTEM}/NetworkPorts/Oem/Dell/DellSwitchConnections", _switch_connections)


def services(server: Server) -> Document:
    """Where a manager's own services are."""
    here = f"{server.manager}/Oem/Dell"
    names = ("DellJobService", "DellLCService", "DelliDRACCardService", "Jobs")
    return {name: link(f"{here}/{name}") for name in names}


def actions(server: Server) -> Document:
    return {
        "#OemManager.ImportSystemConfiguration": {
            "target": f"{server.manager}/{_IMPORT}",
            "ShutdownType@Redfish.AllowableValues": ["Graceful", "Forced", "NoReboot"],
        },
        "#OemManager.ExportSystemConfiguration": {
            "target": f"{server.manager}/{_EXPORT}",
            "ExportFormat@Redfish.AllowableValues": ["JSON"],
            "ExportUse@Redfish.AllowableValues": ["Default", "Clone", "Replace"],
            "IncludeInExport@Redfish.AllowableValues": [
                "Default",
                "IncludeReadOnly",
                "IncludePasswordHashValues",
            ],
            "ShareParameters": {"Target@Redfish.AllowableValues": list(_TARGETS)},
        },
    }


async def _import(call: Call) -> Answer:
    """A boot device is in force as soon as the job is there: what Ironic does next is to switch the power."""
    server, buffer = call.server, call.body.get("ImportBuffer")
    if not isinstance(buffer, str) or "<SystemConfiguration" not in buffer:
        raise Refusal(400, "IDRAC.2.8.SYS405", "ImportBuffer must be a <SystemConfiguration> profile.")
    found = dict(_ATTRIBUTE.findall(buffer))
    if _FIRST in found:
        target = _BOOT_DEVICES.get(found[_FIRST])
        if target is None:
            raise Refusal(400, "IDRAC.2.8.SYS405", f"There is no boot device {found[_FIRST]}.")
        once = found.get(_ONCE, "Enabled") == "Enabled"
        mode = server.record.override.mode
        server.record.override = _override(target, once=once, mode=mode)
        server.chassis.note(
            f"boot device by configuration profile: {target}, {'once' if once else 'for good'}"
        )
    task = begin(
        server.parts,
        ImportConfiguration(attributes=found),
        "Import Configuration",
        prefix=server.profile.task_prefix,
    )
    await server.save()
    server.workshop.take(task)
    return tasks.accepted(server, task)


def _override(target: str, *, once: bool, mode: str) -> Override:
    enabled = "Disabled" if target == "None" else "Once" if once else "Continuous"
    values = {"target": target, "enabled": enabled, "mode": mode}
    return msgspec.convert(values, Override)


async def _export(call: Call) -> Answer:
    server, share = call.server, call.body.get("ShareParameters")
    wanted = share.get("Target") if isinstance(share, dict) else None
    target = wanted[0] if isinstance(wanted, list) and wanted else wanted
    if target not in _TARGETS:
        raise Refusal(400, "IDRAC.2.8.SYS405", f"The target must be one of {', '.join(_TARGETS)}.")
    work = ExportConfiguration(target=str(target))
    task = begin(server.parts, work, "Export Configuration", prefix=server.profile.task_prefix)
    await server.save()
    server.workshop.take(task)
    return _export_accepted(server, task)


def _export_accepted(server: Server, task: Task) -> Answer:
    location = f"{server.manager}/Oem/Dell/Exports/{task.id}"
    return Answer(status=202, headers={"Location": location})


async def _exported(call: Call) -> Answer:
    task = call.server.parts.task(call.ids["task"])
    if task is None or not isinstance(task.work, ExportConfiguration):
        raise missing(call.path)
    if task.live:
        return _export_accepted(call.server, task)
    return Answer(status=200, document=configuration(call.server, task.work.target))


def configuration(server: Server, target: str) -> Document:
    """The server configuration profile, in JSON."""
    bios = bios_attributes.values(server.profile, server.plate, server.parts.bios)
    parts: list[tuple[str, str, dict[str, object]]] = [
        ("BIOS", "BIOS.Setup.1-1", dict(bios)),
        ("IDRAC", "iDRAC.Embedded.1", {_ONCE: "Disabled", _FIRST: "Normal"}),
    ]
    for number, nic in enumerate(interface_ids(server)):
        parts.append(("NIC", nic, {"LegacyBootProto": "PXE" if number == 0 else "NONE"}))
    return {
        "SystemConfiguration": {
            "Model": server.profile.model,
            "Components": [
                {
                    "FQDD": fqdd,
                    "Attributes": [
                        {
                            "Name": name,
                            "Value": str(value),
                            "Set On Import": "True",
                            "Comment": "Read and Write",
                        }
                        for name, value in attributes.items()
                    ],
                }
                for kind, fqdd, attributes in parts
                if target in ("ALL", kind)
            ],
        }
    }


def _service(call: Call, name: str, action: str, **extra: object) -> Document:
    here = f"{call.server.manager}/Oem/Dell/{name}"
    return {
        "@odata.id": here,
        "Id": name,
        "Name": name,
        "Actions": {f"#{name}.{action}": {"target": f"{here}/Actions/{name}.{action}", **extra}},
    }


def _job_service(call: Call) -> Document:
    return _service(call, "DellJobService", "DeleteJobQueue")


async def _delete_jobs(call: Call) -> Answer:
    server, wanted = call.server, call.body.get("JobID")
    if wanted in ("JID_CLEARALL", "JID_CLEARALL_FORCE"):
        await server.workshop.drop()
        clear_tasks(server.parts)
    else:
        task = server.parts.task(str(wanted))
        if task is None:
            raise Refusal(400, "IDRAC.2.8.SYS405", f"There is no job {wanted}.")
        if task.live and not task.waits_for_boot:
            raise Refusal(400, "IDRAC.2.8.SUP020", f"The job {wanted} is running.")
        remove_task(server.parts, task)
    await server.save()
    return Answer(status=200, document={})


def _jobs(call: Call) -> Document:
    path = f"{call.server.manager}/Oem/Dell/Jobs"
    return collection(path, "Jobs", [f"{path}/{task.id}" for task in call.server.parts.tasks])


def _job(call: Call) -> Document:
    task = call.server.parts.task(call.ids["task"])
    if task is None:
        raise missing(call.path)
    return {"@odata.id": f"{call.server.manager}/Oem/Dell/Jobs/{task.id}", **tasks.job(task)}


def _lc_service(call: Call) -> Document:
    return _service(call, "DellLCService", "GetRemoteServicesAPIStatus")


async def _lc_status(_: Call) -> Answer:
    ready = {"LCStatus": "Ready", "RTStatus": "Ready", "ServerStatus": "Ready", "Status": "Ready"}
    return Answer(status=200, document=dict(ready))


def _card_service(call: Call) -> Document:
    allowed = {"Force@Redfish.AllowableValues": ["Graceful", "Force"]}
    return _service(call, "DelliDRACCardService", "iDRACReset", **allowed)


async def _card_reset(call: Call) -> Answer:
    call.server.workshop.restart_soon()
    return Answer()


def _raid_service(call: Call) -> Document:
    here = f"{call.server.system}/Oem/Dell/DellRaidService"
    names = ("ConvertToRAID", "ConvertToNonRAID", "ClearForeignConfig")
    return {
        "@odata.id": here,
        "Id": "DellRaidService",
        "Name": "DellRaidService",
        "Actions": {
            f"#DellRaidService.{name}": {"target": f"{here}/Actions/DellRaidService.{name}"} for name in names
        },
    }


async def _nothing_to_do(_: Call) -> Answer:
    """Drives are taken for RAID as they are, and none comes from another server."""
    raise Refusal(400, "IDRAC.2.8.STOR018", "No foreign drives detected, and no drive needs to be converted.")


def _switch_connections(call: Call) -> Document:
    path = f"{call.server.system}/NetworkPorts/Oem/Dell/DellSwitchConnections"
    return collection(path, "Switch Connections", []) | {
        "Members": [
            {"FQDD": nic, "SwitchConnectionID": "No Link", "SwitchPortConnectionID": "No Link"}
            for nic in interface_ids(call.server)
        ]
    }
