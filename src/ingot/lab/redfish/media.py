"""Virtual media: the slots of a server, at its manager or at its system, with or without actions. Vendors differ here most."""

from __future__ import annotations

from ingot.lab.profiles import Profile, Slot
from ingot.lab.redfish.answers import GENERAL, Answer, Document, Refusal, collection, missing
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.server import BASE, Server
from ingot.lab.redfish.system import SYSTEM


def add(table: Table, profile: Profile) -> None:
    path = (SYSTEM if profile.media_of_system else f"{BASE}/Managers/{{manager}}") + "/VirtualMedia"
    table.show(path, _slots)
    table.show(path + "/{slot}", _slot)
    if profile.media_by_patch:
        table.act("PATCH", path + "/{slot}", _patch)
    else:
        table.act("POST", path + "/{slot}/Actions/VirtualMedia.InsertMedia", _insert)
        table.act("POST", path + "/{slot}/Actions/VirtualMedia.EjectMedia", _eject)


def path_of(server: Server) -> str:
    return (server.system if server.profile.media_of_system else server.manager) + "/VirtualMedia"


def _named(call: Call) -> Slot:
    for slot in call.server.profile.slots:
        if slot.id == call.ids["slot"]:
            return slot
    raise missing(call.path)


def _slots(call: Call) -> Document:
    path = path_of(call.server)
    return collection(path, "Virtual Media", [f"{path}/{slot.id}" for slot in call.server.profile.slots])


def _slot(call: Call) -> Document:
    slot, profile = _named(call), call.server.profile
    here = f"{path_of(call.server)}/{slot.id}"
    image = call.server.record.media.get(slot.drive)
    document: Document = {
        "@odata.id": here,
        "@odata.type": "#VirtualMedia.v1_6_2.VirtualMedia",
        "Id": slot.id,
        "Name": f"Virtual {slot.types[0]}",
        "MediaTypes": list(slot.types),
        "Inserted": image is not None,
        "Image": image,
        "ImageName": image.rpartition("/")[2] if image else None,
        "WriteProtected": True,
        "ConnectedVia": "URI" if image else "NotConnected",
    }
    if not profile.media_by_patch:
        insert: Document = {"target": f"{here}/Actions/VirtualMedia.InsertMedia"}
        if "TransferProtocolType" in profile.insert_needs:
            insert["TransferProtocolType@Redfish.AllowableValues"] = ["HTTP", "HTTPS"]
        document["Actions"] = {
            "#VirtualMedia.InsertMedia": insert,
            "#VirtualMedia.EjectMedia": {"target": f"{here}/Actions/VirtualMedia.EjectMedia"},
        }
    return document


async def _insert(call: Call) -> Answer:
    profile = call.server.profile
    if unknown := [name for name in profile.insert_refuses if name in call.body]:
        raise Refusal(
            400,
            "ActionParameterUnknown",
            f"InsertMedia does not know the parameter {unknown[0]}.",
            args=["InsertMedia", unknown[0]],
        )
    for name in profile.insert_needs:
        if name not in call.body:
            raise Refusal(
                400, GENERAL, f"InsertMedia requires the parameter {name}.", args=["InsertMedia", name]
            )
    await _put(call.server, _named(call), call.body.get("Image"))
    return Answer()


async def _eject(call: Call) -> Answer:
    if call.server.profile.eject_needs_body and not call.has_body:
        raise Refusal(400, "MalformedJSON", "EjectMedia needs a body, if only {}.")
    await _take(call.server, _named(call))
    return Answer()


async def _patch(call: Call) -> Answer:
    slot = _named(call)
    if call.body.get("Image"):
        if call.body.get("Inserted") is not True:
            raise Refusal(400, "PropertyMissing", "Inserted must be true with an image.", args=["Inserted"])
        await _put(call.server, slot, call.body["Image"])
    elif call.body.get("Inserted") is False or ("Image" in call.body and call.body["Image"] is None):
        await _take(call.server, slot)
    else:
        raise Refusal(400, "PropertyMissing", "A PATCH of a medium gives Image and Inserted.", args=["Image"])
    return Answer()


async def _put(server: Server, slot: Slot, image: object) -> None:
    if not isinstance(image, str) or not image.startswith(("https://", "http://")):
        raise Refusal(400, "ActionParameterValueFormatError", "Image must be an http or https URL.")
    if server.chassis.acts("fail_insert_media"):
        raise Refusal(500, GENERAL, "The virtual medium cannot be mounted.")
    if slot.drive in server.record.media and (
        server.profile.insert_once or server.chassis.acts("media_stuck")
    ):
        raise Refusal(400, "ResourceInUse", "There is a medium in this slot; eject it first.")
    server.record.media[slot.drive] = image
    server.chassis.note(f"virtual medium inserted in {slot.id}")
    await server.save()


async def _take(server: Server, slot: Slot) -> None:
    """Eject; that there is nothing to eject is no error."""
    if slot.drive not in server.record.media:
        return
    if server.chassis.acts("media_stuck"):
        raise Refusal(500, GENERAL, "The virtual medium is in use and cannot be ejected.")
    del server.record.media[slot.drive]
    server.chassis.note(f"virtual medium ejected from {slot.id}")
    await server.save()
