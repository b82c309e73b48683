"""The HTTP face: from a request to its answer.

One handler for all paths, because the API is one grammar: identify the caller, find the place, ask whether they may,
do it. Every error is a Kubernetes `Status`; what we did not foresee is a 500 without details for the client and a
trace, without values, in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage

from ingot.api.meta import Key
from ingot.embedded.server import unforeseen
from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import (
    Refused,
    bad_request,
    internal,
    method_not_allowed,
    too_large,
)
from ingot.embedded.server.face import (
    answers,
    bodies,
    discovery,
    health,
    logs,
    requests,
    reviews,
    scaling,
    stream,
)
from ingot.embedded.server.face.auth import OPEN_PATHS, Gate, Identity, require
from ingot.embedded.server.face.bodies import BODY_LIMIT
from ingot.embedded.server.face.describing import Describing
from ingot.embedded.server.face.logs import Logs
from ingot.embedded.server.face.metrics import CONTENT_TYPE, Metrics
from ingot.embedded.server.face.rendering import View, view_for
from ingot.embedded.server.face.requests import Target
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.reads import reading, watching
from ingot.embedded.server.storage.objects import Stored
from ingot.embedded.server.storage.store import Store
from ingot.embedded.server.writes.writing import Deletion, Manner, Writing

log = logging.getLogger(__name__)

# A client can make up methods; what is counted by them must not grow without end.
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Objects of a collection that are deleted at the same time.
_AT_ONCE: Final = 64
_UNEXPECTED: Final = "the server met an error it did not expect; its log says where"


@dataclass(slots=True)
class _Asked:
    """What a request turned out to be about, for those who count."""

    verb: str = ""
    kind: Kind | None = None
    subresource: str = ""


class Api:
    def __init__(
        self,
        *,
        store: Store,
        registry: Registry,
        gate: Gate,
        writing: Writing,
        metrics: Metrics,
        pod_logs: Logs,
    ) -> None:
        self._store = store
        self._registry = registry
        self._gate = gate
        self._writing = writing
        self._metrics = metrics
        self._logs = pod_logs
        self._describing = Describing(registry)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to a request, whatever happens. What is worth counting about it is counted."""
        begun = time.perf_counter()
        asked = _Asked(verb=request.method.lower() if request.method in _METHODS else "other")
        response = await answers.in_wanted_form(request, await self._answer_or_status(request, asked))
        self._metrics.answered(
            asked.verb, asked.kind, asked.subresource, response.status, time.perf_counter() - begun
        )
        return response

    async def _answer_or_status(self, request: web.BaseRequest, asked: _Asked) -> web.StreamResponse:
        try:
            return await self._answer(request, asked)
        except Refused as refusal:
            return answers.refusing(refusal)
        except web.HTTPRequestEntityTooLarge:
            return answers.refusing(too_large(f"Request entity too large: limit is {BODY_LIMIT}"))
        except ConnectionError:
            raise
        except RecursionError:
            return answers.refusing(bad_request("the object is nested too deeply to be read or changed"))
        except Exception as error:  # the edge of a request: the client gets a Status, the log gets the place
            _log(request, error)
            return answers.refusing(internal(_UNEXPECTED))

    async def _answer(self, request: web.BaseRequest, asked: _Asked) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        if path in OPEN_PATHS:
            return self._open(request, path)
        who = self._gate.admit(request)
        parts = path.strip("/").split("/")
        if request.method == "GET" and (document := self._described(request, parts)) is not None:
            return document
        if asks := reviews.at(parts):
            return await self._review(request, *asks, who)
        if pod := logs.at(parts):
            asked.verb, asked.subresource = "get", "log"
            return await self._logs.answer(request, who, pod)
        return await self._resource(request, who, path, asked)

    # Whether we live, and how well

    def _open(self, request: web.BaseRequest, path: str) -> web.Response:
        if path == "/version":
            if request.method != "GET":
                raise method_not_allowed("the server does not allow this method on the requested resource")
            return answers.of_json(discovery.VERSION)
        return self._health(request, path) or web.Response(text="ok")

    def _health(self, request: web.BaseRequest, path: str) -> web.Response | None:
        return health.answer(path, request.query, lambda: self._store.trouble)

    # What there is

    def _described(self, request: web.BaseRequest, parts: list[str]) -> web.Response | None:
        match parts:
            case ["metrics"]:
                return web.Response(body=self._metrics.text(), headers={"Content-Type": CONTENT_TYPE})
            case ["healthz" | "livez" | "readyz", *_]:
                return self._health(request, "/".join(parts))
            case _:
                return self._describing.answer(request, parts)

    # Who am I, what may I

    async def _review(
        self, request: web.BaseRequest, review: discovery.Review, namespace: str, who: Identity
    ) -> web.Response:
        if request.method != "POST":
            raise method_not_allowed("the server does not allow this method on the requested resource")
        reviews.permit(review, namespace, who)
        manner = requests.manner(request.query, request.headers, who, word="create")
        question = await bodies.document(request, review.kind, manner)
        reviews.take_in_question(review, question, manner)
        answer = reviews.answer(
            review, namespace, question, who=who, gate=self._gate, kinds=self._registry.kinds
        )
        return answers.warn(answers.of_json(answer, status=201), manner.warnings)

    # Objects

    async def _resource(
        self, request: web.BaseRequest, who: Identity, path: str, asked: _Asked
    ) -> web.StreamResponse:
        where = requests.target(self._registry, path)
        asked.kind, asked.subresource = where.kind, where.subresource
        word = asked.verb = requests.verb(request.method, where, request.query)
        require(who, word, where.kind.resource, namespace=where.namespace, name=where.name)
        requests.check_served(where, word)
        if word == "watch":
            return await self._watch(request, where, _view(request, where, of_list=False))
        response = await self._done(request, who, where, word)
        if word not in ("list", "deletecollection"):
            answers.warn(response, _deprecation(where.kind))
        return response

    async def _done(
        self, request: web.BaseRequest, who: Identity, where: Target, word: str
    ) -> web.StreamResponse:
        view = _view(request, where, of_list=word in ("list", "deletecollection"))
        match word:
            case "get":
                key, seen = Key(where.namespace, where.name), request.query.get("resourceVersion", "")
                found = reading.get(self._store, where.kind, key, seen)
                return answers.of_bytes(view.one(found))
            case "list":
                page = reading.page(self._store, where.kind, requests.list_query(where, request.query))
                return await self._listed(request, view, page.items, page.metadata)
            case "create" if where.subresource:
                return await self._act(request, who, where)
            case "create":
                return await self._create(request, who, where, view)
            case "update" | "patch":
                return await self._change(request, who, where, view, whole=word == "update")
            case "delete":
                return await self._delete(request, who, where, view)
            case _:
                return await self._delete_collection(request, who, where, view)

    async def _listed(
        self, request: web.BaseRequest, view: View, items: Sequence[Stored], metadata: Document
    ) -> web.StreamResponse:
        try:
            return await answers.of_parts(request, view.listed(items, metadata), _deprecation(view.kind))
        except ConnectionError:
            # The reader of a long list went away; there is nobody left to answer.
            return answers.of_bytes(b"")

    async def _watch(self, request: web.BaseRequest, where: Target, view: View) -> web.StreamResponse:
        chunks = watching.events(self._store, where.kind, requests.watch_query(where, request.query), view)
        response = answers.warn(answers.endless(), _deprecation(where.kind))
        out = await stream.begun(request, response)
        with self._metrics.watching(where.kind), contextlib.suppress(ConnectionError):
            try:
                async for chunk in chunks:
                    await out.send(chunk)
            except ConnectionError:
                raise
            except Exception as error:  # the answer has begun: what went wrong can only be its last event
                _log(request, error)
                await out.send(b'{"type":"ERROR","object":%b}\n' % encode(internal(_UNEXPECTED).status()))
            await out.end()
        return response

    async def _create(
        self, request: web.BaseRequest, who: Identity, where: Target, view: View
    ) -> web.Response:
        manner = requests.manner(request.query, request.headers, who, word="create")
        document = await bodies.object_of(where.kind, request, manner)
        with answers.warning(manner.warnings):
            item = await self._writing.create(where.kind, where.namespace, document, manner)
        return answers.warn(answers.of_bytes(view.one(item), status=201), manner.warnings)

    async def _act(self, request: web.BaseRequest, who: Identity, where: Target) -> web.Response:
        """What is posted to a part of an object is done to the object, and not kept itself."""
        action = where.kind.actions[where.subresource]
        manner = requests.manner(request.query, request.headers, who, word="create")
        posted = await bodies.document(request, action.takes[2], manner)
        await self._writing.change(
            where.kind,
            Key(where.namespace, where.name),
            lambda current: action.perform(current, posted),
            manner,
            subresource=where.subresource,
        )
        done: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }
        return answers.warn(answers.of_json(done, status=201), manner.warnings)

    async def _change(
        self, request: web.BaseRequest, who: Identity, where: Target, view: View, *, whole: bool
    ) -> web.Response:
        manner = requests.manner(request.query, request.headers, who, word="update" if whole else "patch")
        scaling_only = where.subresource == "scale"
        if not whole and not scaling_only and bodies.is_apply(request.content_type):
            return await self._apply(request, where, view, manner)
        if whole and scaling_only:
            edit = _replaced_by(await bodies.document(request, where.kind.kind, manner))
        elif whole:
            edit = _replaced_by(await bodies.object_of(where.kind, request, manner))
        else:
            edit = await bodies.edit(request, where.kind, manner)
        if scaling_only:
            edit = scaling.through_scale(where.kind, edit)
        with answers.warning(manner.warnings):
            item = await self._writing.change(
                where.kind, Key(where.namespace, where.name), edit, manner, subresource=where.subresource
            )
        return answers.warn(answers.of_bytes(view.one(item)), manner.warnings)

    async def _apply(
        self, request: web.BaseRequest, where: Target, view: View, manner: Manner
    ) -> web.Response:
        config = await bodies.configuration(request, manner, force=requests.flag(request.query, "force"))
        with answers.warning(manner.warnings):
            item, new = await self._writing.apply(
                where.kind, Key(where.namespace, where.name), config, manner, subresource=where.subresource
            )
        return answers.warn(answers.of_bytes(view.one(item), status=201 if new else 200), manner.warnings)

    async def _delete(
        self, request: web.BaseRequest, who: Identity, where: Target, view: View
    ) -> web.Response:
        wish = await requests.deletion(request, request.query, who)
        item, gone = await self._writing.delete(where.kind, Key(where.namespace, where.name), wish)
        if not gone or where.kind.shows_removed:
            return answers.warn(answers.of_bytes(view.one(item)), wish.warnings)
        details: Document = {"name": where.name, "kind": where.kind.plural, "uid": item.uid}
        if where.kind.group:
            details["group"] = where.kind.group
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }
        return answers.warn(answers.of_json(status), wish.warnings)

    async def _delete_collection(
        self, request: web.BaseRequest, who: Identity, where: Target, view: View
    ) -> web.StreamResponse:
        wish = await requests.deletion(request, request.query, who)
        page = reading.page(self._store, where.kind, requests.list_query(where, request.query))
        deleted = await self._deleted(where, page.items, wish)
        return await self._listed(request, view, deleted, {"resourceVersion": str(self._store.version)})

    async def _deleted(self, where: Target, items: Sequence[Stored], wish: Deletion) -> list[Stored]:
        """Many at a time: they share the price of a sync. What others deleted meanwhile is not among the answers."""
        deleted: list[Stored] = []
        for start in range(0, len(items), _AT_ONCE):
            some = (
                self._writing.delete(where.kind, item.key, wish) for item in items[start : start + _AT_ONCE]
            )
            for end in await asyncio.gather(*some, return_exceptions=True):
                if not isinstance(end, BaseException):
                    deleted.append(end[0])
                elif not (isinstance(end, Refused) and end.code == 404):
                    raise end
        return deleted


def _view(request: web.BaseRequest, where: Target, *, of_list: bool) -> View:
    if where.subresource == "scale":
        return scaling.ScaleView(where.kind)
    include = request.query.get("includeObject", "")
    return view_for(where.kind, request.headers.get("Accept", ""), include, of_list=of_list)


def _deprecation(kind: Kind) -> list[str]:
    return [kind.deprecation] if kind.deprecation else []


def _replaced_by(replacement: Document) -> Callable[[Document], Document]:
    return lambda _: replacement


def _log(request: web.BaseRequest, error: Exception) -> None:
    unforeseen.tell(log, f"{request.method} {request.path}", error)


def server(api: Api) -> web.Server:
    """What listens: one handler, no router. Handlers are cancelled when their client goes away; otherwise a quiet watch
    would outlive its watcher."""
    return web.Server(api.answer, request_factory=_request, handler_cancellation=True, access_log=None)


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: web.RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT)
