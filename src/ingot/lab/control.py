"""The lab's control face: look at the servers, make them misbehave, change a BMC's password, add an image.

Over TLS, with a bearer token. It shows what a person in front of the servers would see, and it is not part of what Ironic or
the operator may know: only tests, benches and people use it.
"""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec
from aiohttp import web

from ingot.lab.chassis import Chassis
from ingot.lab.errors import LabError
from ingot.lab.faults import Faults
from ingot.lab.listener import Listener
from ingot.lab.views import AddedImage, NewPassword, ServerView, view
from ingot.trust import Secret

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LARGEST_IMAGE = 1 << 30


class Farm(Protocol):
    """What the control face asks of the farm."""

    def chassis(self) -> list[Chassis]: ...

    async def set_faults(self, name: str, faults: Faults) -> None: ...

    async def set_password(self, name: str, password: str) -> None: ...

    async def add_image(self, name: str, content: bytes) -> AddedImage: ...


class Control:
    def __init__(self, farm: Farm, *, host: str, port: int, token: Secret, context: ssl.SSLContext) -> None:
        self._farm = farm
        self._token = token
        app = web.Application(
            middlewares=[self._authenticate, self._in_words], client_max_size=_LARGEST_IMAGE
        )
        app.router.add_get("/lab/v1/servers", self._list)
        app.router.add_get("/lab/v1/servers/{name}", self._show)
        app.router.add_put("/lab/v1/servers/{name}/faults", self._faults)
        app.router.add_post("/lab/v1/servers/{name}/password", self._password)
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
        except LabError as error:
            return _error(400, str(error))
        except msgspec.DecodeError as error:
            return _error(
                400, f"the body of {request.method} {request.path} is not what it should be: {error}"
            )
        except web.HTTPException as error:
            return _error(error.status, f"{request.method} {request.path}: {error.text}")

    async def _list(self, _: web.Request) -> web.Response:
        return _json([view(chassis) for chassis in self._farm.chassis()])

    async def _show(self, request: web.Request) -> web.Response:
        return _json(self._view(request))

    async def _faults(self, request: web.Request) -> web.Response:
        self._view(request)
        await self._farm.set_faults(
            request.match_info["name"], msgspec.json.decode(await request.read(), type=Faults)
        )
        return _json(self._view(request))

    async def _password(self, request: web.Request) -> web.Response:
        self._view(request)
        wanted = msgspec.json.decode(await request.read(), type=NewPassword)
        await self._farm.set_password(request.match_info["name"], wanted.password)
        return web.Response(status=204)

    async def _image(self, request: web.Request) -> web.Response:
        name = request.query.get("name", "image.raw")
        return _json(await self._farm.add_image(name, await request.read()), status=201)

    def _view(self, request: web.Request) -> ServerView:
        name = request.match_info["name"]
        for chassis in self._farm.chassis():
            if chassis.plate.name == name:
                return view(chassis)
        raise web.HTTPNotFound(text=f"the lab has no server {name!r}")


def _json(value: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json", status=status)


def _error(status: int, text: str) -> web.Response:
    return _json({"error": text}, status=status)
