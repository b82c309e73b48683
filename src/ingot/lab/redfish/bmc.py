"""The BMC of one server: its listener, and each call's way from the wire to the table and back.

Owns log-in before anything else, `$expand`, ETags, and those faults that concern every call. A change is saved before it is
answered. What the resources are is in the rooms that `table` lists.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

import msgspec
from aiohttp import web

from ingot.lab.chassis import Chassis
from ingot.lab.listener import Listener
from ingot.lab.machine import Machine
from ingot.lab.redfish.answers import GENERAL, Answer, Document, Refusal, error
from ingot.lab.redfish.dispatch import Call, Resource, Table, check_tag
from ingot.lab.redfish.expand import expanded
from ingot.lab.redfish.server import Server
from ingot.lab.redfish.service import OPEN, SESSIONS
from ingot.lab.redfish.table import table_of

_log = logging.getLogger(__name__)


class Bmc:
    def __init__(self, machine: Machine, context: ssl.SSLContext) -> None:
        plate = machine.chassis.plate
        self._chassis = machine.chassis
        self._server = Server(machine, self.restart)
        self._away = 0
        """Restarts that are under way: nobody may open its port until the last is over."""
        self._turning = asyncio.Lock()
        """Held while the port opens or closes; one at a time."""
        self._listener = Listener(self.answer, host=plate.host, port=plate.bmc_port, context=context)

    async def start(self) -> None:
        self._server.workshop.resume()
        await self.faults_changed()

    async def stop(self) -> None:
        await self._server.workshop.stop()
        await self._listener.stop()

    async def faults_changed(self) -> None:
        """Open or close the port, as the faults of this moment want it."""
        async with self._turning:
            faults = self._chassis.faults
            down = self._away > 0 or faults.bmc_down or faults.bmc_restarting
            await (self._listener.stop() if down else self._listener.start())
            self._chassis.acts("bmc_down")
            if self._chassis.acts("bmc_restarting"):
                self._server.logins.forget()

    def restart_soon(self, seconds: float | None = None) -> None:
        """Restart as if somebody had pressed the button: away for a while, sessions forgotten. Returns at once."""
        self._server.workshop.restart_soon(seconds)

    async def restart(self, seconds: float) -> None:
        self._away += 1
        try:
            self._chassis.note(f"the BMC restarts and is away for {seconds:g} s")
            await self.faults_changed()
            self._server.logins.forget()
            await asyncio.sleep(seconds)
        finally:
            self._away -= 1
        await self.faults_changed()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._chassis.acts("slow_seconds"):
            await asyncio.sleep(self._chassis.faults.slow_seconds)
        try:
            answer = await self._answer(request)
        except Refusal as refusal:
            answer = refusal.answer
        except Exception:  # the edge of a request: a bug is answered like any other error, and logged
            _log.exception("%s: %s %s", self._chassis.plate.name, request.method, request.path)
            answer = Answer(status=500, document=error(GENERAL, "The BMC has a bug; the lab's log has it."))
        return _sent(answer, self._chassis)

    async def _answer(self, request: web.BaseRequest) -> Answer:
        if self._chassis.spend("unavailable"):
            await self._chassis.save()
            raise Refusal(
                503,
                "ServiceTemporarilyUnavailable",
                "The service is busy; try again.",
                headers={"Retry-After": "1"},
            )
        self._check_login(request)
        server, table = self._server, table_of(self._server.profile)
        resource, ids = table.find(server, request.path)
        try:
            content = await request.read()
        except web.HTTPException as refused:  # it is too large
            raise Refusal(refused.status, GENERAL, f"The body cannot be read: {refused.reason}.") from None
        call = Call(
            server=server,
            method=request.method,
            path=request.path,
            ids=ids,
            body=_decoded(content),
            has_body=bool(content),
            headers=request.headers,
        )
        if request.method in ("GET", "HEAD"):
            expand = request.query.get("$expand") if _says_who(request) else None
            return await _read(table, resource, call, expand)
        if request.method not in resource.acts:
            raise Refusal(
                405,
                "ActionNotSupported",
                f"{request.method} {request.path}: the method is not allowed; there is {resource.allow}.",
                headers={"Allow": resource.allow},
            )
        check_tag(resource, call)
        return await resource.acts[request.method](call)

    def _check_login(self, request: web.BaseRequest) -> None:
        path = request.path.rstrip("/")
        if request.method == "POST" and path == SESSIONS:
            return
        if path in OPEN and not (_says_who(request) and "$expand" in request.query):
            return  # by itself: what is below it is not for everybody
        headers = request.headers
        self._server.logins.check(
            token=headers.get("X-Auth-Token"), authorization=headers.get("Authorization")
        )


def _says_who(request: web.BaseRequest) -> bool:
    return "X-Auth-Token" in request.headers or "Authorization" in request.headers


async def _read(table: Table, resource: Resource, call: Call, expand: str | None) -> Answer:
    if "GET" in resource.acts:
        answer = await resource.acts["GET"](call)
    elif resource.show is not None:
        answer = Answer(status=200, document=resource.show(call))
    else:
        raise Refusal(
            405, "ActionNotSupported", "This can be called, not read.", headers={"Allow": resource.allow}
        )
    document = answer.document
    if expand and document is not None:
        document = expanded(document, lambda path: table.read(call, path))
    headers = dict(answer.headers) | {"Allow": resource.allow}
    if tag := resource.etag(call):
        headers["ETag"] = tag
        if document is not None:
            document = document | {"@odata.etag": tag}
    return Answer(status=answer.status, document=document, headers=headers)


def _decoded(content: bytes) -> dict[str, Any]:
    """The body; nothing where there is none, or none that is an object: what a call needs, its handler misses."""
    try:
        value = msgspec.json.decode(content or b"{}")
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _sent(answer: Answer, chassis: Chassis) -> web.Response:
    body = _encoded(answer.document)
    if answer.status >= 400 and chassis.acts("no_json_errors"):
        body = b""
    if body and chassis.acts("broken_json"):
        body = body[: len(body) // 2]
    headers = {"OData-Version": "4.0", "Cache-Control": "no-cache", **answer.headers}
    if body:
        headers["Content-Type"] = "application/json"
    return web.Response(status=answer.status, body=body or None, headers=headers)


def _encoded(document: Document | None) -> bytes:
    return b"" if document is None else msgspec.json.encode(document)
