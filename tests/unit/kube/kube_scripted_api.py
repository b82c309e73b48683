"""A small Kubernetes API over TLS that keeps objects and their history, and can be told to misbehave.

It serves one made-up kind, `Widget`, and of Kubernetes' own what KINDS says. What a test can do to it: change objects behind the
client's back, cut watches cleanly or in the middle of a line, go silent, go away and come back, forget history, begin history
anew or go back to an earlier day, offer, refuse or ignore streamed lists, and answer the next requests with any status.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from ingot.api.meta import Key, Model, Object, Resource
from ingot.trust import Certificate

TOKEN = "a-token-for-tests"


class WidgetSpec(Model):
    size: int = 0


class Widget(Object):
    spec: WidgetSpec = WidgetSpec()


WIDGET = Resource(group="test.ingot.dev", version="v1", kind="Widget", plural="widgets", type=Widget)
COLLECTION = "/apis/test.ingot.dev/v1/widgets"
KINDS = {
    "widgets": ("Widget", "test.ingot.dev/v1"),
    "events": ("Event", "v1"),
    "leases": ("Lease", "coordination.k8s.io/v1"),
    "validatingwebhookconfigurations": ("ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1"),
}


@dataclass
class Seen:
    """A request as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"


Fault = Callable[[web.Request], Any]


def status(code: int, reason: str, message: str = "no", **headers: str) -> Fault:
    """Answer with a Status."""

    async def answer(request: web.Request) -> web.Response:
        body = {"kind": "Status", "code": code, "reason": reason, "message": message}
        return web.json_response(
            body, status=code, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    return answer


async def hang_up(request: web.Request) -> web.Response:
    """Close the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@dataclass
class Stream:
    """An open watch."""

    version: int
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    end: str = ""


class ScriptedApi:
    """Start with `start`, stop with `stop`; the port stays the same in between."""

    def __init__(self, certificate: Certificate) -> None:
        self._certificate = certificate
        self._runner: web.AppRunner | None = None
        self._port = 0
        self.token = TOKEN
        self.version = 100
        self.forgotten = 0
        self.objects: dict[tuple[str, Key], dict[str, Any]] = {}
        self.log: list[tuple[int, str, str, dict[str, Any]]] = []
        self.seen: list[Seen] = []
        self.faults: deque[Fault] = deque()
        self.streams: list[Stream] = []
        self.page_tokens: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        self.mute = False
        self.gone_as_event = True
        self.bookmark_now = False
        self.after_page: Callable[[], None] | None = None
        self.streams_lists = "yes"
        """What becomes of `sendInitialEvents`: yes, refused (as by a server that has it switched off), or ignored."""
        self.while_streaming: Callable[[], None] | None = None
        self.too_new_is_told = False
        """Whether a watch from a version in the future is refused; a real API server keeps still instead."""
        self.before_answer: Callable[[], Any] | None = None
        self.uids = 0

    # Running

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def authority(self) -> bytes:
        return self._certificate.ca_file.read_bytes()

    async def start(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        context: ssl.SSLContext = self._certificate.server_context()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=context, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        self.cut()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def kubeconfig(self, folder: Path) -> Path:
        import base64

        path = folder / "kubeconfig"
        ca = base64.b64encode(self._certificate.ca_file.read_bytes()).decode()
        path.write_text(
            json.dumps(
                {
                    "current-context": "test",
                    "clusters": [
                        {"name": "c", "cluster": {"server": self.url, "certificate-authority-data": ca}}
                    ],
                    "users": [{"name": "u", "user": {"token": self.token}}],
                    "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
                }
            )
        )
        return path

    # What a test does behind the client's back

    def put(self, name: str, size: int = 0, *, namespace: str = "default", **more: Any) -> dict[str, Any]:
        return self._store("widgets", Key(namespace, name), {"spec": {"size": size}, **more})

    def remove(self, name: str, namespace: str = "default") -> None:
        self._remove("widgets", Key(namespace, name))

    def sizes(self) -> dict[str, int]:
        return {
            key.name: body["spec"]["size"]
            for (plural, key), body in self.objects.items()
            if plural == "widgets"
        }

    def events(self) -> list[dict[str, Any]]:
        return [body for (plural, _), body in self.objects.items() if plural == "events"]

    def cut(self, how: str = "clean") -> None:
        """End all watches: clean, abort (TCP reset), or midline (half a line, then reset)."""
        for stream in self.streams:
            stream.end = how
            stream.wake.set()
        self.streams = []

    def bookmark(self) -> None:
        """Tell every watch, now and from now on, how far it has come."""
        self.bookmark_now = True
        for stream in self.streams:
            stream.wake.set()

    def forget(self) -> None:
        """Compact: versions before now are gone, and so are the pages under way."""
        self.forgotten = self.version
        self.page_tokens.clear()

    def begin_anew(self) -> None:
        """Lose everything, as after removing the database."""
        self.version, self.forgotten = 1, 0
        self.objects.clear()
        self.log.clear()
        self.page_tokens.clear()
        self.cut("abort")

    def backup(self) -> Callable[[], None]:
        """Remember this day; what is returned brings it back."""
        version, objects, log = self.version, dict(self.objects), list(self.log)

        def restore() -> None:
            self.version, self.objects, self.log = version, dict(objects), list(log)
            self.page_tokens.clear()
            self.cut("abort")

        return restore

    @property
    def lists(self) -> int:
        """How often all objects were asked for, by the first page or as a stream."""
        return sum(
            seen.query.get("sendInitialEvents") == "true"
            or not (seen.is_watch or "continue" in seen.query or seen.query.get("limit") == "1")
            for seen in self.requests("GET")
        )

    def requests(self, method: str = "", *, watch: bool | None = None) -> list[Seen]:
        return [
            seen
            for seen in self.seen
            if (not method or seen.method == method) and (watch is None or seen.is_watch == watch)
        ]

    # Storage

    def _store(self, plural: str, key: Key, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        old = self.objects.get((plural, key))
        if old is None:
            self.uids += 1
        kind, api_version = KINDS[plural]
        metadata = {
            **body.get("metadata", {}),
            "namespace": key.namespace,
            "name": key.name,
            "uid": old["metadata"]["uid"] if old else f"uid-{self.uids}",
            "resourceVersion": str(self.version),
        }
        made = {**body, "apiVersion": api_version, "kind": kind, "metadata": metadata}
        self.objects[plural, key] = made
        self._tell(plural, "MODIFIED" if old else "ADDED", made)
        return made

    def _remove(self, plural: str, key: Key) -> None:
        self.version += 1
        last = self.objects.pop((plural, key))
        metadata = {**last["metadata"], "resourceVersion": str(self.version)}
        self._tell(plural, "DELETED", {**last, "metadata": metadata})

    def _tell(self, plural: str, event: str, body: dict[str, Any]) -> None:
        self.log.append((self.version, plural, event, body))
        for stream in self.streams:
            stream.wake.set()

    # HTTP

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw) if raw else None
        self.seen.append(Seen(request.method, request.path, dict(request.query), dict(request.headers), body))
        if self.faults:
            answer: web.StreamResponse = await self.faults.popleft()(request)
            return answer
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return _status(401, "Unauthorized", "Unauthorized")
        if self.mute:
            await asyncio.sleep(3600)
        if self.before_answer is not None and request.method != "GET":
            await self.before_answer()
        plural, key = _parse(request.path)
        if request.method == "GET" and not key.name:
            if request.query.get("watch") == "true":
                return await self._watch(request, plural)
            return self._list(request, plural)
        return self._object(request, plural, key, body)

    def _list(self, request: web.Request, plural: str) -> web.Response:
        token, limit = request.query.get("continue", ""), int(request.query.get("limit", "0"))
        if token and token not in self.page_tokens:
            return _status(410, "Expired", "The provided continue parameter is too old")
        if token:
            version, items = self.page_tokens.pop(token)
        else:
            version = self.version
            items = [body for (kind, _), body in sorted(self.objects.items()) if kind == plural]
        page, rest = (items[:limit], items[limit:]) if limit else (items, [])
        metadata = {"resourceVersion": str(version)}
        if rest:
            metadata["continue"] = f"after-{len(self.seen)}"
            self.page_tokens[metadata["continue"]] = (version, rest)
        if self.after_page is not None:
            self.after_page()
        shown = [_shown(request, body) for body in page]
        if plural == "events":
            for body in shown:
                body.pop("kind", None)
        return web.json_response({"kind": "List", "metadata": metadata, "items": shown or None})

    def _object(self, request: web.Request, plural: str, key: Key, body: Any) -> web.Response:
        if request.method == "POST":
            key = Key(key.namespace, body["metadata"]["name"])
            if (plural, key) in self.objects:
                return _status(409, "AlreadyExists", f'{plural} "{key.name}" already exists')
            return web.json_response(self._store(plural, key, body), status=201)
        known = self.objects.get((plural, key))
        if known is None:
            return _status(404, "NotFound", f'{plural} "{key.name}" not found')
        if request.method == "PATCH":
            return self._patch(plural, key, known, body)
        if request.method == "DELETE":
            uid = (body.get("preconditions") or {}).get("uid")
            if uid and uid != known["metadata"]["uid"]:
                return _status(409, "Conflict", "the UID in the precondition does not match")
            self._remove(plural, key)
            return _status(200, "", "deleted")
        return web.json_response(_shown(request, known))

    def _patch(self, plural: str, key: Key, known: dict[str, Any], body: Any) -> web.Response:
        wanted = body.get("metadata", {}).get("resourceVersion")
        if wanted and wanted != known["metadata"]["resourceVersion"]:
            return _status(409, "Conflict", "the object has been modified")
        return web.json_response(self._store(plural, key, _merged(known, body)))

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        everything = request.query.get("sendInitialEvents") == "true"
        if everything and self.streams_lists == "refused":
            return _status(
                422, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch"
            )
        start = self.version if everything else int(request.query["resourceVersion"])
        stream = Stream(start)
        if start < self.forgotten and not self.gone_as_event:
            return _status(410, "Expired", "too old resource version")
        if start > self.version and self.too_new_is_told:
            return _status(504, "Timeout", "Too large resource version")
        response = web.StreamResponse()
        await response.prepare(request)
        if everything:
            self.streams.append(stream)
            await self._stream_list(request, response, plural, stream)
        if start < self.forgotten:
            error = {
                "kind": "Status",
                "code": 410,
                "reason": "Expired",
                "message": "too old resource version",
            }
            await response.write(_line("ERROR", error))
            return response
        if not everything:
            self.streams.append(stream)
        deadline = asyncio.get_running_loop().time() + float(request.query["timeoutSeconds"])
        while asyncio.get_running_loop().time() < deadline:
            stream.wake.clear()
            reached = self.version
            for version, kind, event, body in list(self.log):
                if version > stream.version and kind == plural:
                    await response.write(_line(event, _shown(request, body)))
                    stream.version = version
            if self.bookmark_now and reached >= stream.version:
                await response.write(_line("BOOKMARK", {"metadata": {"resourceVersion": str(reached)}}))
            if stream.end:
                if stream.end == "midline":
                    await response.write(b'{"type":"MODIFIED","object":{"metadata":{"name":"ha')
                if stream.end != "clean":
                    assert request.transport is not None
                    request.transport.abort()
                return response
            try:
                async with asyncio.timeout_at(deadline):
                    await stream.wake.wait()
            except TimeoutError:
                break
        return response

    async def _stream_list(
        self, request: web.Request, response: web.StreamResponse, plural: str, stream: Stream
    ) -> None:
        for (kind, _), body in sorted(self.objects.items()):
            if kind == plural:
                await response.write(_line("ADDED", _shown(request, body)))
        if self.while_streaming is not None:
            self.while_streaming()
        for version, kind, event, body in list(self.log):
            if version > stream.version and kind == plural:
                await response.write(_line(event, _shown(request, body)))
                stream.version = version
        if self.streams_lists == "yes":
            annotations = {"k8s.io/initial-events-end": "true"}
            metadata = {"resourceVersion": str(max(stream.version, 1)), "annotations": annotations}
            await response.write(_line("BOOKMARK", {"metadata": metadata}))


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _parse(path: str) -> tuple[str, Key]:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    return parts[0], Key(namespace, parts[1] if len(parts) > 1 else "")


def _shown(request: web.Request, body: dict[str, Any]) -> dict[str, Any]:
    if "as=PartialObjectMetadata" in request.headers.get("Accept", ""):
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": body["metadata"],
        }
    return dict(body)


def _line(event: str, body: dict[str, Any]) -> bytes:
    return json.dumps({"type": event, "object": body}).encode() + b"\n"


def _status(code: int, reason: str, message: str) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code)
