"""The root, sessions, and the registries of attributes and messages."""

from __future__ import annotations

from typing import Final

from ingot.lab.redfish import bios_attributes
from ingot.lab.redfish.answers import Answer, Document, Refusal, collection, link, missing
from ingot.lab.redfish.dispatch import Call, Table
from ingot.lab.redfish.login import refused
from ingot.lab.redfish.server import BASE

SESSIONS: Final = f"{BASE}/SessionService/Sessions"
REGISTRIES: Final = f"{BASE}/Registries"
OPEN: Final = ("/redfish", BASE)
"""What needs no log-in."""


def add(table: Table) -> None:
    table.show("/redfish", lambda _: {"v1": f"{BASE}/"})
    table.show(BASE, _root)
    table.show(f"{BASE}/SessionService", _session_service)
    table.show(SESSIONS, lambda call: collection(SESSIONS, "Sessions", _sessions(call)))
    table.act("POST", SESSIONS, _log_in)
    table.show(SESSIONS + "/{session}", _session)
    table.act("DELETE", SESSIONS + "/{session}", _log_out)
    table.show(REGISTRIES, lambda call: collection(REGISTRIES, "Registries", _registries(call)))
    table.show(REGISTRIES + "/{registry}", _registry)
    table.show(REGISTRIES + "/{registry}/{language}", _registry_file)


def _root(call: Call) -> Document:
    server = call.server
    document: Document = {
        "@odata.id": f"{BASE}/",
        "@odata.type": "#ServiceRoot.v1_15_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Root Service",
        "RedfishVersion": "1.15.0",
        "UUID": server.plate.system_id,
        "Vendor": server.profile.vendor,
        "ProtocolFeaturesSupported": {
            "ExpandQuery": {"NoLinks": True, "Levels": True, "MaxLevels": 1, "ExpandAll": False}
        },
        "Tasks": link(f"{BASE}/TaskService"),
        "Links": {"Sessions": link(SESSIONS)},
    }
    for name in ("Systems", "Managers", "Chassis", "SessionService", "Registries"):
        document[name] = link(f"{BASE}/{name}")
    for name in ("UpdateService", "EventService"):
        document[name] = link(f"{BASE}/{name}")
    return document


def _session_service(_: Call) -> Document:
    return {
        "@odata.id": f"{BASE}/SessionService",
        "Id": "SessionService",
        "Name": "Session Service",
        "ServiceEnabled": True,
        "Sessions": link(SESSIONS),
    }


def _sessions(call: Call) -> list[str]:
    return [f"{SESSIONS}/{session}" for session in call.server.logins.sessions()]


def _session(call: Call) -> Document:
    if call.ids["session"] not in call.server.logins.sessions():
        raise missing(call.path)
    return {
        "@odata.id": f"{SESSIONS}/{call.ids['session']}",
        "Id": call.ids["session"],
        "Name": "Session",
        "UserName": call.server.plate.username,
    }


async def _log_in(call: Call) -> Answer:
    logins = call.server.logins
    if not logins.right(str(call.body.get("UserName", "")), str(call.body.get("Password", ""))):
        raise refused(expired=False)
    if call.server.chassis.acts("password_expired"):
        raise refused(expired=True)
    session, token = logins.open()
    path = f"{SESSIONS}/{session}"
    document = {
        "@odata.id": path,
        "Id": session,
        "Name": "Session",
        "UserName": call.server.plate.username,
    }
    return Answer(status=201, document=document, headers={"X-Auth-Token": token, "Location": path})


async def _log_out(call: Call) -> Answer:
    if not call.server.logins.close(call.ids["session"]):
        raise Refusal(404, "ResourceMissingAtURI", "There is no such session.")
    return Answer()


def _registries(_: Call) -> list[str]:
    return [f"{REGISTRIES}/{bios_attributes.REGISTRY}"]


def _registry(call: Call) -> Document:
    if call.ids["registry"] != bios_attributes.REGISTRY:
        raise missing(call.path)
    here = f"{REGISTRIES}/{bios_attributes.REGISTRY}"
    return {
        "@odata.id": here,
        "@odata.type": "#MessageRegistryFile.v1_1_3.MessageRegistryFile",
        "Id": bios_attributes.REGISTRY,
        "Name": "BIOS attribute registry",
        "Registry": bios_attributes.REGISTRY,
        "Languages": ["en"],
        "Location": [{"Language": "en", "Uri": f"{here}/en"}],
    }


def _registry_file(call: Call) -> Document:
    if (call.ids["registry"], call.ids["language"]) != (bios_attributes.REGISTRY, "en"):
        raise missing(call.path)
    return bios_attributes.registry(call.server.profile)
