"""The BMC: Redfish's calls on one server.

Owns routes, log-in, and checking what a client sends; the documents are in `documents`, the acts are `Machine`'s.
A change is saved before it is answered. Faults of the server are acted out here.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from ingot.lab.listener import Listener
from ingot.lab.machine import Machine, ResetType
from ingot.lab.record import Override
from ingot.lab.redfish import documents
from ingot.lab.redfish.documents import BASE, CHASSIS, DRIVES, MANAGER, Document
from ingot.lab.redfish.login import Logins

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_GENERAL = "Base.1.18.GeneralError"


class Bmc:
    def __init__(self, machine: Machine, context: ssl.SSLContext) -> None:
        self._machine = machine
        self._chassis = machine.chassis
        self._plate = machine.chassis.plate
        self._logins = Logins(self._chassis)
        self._listener = Listener(
            self._app(), host=self._plate.host, port=self._plate.bmc_port, context=context
        )

    async def start(self) -> None:
        if not self._chassis.record.faults.bmc_down:
            await self._listener.start()

    async def stop(self) -> None:
        await self._listener.stop()

    async def faults_changed(self) -> None:
        await (self.stop() if self._chassis.record.faults.bmc_down else self.start())

    def _app(self) -> web.Application:
        here = documents.system_path(self._plate)
        plate = self._plate
        app = web.Application(middlewares=[self._behave, self._authenticate, self._in_words])
        self._show(app, "/redfish", lambda: {"v1": f"{BASE}/"})
        for path in (BASE, f"{BASE}/"):
            self._show(app, path, lambda: documents.root(plate))
        self._show(app, f"{BASE}/SessionService", documents.session_service)
        self._list(app, f"{BASE}/Systems", "Systems", [here])
        self._list(app, f"{BASE}/Managers", "Managers", [MANAGER])
        self._list(app, f"{BASE}/Chassis", "Chassis", [CHASSIS])
        self._show(app, MANAGER, lambda: documents.manager(plate))
        self._show(app, CHASSIS, lambda: documents.chassis(plate))
        self._list(app, f"{here}/Processors", "Processors", [f"{here}/Processors/1"])
        self._show(app, f"{here}/Processors/1", lambda: documents.processor(plate))
        self._list(app, f"{here}/Storage", "Storage", [f"{here}/Storage/1"])
        self._show(app, f"{here}/Storage/1", lambda: documents.storage(plate))
        self._show(app, f"{here}/Storage/1/Drives/1", lambda: documents.drive(plate))
        self._show(app, f"{here}/SecureBoot", lambda: documents.secure_boot(plate, self._chassis.record))
        self._interfaces(app, f"{here}/EthernetInterfaces")
        self._media(app, f"{MANAGER}/VirtualMedia")
        app.router.add_get(here, self._system)
        app.router.add_patch(here, self._patch_system)
        app.router.add_patch(f"{here}/SecureBoot", self._patch_secure_boot)
        app.router.add_post(f"{here}/Actions/ComputerSystem.Reset", self._reset)
        sessions = f"{BASE}/SessionService/Sessions"
        self._list(app, sessions, "Sessions", [])
        app.router.add_post(sessions, self._log_in)
        app.router.add_delete(sessions + "/{session}", self._log_out)
        return app

    def _show(self, app: web.Application, path: str, document: Callable[[], Document]) -> None:
        async def handler(_: web.Request) -> web.Response:
            return web.json_response(document())

        app.router.add_get(path, handler)

    def _list(self, app: web.Application, path: str, name: str, members: list[str]) -> None:
        self._show(app, path, lambda: documents.collection(path, name, members))

    def _interfaces(self, app: web.Application, path: str) -> None:
        numbers = range(len(self._plate.macs))
        self._list(app, path, "Ethernet Interfaces", [f"{path}/{number}" for number in numbers])
        for number in numbers:
            self._show(app, f"{path}/{number}", partial(documents.ethernet_interface, self._plate, number))

    def _media(self, app: web.Application, path: str) -> None:
        self._list(app, path, "Virtual Media", [f"{path}/{slot}" for slot in DRIVES])
        slot = "/{slot:" + "|".join(DRIVES) + "}"
        app.router.add_get(path + slot, self._virtual_media)
        app.router.add_post(path + slot + "/Actions/VirtualMedia.InsertMedia", self._insert)
        app.router.add_post(path + slot + "/Actions/VirtualMedia.EjectMedia", self._eject)

    @web.middleware
    async def _behave(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._chassis.record.faults.slow_seconds:
            await asyncio.sleep(self._chassis.record.faults.slow_seconds)
        return await handler(request)

    @web.middleware
    async def _authenticate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        open_to_all = request.path.rstrip("/") in ("/redfish", BASE)
        logging_in = request.method == "POST" and request.path == f"{BASE}/SessionService/Sessions"
        if open_to_all or logging_in:
            return await handler(request)
        token, authorization = request.headers.get("X-Auth-Token"), request.headers.get("Authorization")
        if not self._logins.allowed(token=token, authorization=authorization):
            return _refused()
        return await handler(request)

    @web.middleware
    async def _in_words(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Errors of the routing get a body in Redfish's form: clients crash on an error without one."""
        try:
            return await handler(request)
        except web.HTTPError as error:
            return _error(
                error.status,
                "Base.1.18.ResourceMissingAtURI",
                f"{request.method} {request.path}: {error.reason}",
            )

    async def _system(self, _: web.Request) -> web.Response:
        record = self._chassis.record
        answer = web.json_response(
            documents.system(self._plate, record), headers={"ETag": documents.etag(record)}
        )
        self._machine.looked_at()
        return answer

    async def _patch_system(self, request: web.Request) -> web.Response:
        record = self._chassis.record
        if record.faults.fail_boot_device:
            return _error(500, _GENERAL, "The boot source override cannot be set.")
        expected = request.headers.get("If-Match")
        if expected not in (None, "*", documents.etag(record)):
            return _error(412, "Base.1.18.PreconditionFailed", "The resource has changed since it was read.")
        wanted = (await _body(request)).get("Boot")
        if not isinstance(wanted, dict):
            return _error(
                400, "Base.1.18.PropertyMissing", "A PATCH of the system changes Boot, and that is not given."
            )
        try:
            record.override = _override(record.override, wanted)
        except msgspec.ValidationError as error:
            return _error(
                400, "Base.1.18.PropertyValueNotInList", f"The boot source override is not valid: {error}."
            )
        self._chassis.note(
            f"boot override: {record.override.target}, {record.override.enabled}, {record.override.mode}"
        )
        await self._chassis.save()
        return web.Response(status=204)

    async def _patch_secure_boot(self, request: web.Request) -> web.Response:
        wanted = (await _body(request)).get("SecureBootEnable")
        if not isinstance(wanted, bool):
            return _error(400, "Base.1.18.PropertyValueTypeError", "SecureBootEnable must be true or false.")
        self._chassis.record.secure_boot = wanted
        await self._chassis.save()
        return web.Response(status=204)

    async def _reset(self, request: web.Request) -> web.Response:
        try:
            kind = msgspec.convert(await _body(request), _Reset).kind
        except msgspec.ValidationError as error:
            return _error(
                400, "Base.1.18.ActionParameterNotSupported", f"The reset type is not valid: {error}."
            )
        if self._chassis.record.faults.fail_power:
            return _error(500, _GENERAL, "The power controller does not respond.")
        await self._machine.reset(kind)
        return web.Response(status=204)

    async def _virtual_media(self, request: web.Request) -> web.Response:
        return web.json_response(documents.virtual_media(self._chassis.record, request.match_info["slot"]))

    async def _insert(self, request: web.Request) -> web.Response:
        image = (await _body(request)).get("Image")
        if not isinstance(image, str) or not image.startswith(("https://", "http://")):
            return _error(
                400, "Base.1.18.ActionParameterValueFormatError", "Image must be an http or https URL."
            )
        if self._chassis.record.faults.fail_insert_media:
            return _error(500, _GENERAL, "The virtual medium cannot be mounted.")
        slot = request.match_info["slot"]
        self._chassis.record.media[slot] = image
        self._chassis.note(f"virtual medium inserted in {slot}")
        await self._chassis.save()
        return web.Response(status=204)

    async def _eject(self, request: web.Request) -> web.Response:
        slot = request.match_info["slot"]
        if self._chassis.record.media.pop(slot, None) is not None:
            self._chassis.note(f"virtual medium ejected from {slot}")
            await self._chassis.save()
        return web.Response(status=204)

    async def _log_in(self, request: web.Request) -> web.Response:
        body = await _body(request)
        if not self._logins.right(str(body.get("UserName", "")), str(body.get("Password", ""))):
            return _refused()
        session, token = self._logins.open()
        path = f"{BASE}/SessionService/Sessions/{session}"
        document = {"@odata.id": path, "Id": session, "Name": "Session", "UserName": self._plate.username}
        return web.json_response(document, status=201, headers={"X-Auth-Token": token, "Location": path})

    async def _log_out(self, request: web.Request) -> web.Response:
        if not self._logins.close(request.match_info["session"]):
            return _error(404, "Base.1.18.ResourceMissingAtURI", "There is no such session.")
        return web.Response(status=204)


class _Reset(msgspec.Struct, rename={"kind": "ResetType"}):
    kind: ResetType


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(await request.read() or b"{}")
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _override(now: Override, wanted: dict[str, Any]) -> Override:
    names = {
        "target": "BootSourceOverrideTarget",
        "enabled": "BootSourceOverrideEnabled",
        "mode": "BootSourceOverrideMode",
    }
    values = {ours: wanted.get(theirs, getattr(now, ours)) for ours, theirs in names.items()}
    return msgspec.convert(values, Override)


def _error(status: int, code: str, message: str) -> web.Response:
    return web.json_response(documents.error(code, message), status=status)


def _refused() -> web.Response:
    return _error(
        401, "Base.1.18.NoValidSession", "The user name or the password is wrong, or the session has ended."
    )
