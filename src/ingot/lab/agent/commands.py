"""The commands that Ironic gives the agent, over HTTPS.

Owns the command list and its rules: the token in every call, one command at a time, results kept in order with the record.
Answers have the form of ironic-python-agent's, errors too. A command is saved before it is answered and its outcome before
Ironic is told; one that ran when the farm was killed runs again from its start. Parameters are not echoed, and forgotten when
the command has ended: they hold user data. What commands do is in `orders` and `steps`.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import ssl
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web

from ingot.lab.agent.failures import AgentDied
from ingot.lab.agent.ironic import AGENT_VERSION
from ingot.lab.agent.orders import ORDERS, Order
from ingot.lab.agent.work import Work
from ingot.lab.chassis import Chassis
from ingot.lab.errors import StepFailed
from ingot.lab.record import Command, Ramdisk
from ingot.lab.settings import Timings

_log = logging.getLogger(__name__)
_LARGEST_COMMAND: Final = 128 << 20
_SHORT: Final = 1.0
"""How long the answer to a short command waits for its end; Ironic polls for the end of a longer one in steps of seconds."""


class PowerSwitch(Protocol):
    """The power as the operating system can switch it."""

    async def __call__(self, *, again: bool) -> None: ...


class Commands:
    def __init__(
        self,
        chassis: Chassis,
        ramdisk: Ramdisk,
        timings: Timings,
        *,
        trusted: ssl.SSLContext,
        power: PowerSwitch,
        ended: Callable[[], None],
        gone: Callable[[str], None],
    ) -> None:
        self._chassis = chassis
        self._ramdisk = ramdisk
        self._work = Work(chassis, ramdisk, timings, trusted)
        self._power = power
        self._ended = ended
        self._gone = gone
        self._started = datetime.now(UTC)
        self._group: asyncio.TaskGroup | None = None

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Any request to the agent. One handler and no application: a farm has many agents."""
        try:
            return await self._answer(request)
        except _Refused as refused:
            return _fault(refused.status, str(refused))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.method, request.path.removeprefix("/v1").rstrip("/").split("/"):
            case "GET", ["", "status"]:
                return self._status()
            case "GET", ["", "commands"]:
                return self._list(request)
            case "POST", ["", "commands"]:
                return await self._take(request)
            case "GET", ["", "commands", wanted]:
                return self._show(request, wanted)
        raise _Refused(404, f"404 Not Found: {request.method} {request.path}")

    def start(self, group: asyncio.TaskGroup) -> None:
        """Take commands, and go on with those that were running when the farm was killed."""
        self._group = group
        for command in self._ramdisk.commands:
            if command.status == "RUNNING":
                self._chassis.note(f"{_called(command)} runs again from its start")
                group.create_task(self._run(command, _order(command.name)))

    def _status(self) -> web.Response:
        return web.json_response({"started_at": self._started.timestamp(), "version": AGENT_VERSION})

    def _list(self, request: web.BaseRequest) -> web.Response:
        self._check_token(request)
        return web.json_response({"commands": [_shown(command) for command in self._ramdisk.commands]})

    def _show(self, request: web.BaseRequest, wanted: str) -> web.Response:
        self._check_token(request)
        for command in self._ramdisk.commands:
            if command.id == wanted:
                return web.json_response(_shown(command))
        raise _Refused(404, f"Not found: Command Result with id {wanted} not found.")

    async def _take(self, request: web.BaseRequest) -> web.Response:
        self._check_token(request)
        if self._chassis.acts("agent_garbles"):
            return await self._garbled(request)
        try:
            given = msgspec.json.decode(await _body(request), type=_Given)
        except msgspec.DecodeError:
            raise _Refused(400, "400 Bad Request: Missing or invalid name or params") from None
        if "." not in given.name:
            raise _Refused(400, "Invalid command: Command name must be of the form <extension>.<name>")
        last = self._ramdisk.commands[-1] if self._ramdisk.commands else None
        if last is not None and last.status == "RUNNING":
            raise _Refused(409, f"Agent is busy: executing command {_short(last.name)}")
        order = _order(given.name)
        command = Command(id=str(uuid.uuid4()), name=given.name, params=given.params)
        self._ramdisk.commands.append(command)
        await self._chassis.save()
        assert self._group is not None
        running = self._group.create_task(self._run(command, order))
        if request.query.get("wait", "").lower() == "true" or not order.in_thread:
            await asyncio.wait([running])
        elif order.short:
            await asyncio.wait([running], timeout=_SHORT)
        return web.json_response(_shown(command))

    async def _garbled(self, request: web.BaseRequest) -> web.Response:
        """What somebody in between answers, or an agent that fell over its own error. The order is not carried out."""
        await _body(request)
        self._chassis.note("an order is answered with a page of HTML, as the agent was told by a fault")
        await self._chassis.save()
        page = "<html><body><h1>500 Internal Server Error</h1></body></html>"
        return web.Response(status=500, text=page, content_type="text/html")

    async def _run(self, command: Command, order: Order) -> None:
        what = _called(command)
        try:
            if order.short:
                await self._work.told_to_fail(_short(command.name))
            command.result = await order.run(self._work, command.params)
            command.status = "SUCCEEDED"
        except AgentDied as death:
            self._gone(str(death))
            return
        except StepFailed as failure:
            self._fail(command, failure)
        except Exception as error:  # the edge of a command: Ironic must hear of its end, whatever it was
            _log.exception("%s: the agent's command %s ended by a bug", self._chassis.plate.name, what)
            self._fail(
                command,
                StepFailed(str(error), kind="CommandExecutionError", summary="Command execution failed"),
            )
        if command.status == "SUCCEEDED" and order.in_thread:
            self._chassis.note(f"{what} is done")
        command.params = {}
        await self._chassis.save()
        if command.status == "SUCCEEDED":
            await self._afterwards(order)
        if order.in_thread:
            self._ended()

    async def _afterwards(self, order: Order) -> None:
        match order.after:
            case "off" | "restart":
                await self._power(again=order.after == "restart")
            case "locked":
                self._gone("the agent was locked down and is not to be reached any more")

    def _fail(self, command: Command, failure: StepFailed) -> None:
        self._chassis.note(f"{_called(command)} failed: {failure.details}")
        command.status = "CLEAN_VERSION_MISMATCH" if failure.kind == "VersionMismatch" else "FAILED"
        command.error = {
            "type": failure.kind,
            "code": failure.code,
            "message": failure.summary,
            "details": failure.details,
        }

    def _check_token(self, request: web.BaseRequest) -> None:
        given = request.query.get("agent_token", "")
        if not given or not hmac.compare_digest(given.encode(), self._ramdisk.token.encode()):
            raise _Refused(401, "401 Unauthorized: Token invalid.")


class _Given(msgspec.Struct):
    name: str
    params: dict[str, Any]


class _Refused(Exception):
    """The request is answered with an error and no command comes of it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def _body(request: web.BaseRequest) -> bytes:
    whole = bytearray()
    async for piece in request.content.iter_any():
        whole += piece
        if len(whole) > _LARGEST_COMMAND:
            raise _Refused(413, f"413 Request Entity Too Large: more than {_LARGEST_COMMAND} bytes")
    return bytes(whole)


def _order(name: str) -> Order:
    extension, _, command = name.partition(".")
    if extension not in ORDERS:
        raise _Refused(404, f"Not found: Extension with id {extension} not found.")
    order = ORDERS[extension].get(command)
    if order is None:
        raise _Refused(400, f"Invalid command: Unknown command: {command}")
    return order


def _shown(command: Command) -> dict[str, Any]:
    return {
        "id": command.id,
        "command_name": _short(command.name),
        "command_status": command.status,
        "command_error": command.error,
        "command_result": command.result,
    }


def _short(name: str) -> str:
    return name.partition(".")[2]


def _called(command: Command) -> str:
    """What a log calls the command: the step for those that execute one."""
    step = command.params.get("step")
    return str(step.get("step")) if isinstance(step, dict) else command.name


def _fault(status: int, text: str) -> web.Response:
    return web.json_response(
        {"faultcode": "Client" if status < 500 else "Server", "faultstring": text}, status=status
    )
