"""The commands that Ironic gives the agent, over HTTPS.

Owns the command list and its rules: the token in every call, one long command at a time, results kept in order with the
record. A command is saved before it is answered and its outcome before Ironic is told; one that ran when the farm was killed
runs again from its start. Parameters are not echoed: they hold user data. What commands do is in `steps`.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import ssl
import uuid
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web

from ingot.lab.agent.steps import QUICK, Work, step_name, work_for
from ingot.lab.chassis import Chassis
from ingot.lab.errors import StepFailed
from ingot.lab.record import Command, Ramdisk
from ingot.lab.settings import Timings

_log = logging.getLogger(__name__)
_LARGEST_COMMAND: Final = 128 << 20


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
    ) -> None:
        self._chassis = chassis
        self._ramdisk = ramdisk
        self._work = Work(chassis, ramdisk, timings, trusted)
        self._power = power
        self._ended = ended
        self._group: asyncio.TaskGroup | None = None

    def app(self) -> web.Application:
        app = web.Application(client_max_size=_LARGEST_COMMAND)
        app.router.add_get("/v1/status", self._status)
        for path in ("/v1/commands", "/v1/commands/"):
            app.router.add_get(path, self._list)
            app.router.add_post(path, self._take)
        app.router.add_get("/v1/commands/{id}", self._show)
        return app

    def start(self, group: asyncio.TaskGroup) -> None:
        """Take commands, and go on with those that were running when the farm was killed."""
        self._group = group
        for command in self._ramdisk.commands:
            if command.status == "RUNNING":
                self._chassis.note(f"{command.name} runs again from its start")
                group.create_task(self._run(command))

    async def _status(self, _: web.Request) -> web.Response:
        return web.json_response({"version": "13.0.0"})

    async def _list(self, request: web.Request) -> web.Response:
        if not self._known(request):
            return _fault(401, "Token invalid.")
        return web.json_response({"commands": [_shown(command) for command in self._ramdisk.commands]})

    async def _show(self, request: web.Request) -> web.Response:
        if not self._known(request):
            return _fault(401, "Token invalid.")
        for command in self._ramdisk.commands:
            if command.id == request.match_info["id"]:
                return web.json_response(_shown(command))
        return _fault(404, "Command not found.")

    async def _take(self, request: web.Request) -> web.Response:
        if not self._known(request):
            return _fault(401, "Token invalid.")
        try:
            order = msgspec.json.decode(await request.read(), type=_Order)
        except msgspec.DecodeError as error:
            return _fault(400, f"Invalid request body: {error}")
        if work_for(order.name) is None:
            return _fault(400, f"Invalid command: {order.name}")
        busy = next((one for one in self._ramdisk.commands if one.status == "RUNNING"), None)
        if busy is not None and order.name not in QUICK:
            return _fault(409, f"Agent is busy: executing command {busy.name}")
        command = Command(id=str(uuid.uuid4()), name=order.name, params=order.params)
        self._ramdisk.commands.append(command)
        await self._chassis.save()
        assert self._group is not None
        running = self._group.create_task(self._run(command))
        if order.name in QUICK or request.query.get("wait") == "true":
            await asyncio.wait([running])
        return web.json_response(_shown(command))

    async def _run(self, command: Command) -> None:
        work = work_for(command.name)
        assert work is not None
        what = step_name(command)
        try:
            command.result = await work(self._work, command.params)
            command.status = "SUCCEEDED"
        except StepFailed as failure:
            self._fail(command, failure)
        except Exception as error:  # the edge of a command: Ironic must hear of its end, whatever it was
            _log.exception("%s: the agent's command %s ended by a bug", self._chassis.plate.name, what)
            self._fail(
                command, StepFailed(str(error), kind=type(error).__name__, summary="Command execution failed")
            )
        if command.status == "SUCCEEDED" and command.name not in QUICK:
            self._chassis.note(f"{what} is done")
        await self._chassis.save()
        if command.status == "SUCCEEDED" and command.name in ("standby.power_off", "standby.run_image"):
            await self._power(again=command.name == "standby.run_image")
        if command.name not in QUICK:
            self._ended()

    def _fail(self, command: Command, failure: StepFailed) -> None:
        self._chassis.note(f"{step_name(command)} failed: {failure.details}")
        command.status = "FAILED"
        command.error = {
            "type": failure.kind,
            "code": 500,
            "message": failure.summary,
            "details": failure.details,
        }

    def _known(self, request: web.Request) -> bool:
        given = request.query.get("agent_token", "")
        return hmac.compare_digest(given.encode(), self._ramdisk.token.encode())


class _Order(msgspec.Struct):
    name: str
    params: dict[str, Any] = {}


def _shown(command: Command) -> dict[str, Any]:
    return {
        "id": command.id,
        "command_name": command.name.partition(".")[2],
        "command_params": {},
        "command_status": command.status,
        "command_error": command.error,
        "command_result": command.result,
    }


def _fault(status: int, text: str) -> web.Response:
    return web.json_response(
        {"faultcode": "Client" if status < 500 else "Server", "faultstring": text}, status=status
    )
