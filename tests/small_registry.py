"""A registry in memory that can misbehave: OCI's distribution API as far as it is needed, and faults on demand.

The real one (Debian's docker-registry) is in `test_release_registry`; this one is for what that never does.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

USER, PASSWORD = "ingot", "s3cret:with:colons"
TOKEN = "a-token-from-the-token-server"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
EMPTY = f"sha256:{hashlib.sha256(b'{}').hexdigest()}"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class SmallRegistry:
    auth: str = ""
    """"", "basic" or "bearer"."""
    blobs: dict[str, bytes] = field(default_factory=dict)
    documents: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    """By REPOSITORY/TAG-or-digest."""
    owned: set[tuple[str, str]] = field(default_factory=set)
    """Which repository has which blob."""
    uploads: dict[str, bytearray] = field(default_factory=dict)
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Method, path, and what authorized it."""
    refuse: dict[str, list[int]] = field(default_factory=dict)
    """By method: statuses to answer with instead, one after the other."""
    says: tuple[int, bytes] | None = None
    """The answer to any question, instead."""
    cut_downloads: list[int] = field(default_factory=list)
    """After how many bytes the next downloads are cut."""
    cut_uploads: list[int] = field(default_factory=list)
    """How much of the next pieces is taken before the connection is cut."""
    ranges: bool = True
    forget_uploads: bool = False
    lose_last_answer: bool = False
    lie: bytes | None = None
    """What is handed out instead of any blob."""
    elsewhere: str | None = None
    """Where blobs are redirected to."""
    asks_elsewhere: bool = False
    """As the place that blobs are redirected to: asks for a token of a server of its own, and hands one out."""
    realm: str | None = None
    token_life: int = 10**9
    """How many requests a token is good for."""
    url: str = ""

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]

    def store(self, repository: str, tag: str, content: bytes, media_type: str) -> dict[str, Any]:
        """Put a document there, as a push would; its descriptor."""
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        for key in (tag, digest):
            self.documents[f"{repository}/{key}"] = content, media_type
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def store_disk(self, repository: str, tag: str, disk: bytes, *, disk_type: str = "raw") -> None:
        """Put the image of a disk there in the form in which CoreOS and bootc publish theirs: an index of artifacts."""
        digest = f"sha256:{hashlib.sha256(disk).hexdigest()}"
        self.blobs[digest] = disk
        self.owned.add((repository, digest))
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "artifactType": "application/vnd.example.disk",
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": EMPTY, "size": 2},
            "layers": [{"mediaType": "application/octet-stream", "digest": digest, "size": len(disk)}],
        }
        found = self.store(repository, f"{tag}-disk", json.dumps(manifest).encode(), MANIFEST)
        found |= {
            "annotations": {"disktype": disk_type},
            "platform": {"architecture": "amd64", "os": "linux"},
        }
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [found]}
        self.store(repository, tag, json.dumps(index).encode(), INDEX)

    def count(self, method: str, part: str) -> int:
        return sum(1 for found, path, _ in self.asked if found == method and part in path)


@asynccontextmanager
async def small_registry(*, tls: ssl.SSLContext | None = None, **knobs: Any) -> AsyncIterator[SmallRegistry]:
    registry = SmallRegistry(**knobs)
    routes = _Routes(registry)
    app = web.Application(client_max_size=1 << 30, middlewares=[routes.at_the_door])
    name = r"{name:[a-z0-9/._-]+?}"
    app.router.add_get("/token", routes.token)
    app.router.add_post("/token", routes.token)
    app.router.add_get("/v2/", routes.here)
    app.router.add_get(f"/v2/{name}/tags/list", routes.tags)
    app.router.add_route("*", f"/v2/{name}/manifests/{{wanted}}", routes.manifest)
    app.router.add_post(f"/v2/{name}/blobs/uploads/", routes.begin)
    app.router.add_route("*", f"/v2/{name}/blobs/uploads/{{upload}}", routes.upload)
    app.router.add_get(f"/v2/{name}/blobs/{{digest}}", routes.blob)
    app.router.add_get("/elsewhere/{digest}", routes.stored_elsewhere)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    registry.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield registry
    finally:
        await runner.cleanup()


class _Routes:
    def __init__(self, registry: SmallRegistry) -> None:
        self.registry = registry
        self.left = registry.token_life

    @web.middleware
    async def at_the_door(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        registry = self.registry
        registry.asked.append((request.method, request.path, request.headers.get("Authorization")))
        if registry.says is not None:
            return web.Response(status=registry.says[0], body=registry.says[1])
        if statuses := registry.refuse.get(request.method):
            return web.Response(status=statuses.pop(0), headers={"Retry-After": "0"})
        if request.path.startswith("/v2/") and (refused := self.check(request)) is not None:
            return refused
        return await handler(request)

    def check(self, request: web.Request) -> web.Response | None:
        registry, given = self.registry, request.headers.get("Authorization")
        basic = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if registry.auth == "basic" and given != basic:
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="Small, Registry"'})
        if registry.auth == "bearer":
            self.left -= 1
            if given != f"Bearer {TOKEN}" or self.left < 0:
                realm = registry.realm or f"{registry.url}/token"
                asks = f'Bearer realm="{realm}",service="small",scope="repository:x:pull"'
                return web.Response(status=401, headers={"WWW-Authenticate": asks})
        return None

    async def token(self, request: web.Request) -> web.Response:
        given = request.headers.get("Authorization")
        if request.method == "POST":
            form = await request.post()
            if (form["grant_type"], form["refresh_token"]) != ("refresh_token", "identity"):
                return web.Response(status=401)
        elif given != "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode():
            return web.Response(status=401)
        self.left = self.registry.token_life
        return web.json_response({"token": TOKEN})

    async def here(self, request: web.Request) -> web.Response:
        return web.json_response({})

    async def tags(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        found = [key.rpartition("/") for key in self.registry.documents]
        tags = [tag for repository, _, tag in found if repository == name and ":" not in tag]
        return web.json_response({"name": name, "tags": tags})

    async def manifest(self, request: web.Request) -> web.Response:
        registry, name, wanted = self.registry, request.match_info["name"], request.match_info["wanted"]
        if request.method == "PUT":
            registry.store(name, wanted, await request.read(), request.content_type)
            return web.Response(status=201)
        if (found := registry.documents.get(f"{name}/{wanted}")) is None:
            return web.Response(status=404)
        return web.Response(body=found[0], content_type=found[1])

    async def blob(self, request: web.Request) -> web.StreamResponse:
        registry, name, digest = self.registry, request.match_info["name"], request.match_info["digest"]
        if (name, digest) not in registry.owned:
            return web.Response(status=404)
        if registry.elsewhere is not None and request.method == "GET":
            return web.Response(status=307, headers={"Location": f"{registry.elsewhere}/elsewhere/{digest}"})
        return await self.hand_out(request, digest)

    async def stored_elsewhere(self, request: web.Request) -> web.StreamResponse:
        if self.registry.asks_elsewhere:
            asks = f'Bearer realm="{self.registry.url}/token"'
            return web.Response(status=401, headers={"WWW-Authenticate": asks})
        return await self.hand_out(request, request.match_info["digest"])

    async def hand_out(self, request: web.Request, digest: str) -> web.StreamResponse:
        registry = self.registry
        content = registry.blobs[digest] if registry.lie is None else registry.lie
        begin, status, headers = 0, 200, {}
        if registry.ranges and (found := re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))):
            begin, status = int(found[1]), 206
            headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        answer = web.StreamResponse(status=status, headers=headers)
        answer.content_length = len(content) - begin
        await answer.prepare(request)
        if request.method == "HEAD":
            return answer
        if registry.cut_downloads:
            await answer.write(content[begin : begin + registry.cut_downloads.pop(0)])
            assert request.transport is not None
            request.transport.close()
            return answer
        await answer.write(content[begin:])
        return answer

    async def begin(self, request: web.Request) -> web.Response:
        registry, name = self.registry, request.match_info["name"]
        mount, source = request.query.get("mount", ""), request.query.get("from", "")
        if (source, mount) in registry.owned:
            registry.owned.add((name, mount))
            return web.Response(status=201)
        upload = f"u{len(registry.uploads)}"
        registry.uploads[upload] = bytearray()
        return web.Response(
            status=202, headers={"Location": f"/v2/{name}/blobs/uploads/{upload}?state=x%2Fy"}
        )

    async def upload(self, request: web.Request) -> web.StreamResponse:
        registry, name, upload = self.registry, request.match_info["name"], request.match_info["upload"]
        assert request.query["state"] == "x/y", "the client changed the place it was given"
        if upload not in registry.uploads:
            return web.Response(status=404)
        got = registry.uploads[upload]
        where = {"Location": f"{request.path}?state=x%2Fy"}
        if request.method == "GET":
            return web.Response(status=204, headers=where | {"Range": f"0-{max(0, len(got) - 1)}"})
        content = await request.read()
        if request.method == "PATCH":
            begin = int(request.headers["Content-Range"].partition("-")[0])
            if begin != len(got):
                return web.Response(status=416)
            if registry.cut_uploads:
                got += content[: registry.cut_uploads.pop(0)]
                if registry.forget_uploads:
                    del registry.uploads[upload]
                assert request.transport is not None
                request.transport.close()
                return web.Response()
            got += content
            return web.Response(status=202, headers=where | {"Range": f"0-{len(got) - 1}"})
        digest = request.query["digest"]
        if digest != f"sha256:{hashlib.sha256(got).hexdigest()}":
            problem = {"errors": [{"code": "DIGEST_INVALID", "message": "provided digest did not match"}]}
            return web.json_response(problem, status=400)
        registry.blobs[digest] = bytes(registry.uploads.pop(upload))
        registry.owned.add((name, digest))
        if registry.lose_last_answer:
            registry.lose_last_answer = False
            assert request.transport is not None
            request.transport.close()
        return web.Response(status=201)
