"""The lab's control face: look at the servers, make them misbehave, hold them, restart a BMC, change its password, add an image.

Over TLS, with a bearer token. It shows what a person in front of the servers would see, and it is not part of what Ironic or
the operator may know: only tests, benches and people use it. Below /lab/v1:

    GET  servers                     all of them; ?name= takes a pattern like rack-*, ?power= On or Off,
                                     ?runs= ramdisk, instance or nothing, ?history=false leaves out the logs
    PUT  servers?name=PATTERN        faults, plan and hold of all servers whose name matches; what is not given stays
    GET  servers/NAME
    PUT  servers/NAME/faults         the steady faults; {} is good behaviour
    PUT  servers/NAME/plan           faults in time: [{"after": 5, "lasts": 10, "faults": {...}}]; [] is none
    PUT  servers/NAME/hold           {"place": "boot"}: wait there until released by {"place": ""}
    POST servers/NAME/bmc/reset      {"seconds": 5}: the BMC is away for so long, and forgets its sessions
    POST servers/NAME/password       {"password": "..."}
    POST images?name=FILE            the body is served by the depot
"""

from __future__ import annotations

import asyncio
import hmac
import ssl
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from typing import Any, Protocol

import msgspec
from aiohttp import web

from ingot.lab.chassis import Chassis
from ingot.lab.errors import LabError
from ingot.lab.faults import Faults, Planned
from ingot.lab.listener import Listener
from ingot.lab.record import PowerState
from ingot.lab.views import AddedImage, BmcReset, Change, Changed, Hold, NewPassword, Runs, view
from ingot.trust import Secret

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LARGEST_IMAGE = 1 << 30


class Farm(Protocol):
    """What the control face asks of the farm."""

    def chassis(self) -> list[Chassis]: ...

    async def change(self, chassis: Chassis, change: Change) -> None: ...

    def reset_bmc(self, chassis: Chassis, seconds: float) -> None: ...

    async def set_password(self, chassis: Chassis, password: str) -> None: ...

    async def add_image(self, name: str, content: bytes) -> AddedImage: ...


class Control:
    def __init__(self, farm: Farm, *, host: str, port: int, token: Secret, context: ssl.SSLContext) -> None:
        self._farm = farm
        self._token = token
        app = web.Application(
            middlewares=[self._authenticate, self._in_words], client_max_size=_LARGEST_IMAGE
        )
        app.router.add_get("/lab/v1/servers", self._list)
        app.router.add_put("/lab/v1/servers", self._change_all)
        one = "/lab/v1/servers/{name}"
        app.router.add_get(one, self._show)
        app.router.add_put(f"{one}/faults", self._faults)
        app.router.add_put(f"{one}/plan", self._plan)
        app.router.add_put(f"{one}/hold", self._hold)
        app.router.add_post(f"{one}/bmc/reset", self._reset_bmc)
        app.router.add_post(f"{one}/password", self._password)
        app.router.add_post("/lab/v1/images", self._image)
        self._listener = Listener(app, host=host, port=port, context=context)
        self._host = host

    @property
    def url(self) -> str:
        return f"https://{self._host}:{self._listener.port}"

    async def start(self) -> None:
        await self._listener.start()

    async def stop(self) -> None:
        await self._listener.stop()

    @web.middleware
    async def _authenticate(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(errors="replace"), self._token.reveal().encode()):
            return _error(
                401, "this call needs the lab's token: Authorization: Bearer <content of lab/token>"
            )
        return await handler(request)

    @web.middleware
    async def _in_words(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except _NotThere as error:
            return _error(404, str(error))
        except LabError as error:
            return _error(400, str(error))
        except msgspec.DecodeError as error:
            return _error(
                400, f"what {request.method} {request.path} was given is not what it should be: {error}"
            )
        except web.HTTPException as error:
            return _error(error.status, f"{request.method} {request.path}: {error.text}")

    async def _list(self, request: web.Request) -> web.Response:
        query = msgspec.convert(dict(request.query), _Query, strict=False)
        found = [chassis for chassis in self._farm.chassis() if query.fits(chassis)]
        return _json([view(chassis, history=query.history) for chassis in found])

    async def _change_all(self, request: web.Request) -> web.Response:
        query = msgspec.convert(dict(request.query), _Query, strict=False)
        change = msgspec.json.decode(await request.read(), type=Change)
        found = [chassis for chassis in self._farm.chassis() if query.fits(chassis)]
        if not found:
            raise _NotThere(f"the lab has no server that fits {query.name!r}")
        await asyncio.gather(*(self._farm.change(chassis, change) for chassis in found))
        return _json(Changed(names=[chassis.plate.name for chassis in found]))

    async def _show(self, request: web.Request) -> web.Response:
        return _json(view(self._named(request)))

    async def _faults(self, request: web.Request) -> web.Response:
        return await self._change(
            request, Change(faults=msgspec.json.decode(await request.read(), type=Faults))
        )

    async def _plan(self, request: web.Request) -> web.Response:
        return await self._change(
            request, Change(plan=msgspec.json.decode(await request.read(), type=list[Planned]))
        )

    async def _hold(self, request: web.Request) -> web.Response:
        wanted = msgspec.json.decode(await request.read(), type=Hold)
        return await self._change(request, Change(hold=wanted.place))

    async def _change(self, request: web.Request, change: Change) -> web.Response:
        chassis = self._named(request)
        await self._farm.change(chassis, change)
        return _json(view(chassis))

    async def _reset_bmc(self, request: web.Request) -> web.Response:
        wanted = msgspec.json.decode(await request.read() or b"{}", type=BmcReset)
        self._farm.reset_bmc(self._named(request), wanted.seconds)
        return web.Response(status=202)

    async def _password(self, request: web.Request) -> web.Response:
        wanted = msgspec.json.decode(await request.read(), type=NewPassword)
        await self._farm.set_password(self._named(request), wanted.password)
        return web.Response(status=204)

    async def _image(self, request: web.Request) -> web.Response:
        name = request.query.get("name", "image.raw")
        return _json(await self._farm.add_image(name, await request.read()), status=201)

    def _named(self, request: web.Request) -> Chassis:
        name = request.match_info["name"]
        for chassis in self._farm.chassis():
            if chassis.plate.name == name:
                return chassis
        raise _NotThere(f"the lab has no server {name!r}")


class _NotThere(LabError):
    """No server has this name."""


class _Query(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str = "*"
    power: PowerState | None = None
    runs: Runs | None = None
    history: bool = True

    def fits(self, chassis: Chassis) -> bool:
        record = chassis.record
        return (
            fnmatchcase(chassis.plate.name, self.name)
            and self.power in (None, record.power)
            and self.runs in (None, record.booted_into)
        )


def _json(value: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json", status=status)


def _error(status: int, text: str) -> web.Response:
    return _json({"error": text}, status=status)
