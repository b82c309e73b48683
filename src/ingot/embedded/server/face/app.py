"""The HTTP face: from a request to its answer.

One handler for all paths, because the API is one grammar: identify the caller, find the place, ask whether they may,
do it. Every error is a Kubernetes `Status`; what we did not foresee is a 500 without details for the client and a
trace, without values, in the log.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final

from aiohttp import web

from ingot.api.meta import Key
from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import (
    Refused,
    bad_request,
    internal,
    method_not_allowed,
    too_large,
    unknown_path,
)
from ingot.embedded.server.face import discovery, requests, reviews
from ingot.embedded.server.face.auth import OPEN_PATHS, Gate, Identity, require
from ingot.embedded.server.face.openapi import OpenApi
from ingot.embedded.server.face.rendering import View, view_for
from ingot.embedded.server.face.requests import BODY_LIMIT, Target
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.reads import reading, watching
from ingot.embedded.server.storage.store import Store, Stored
from ingot.embedded.server.writes.writing import Deletion, Manner, Writing

log = logging.getLogger(__name__)

_JSON: Final = "application/json"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    def __init__(self, *, store: Store, registry: Registry, gate: Gate, writing: Writing) -> None:
        self._store = store
        self._registry = registry
        self._gate = gate
        self._writing = writing
        self._groups = discovery.groups(registry)
        self._openapi = OpenApi(registry)

    def application(self) -> web.Application:
        app = web.Application(middlewares=[_errors_as_status], client_max_size=BODY_LIMIT)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        if path in OPEN_PATHS:
            return self._open(path)
        who = self._gate.identify(request.headers.get("Authorization", ""))
        parts = path.strip("/").split("/")
        if request.method == "GET" and (document := self._described(request, parts)) is not None:
            return document
        if review := self._review_at(parts):
            return await self._review(request, review, who)
        return await self._resource(request, who, path)

    # Whether we live

    def _open(self, path: str) -> web.Response:
        if path == "/version":
            return _json(discovery.VERSION)
        if self._store.trouble and path == "/readyz":
            return web.Response(status=500, text=f"not ready: {self._store.trouble}")
        return web.Response(text="ok")

    # What there is

    def _described(self, request: web.Request, parts: list[str]) -> web.Response | None:
        match parts:
            case [""]:
                return _json({"paths": self._paths()})
            case ["api" | "apis" as root]:
                return self._discovery(request, core=root == "api")
            case ["api", "v1"]:
                return _json(discovery.resource_list("v1", self._groups[""]["v1"]))
            case ["apis", group] if group in self._groups:
                return _json(discovery.group(group, self._groups[group]))
            case ["apis", group, version] if version in self._groups.get(group, {}):
                return _json(discovery.resource_list(f"{group}/{version}", self._groups[group][version]))
            case ["openapi", "v3"]:
                return _json(self._openapi.index())
            case ["openapi", "v3", *place]:
                body = self._openapi.document("/".join(place))
                return _raw(body) if body is not None else None
            case _:
                return None

    def _discovery(self, request: web.Request, *, core: bool) -> web.Response:
        found = {group: versions for group, versions in self._groups.items() if (group == "") is core}
        if content_type := discovery.wants_aggregated(request.headers.get("Accept", "")):
            body = encode(discovery.aggregated(found, content_type))
            return web.Response(body=body, headers={"Content-Type": content_type, "Vary": "Accept"})
        if core:
            return _json(discovery.core_versions(request.host.encode("ascii", "replace").decode()))
        return _json(discovery.group_list(found))

    def _paths(self) -> list[str]:
        places = [
            f"/apis/{group}/{version}" if group else f"/api/{version}"
            for group, versions in self._groups.items()
            for version in versions
        ]
        return ["/api", "/apis", *places, *sorted(OPEN_PATHS), "/openapi/v3"]

    # Who am I, what may I

    def _review_at(self, parts: list[str]) -> discovery.Review | None:
        for review in discovery.REVIEWS:
            if parts == ["apis", review.group, review.version, review.plural]:
                return review
        return None

    async def _review(self, request: web.Request, review: discovery.Review, who: Identity) -> web.Response:
        if request.method != "POST":
            raise method_not_allowed("a review is posted; nothing is kept that could be read")
        return _json(reviews.answer(review, who, await requests.document(request)), status=201)

    # Objects

    async def _resource(self, request: web.Request, who: Identity, path: str) -> web.StreamResponse:
        where = requests.target(self._registry, path)
        word = requests.verb(request.method, where, request.query)
        require(who, word, where.kind.resource, namespace=where.namespace, name=where.name)
        requests.check_served(where, word)
        view = view_for(
            where.kind, request.headers.get("Accept", ""), request.query.get("includeObject", "Metadata")
        )
        match word:
            case "get":
                return _raw(view.one(reading.get(self._store, where.kind, Key(where.namespace, where.name))))
            case "list":
                page = reading.page(self._store, where.kind, requests.list_query(where, request.query))
                return _raw(view.listed(page.items, page.metadata))
            case "watch":
                return await self._watch(request, where, view)
            case "create":
                return await self._create(request, where, view)
            case "update" | "patch":
                return await self._change(request, where, view, whole=word == "update")
            case "delete":
                return await self._delete(request, where, view)
            case _:
                return await self._delete_collection(request, where, view)

    async def _watch(self, request: web.Request, where: Target, view: View) -> web.StreamResponse:
        chunks = watching.events(self._store, where.kind, requests.watch_query(where, request.query), view)
        response = web.StreamResponse(headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"})
        # The headers go out at once: a client that waits for an event must know that it is being served.
        await response.prepare(request)
        try:
            async for chunk in chunks:
                await response.write(chunk)
            await response.write_eof()
        except ConnectionError:
            log.debug("a watcher of %s went away", where.kind.resource)
        return response

    async def _create(self, request: web.Request, where: Target, view: View) -> web.Response:
        if where.kind.namespaced and not where.namespace:
            raise bad_request(f"{where.kind.resource} live in a namespace, and the path names none")
        manner = requests.manner(request.query)
        document = await requests.document(request)
        item = await self._writing.create(where.kind, where.namespace, document, manner)
        return _written(view, item, manner, status=201)

    async def _change(self, request: web.Request, where: Target, view: View, *, whole: bool) -> web.Response:
        manner = requests.manner(request.query)
        if whole:
            replacement = await requests.document(request)
            edit = _replaced_by(replacement)
        else:
            edit = await requests.edit(request, where.kind)
        item = await self._writing.change(
            where.kind,
            Key(where.namespace, where.name),
            edit,
            manner,
            subresource=where.subresource,
            whole=whole,
        )
        return _written(view, item, manner)

    async def _delete(self, request: web.Request, where: Target, view: View) -> web.Response:
        wish = await requests.deletion(request, request.query)
        item, gone = await self._writing.delete(where.kind, Key(where.namespace, where.name), wish)
        if not gone:
            return _raw(view.one(item))
        details: Document = {"name": where.name, "kind": where.kind.plural, "uid": item.uid}
        if where.kind.group:
            details["group"] = where.kind.group
        return _json(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        )

    async def _delete_collection(self, request: web.Request, where: Target, view: View) -> web.Response:
        if where.kind.namespaced and not where.namespace:
            raise method_not_allowed("deleting a whole collection needs a namespace")
        wish = await requests.deletion(request, request.query)
        page = reading.page(self._store, where.kind, requests.list_query(where, request.query))
        deleted = [item async for item in self._deleted(where, page.items, wish)]
        return _raw(view.listed(deleted, {"resourceVersion": str(self._store.version)}))

    async def _deleted(self, where: Target, items: Iterable[Stored], wish: Deletion) -> AsyncIterator[Stored]:
        for item in items:
            try:
                last, _ = await self._writing.delete(where.kind, item.key, wish)
            except Refused as refusal:
                if refusal.code != 404:
                    raise
            else:
                yield last


def _replaced_by(replacement: Document) -> Callable[[Document], Document]:
    return lambda _: replacement


def _written(view: View, item: Stored, manner: Manner, *, status: int = 200) -> web.Response:
    response = _raw(view.one(item), status=status)
    for warning in manner.warnings:
        response.headers.add("Warning", f'299 - "{_header_text(warning)}"')
    return response


def _header_text(text: str) -> str:
    """Text from a client as part of a header: printable ASCII, quotes escaped, not too long."""
    printable = text.encode("ascii", "backslashreplace").decode()[:256]
    cleaned = "".join(character if character.isprintable() else "?" for character in printable)
    return cleaned.replace("\\", "\\\\").replace('"', '\\"')


def _json(document: Document, *, status: int = 200) -> web.Response:
    return _raw(encode(document), status=status)


def _raw(body: bytes, *, status: int = 200) -> web.Response:
    return web.Response(
        status=status, body=body, headers={"Content-Type": _JSON, "Cache-Control": "no-cache, private"}
    )


@web.middleware
async def _errors_as_status(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refused as refusal:
        return _refused(refusal)
    except web.HTTPRequestEntityTooLarge:
        return _refused(too_large(f"the body of the request is larger than {BODY_LIMIT} bytes"))
    except web.HTTPException:
        return _refused(unknown_path())
    except ConnectionError:
        raise
    except Exception as error:  # the edge of a request: the client gets a Status, the log gets the place
        places = "".join(traceback.format_tb(error.__traceback__))
        log.error("%s %s failed with %s\n%s", request.method, request.path, type(error).__name__, places)
        return _refused(internal("the server met an error it did not expect; its log says where"))


def _refused(refusal: Refused) -> web.Response:
    response = _json(refusal.status(), status=refusal.code)
    if refusal.code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
