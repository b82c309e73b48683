"""Storage: controllers, drives, and volumes that are made and removed at once, by a task, or at the next boot.

A drive without a volume is free: a controller that can do RAID takes it for one, and until then the operating system sees it as
it is. A controller that cannot passes each drive through as a volume of its own.
"""

from __future__ import annotations

from typing import Final

from ingot.lab.components import CreateVolume, DeleteVolume, Volume, begin, finish
from ingot.lab.hardware import Drive, Storage, drive_serial, hardware_of
from ingot.lab.redfish import indicator, volume_rules
from ingot.lab.redfish.answers import GENERAL, Answer, Document, Refusal, collection, link, links, missing
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.server import Server
from ingot.lab.redfish.system import HEALTHY, SYSTEM
from ingot.lab.redfish.tasks import accepted, monitored

STORAGE: Final = f"{SYSTEM}/Storage/{{storage}}"
_APPLY_TIME: Final = "@Redfish.OperationApplyTime"


def add(table: Table) -> None:
    table.show(f"{SYSTEM}/Storage", _storages)
    table.show(STORAGE, _storage)
    table.show(f"{STORAGE}/Drives/{{drive}}", _drive)
    table.act("PATCH", f"{STORAGE}/Drives/{{drive}}", _patch_drive)
    table.show(f"{STORAGE}/Volumes", _volumes)
    table.act("POST", f"{STORAGE}/Volumes", _create)
    table.show(f"{STORAGE}/Volumes/{{volume}}", _volume)
    table.act("DELETE", f"{STORAGE}/Volumes/{{volume}}", _delete)


def _path(server: Server, storage: str) -> str:
    return f"{server.system}/Storage/{storage}"


def _named(call: Call) -> Storage:
    for storage in hardware_of(call.server.plate).storages:
        if storage.id == call.ids["storage"]:
            return storage
    raise missing(call.path)


def _storages(call: Call) -> Document:
    path = f"{call.server.system}/Storage"
    ids = [storage.id for storage in hardware_of(call.server.plate).storages]
    return collection(path, "Storage", [f"{path}/{id_}" for id_ in ids])


def _storage(call: Call) -> Document:
    storage, made = _named(call), hardware_of(call.server.plate)
    here = _path(call.server, storage.id)
    controller = {
        "@odata.id": f"{here}#/StorageControllers/0",
        "MemberId": "0",
        "Name": storage.name,
        "SupportedRAIDTypes": list(storage.raid_types),
        "SupportedControllerProtocols": ["PCIe"],
        "SupportedDeviceProtocols": sorted({drive.protocol for drive in made.drives_of(storage.id)}),
        "SpeedGbps": 12,
        "Status": HEALTHY,
    }
    return {
        "@odata.id": here,
        "@odata.type": "#Storage.v1_15_0.Storage",
        "Id": storage.id,
        "Name": storage.name,
        "Drives": links([f"{here}/Drives/{drive.id}" for drive in made.drives_of(storage.id)]),
        "StorageControllers": [controller],
        "Volumes": link(f"{here}/Volumes"),
        "Status": HEALTHY,
    }


def _drive(call: Call) -> Document:
    storage, server, drive = _named(call), call.server, _named_drive(call)
    here = _path(server, storage.id)
    used = [volume.id for volume in _volumes_of(server, storage) if drive.id in volume.drives]
    return {
        "@odata.id": f"{here}/Drives/{drive.id}",
        "@odata.type": "#Drive.v1_17_0.Drive",
        "Id": drive.id,
        "Name": f"{drive.model} {drive.id}",
        "CapacityBytes": drive.size,
        "MediaType": "HDD" if drive.rotational else "SSD",
        "Protocol": drive.protocol,
        "Manufacturer": server.profile.manufacturer,
        "Model": drive.model,
        "SerialNumber": drive_serial(server.plate, drive),
        "Revision": "1.0",
        "PredictedMediaLifeLeftPercent": 100,
        indicator.PROPERTY: indicator.shown(server, f"drive {drive.id}"),
        "Links": {"Volumes": links([f"{here}/Volumes/{id_}" for id_ in used])},
        "Status": HEALTHY,
    }


def _named_drive(call: Call) -> Drive:
    for drive in hardware_of(call.server.plate).drives_of(_named(call).id):
        if drive.id == call.ids["drive"]:
            return drive
    raise missing(call.path)


async def _patch_drive(call: Call) -> Answer:
    indicator.switch(call.server, f"drive {_named_drive(call).id}", call.body)
    await call.server.save()
    return Answer()


def _volumes_of(server: Server, storage: Storage) -> list[Volume]:
    if storage.raid_types:
        return server.parts.volumes_of(storage.id)
    return [_passed_through(drive) for drive in hardware_of(server.plate).drives_of(storage.id)]


def _passed_through(drive: Drive) -> Volume:
    name = f"{drive.model} {drive.id}"
    return Volume(
        id=f"raw-{drive.id}",
        storage=drive.storage,
        name=name,
        raid_type="",
        capacity=drive.size,
        drives=[drive.id],
    )


def _volumes(call: Call) -> Document:
    storage = _named(call)
    path = f"{_path(call.server, storage.id)}/Volumes"
    times = ["OnReset"] if call.server.profile.volumes_at_boot else ["Immediate", "OnReset"]
    members = [f"{path}/{volume.id}" for volume in _volumes_of(call.server, storage)]
    return collection(path, "Volumes", members) | {
        "@Redfish.OperationApplyTimeSupport": {
            "@odata.type": "#Settings.v1_3_5.OperationApplyTimeSupport",
            "SupportedValues": times,
        }
    }


def _volume(call: Call) -> Document:
    server, storage = call.server, _named(call)
    volumes = {volume.id: volume for volume in _volumes_of(server, storage)}
    if (volume := volumes.get(call.ids["volume"])) is None:
        raise missing(call.path)
    here = _path(server, storage.id)
    document: Document = {
        "@odata.id": f"{here}/Volumes/{volume.id}",
        "@odata.type": "#Volume.v1_9_0.Volume",
        "Id": volume.id,
        "Name": volume.name,
        "CapacityBytes": volume.capacity,
        "VolumeType": volume_rules.TYPES.get(volume.raid_type, "RawDevice"),
        "Identifiers": [
            {"DurableNameFormat": "UUID", "DurableName": f"{server.plate.system_id}-{volume.id}"}
        ],
        "Links": {"Drives": links([f"{here}/Drives/{drive}" for drive in volume.drives])},
        "Status": HEALTHY,
    }
    if volume.raid_type:
        document["RAIDType"] = volume.raid_type
    return document


async def _create(call: Call) -> Answer:
    server, storage = call.server, _named(call)
    wanted = volume_rules.wanted(call.body, _path(server, storage.id))
    free = [
        drive
        for drive in hardware_of(server.plate).drives_of(storage.id)
        if not server.parts.volumes_of(storage.id, drive.id)
    ]
    drives, capacity = volume_rules.placed(wanted, storage, free)
    number = server.parts.number()
    volume = Volume(
        id=number,
        storage=storage.id,
        name=wanted.name or f"Volume {number}",
        raid_type=wanted.raid_type,
        capacity=capacity,
        drives=drives,
    )
    return await _do(call, CreateVolume(volume=volume), f"Create {wanted.raid_type} volume {volume.name}")


async def _delete(call: Call) -> Answer:
    storage = _named(call)
    volume = call.server.parts.volume(storage.id, call.ids["volume"])
    if volume is None:
        if storage.raid_types:
            raise missing(call.path)
        raise Refusal(
            400, "ResourceCannotBeDeleted", "A drive that is passed through has no volume to delete."
        )
    work = DeleteVolume(storage=storage.id, volume=volume.id)
    return await _do(call, work, f"Delete volume {volume.name}")


async def _do(call: Call, work: CreateVolume | DeleteVolume, name: str) -> Answer:
    """At once, by a task, or at the next boot: as the call and the vendor want it."""
    server, profile = call.server, call.server.profile
    time = call.body.get(_APPLY_TIME, "OnReset" if profile.volumes_at_boot else "Immediate")
    if time not in ("OnReset", "Immediate") or (time == "Immediate" and profile.volumes_at_boot):
        raise Refusal(400, "PropertyValueNotInList", f"Volumes cannot be changed at the time {time!r}.")
    at_boot = time == "OnReset"
    task = begin(
        server.parts, work, name, prefix=profile.task_prefix, state="Pending" if at_boot else "Running"
    )
    if at_boot:
        await server.save()
        return accepted(server, task)
    if profile.volumes_by_task:
        await server.save()
        server.workshop.take(task)
        return monitored(task)
    finish(server.parts, task, server.faults, server.record.note_fault)
    server.chassis.note(f"{name}: {task.state}. {task.message}")
    server.parts.tasks.remove(task)
    await server.save()
    if task.state == "Exception":
        raise Refusal(500, GENERAL, task.message)
    if isinstance(work, DeleteVolume):
        return Answer()
    path = f"{_path(server, work.volume.storage)}/Volumes/{work.volume.id}"
    return Answer(status=201, document=link(path), headers={"Location": path})
