"""Logs of pods: `GET /api/v1/namespaces/NAMESPACE/pods/POD/log`.

The API has no logs. It finds out which container is meant and on which node it runs, checks what is asked for, and hands the
kubelet's answer on as it comes, until it ends or the client goes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import aiohttp
from aiohttp import web

from ingot.api.meta import Key
from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import (
    Cause,
    Refused,
    bad_request,
    cause,
    method_not_allowed,
    unknown_path,
)
from ingot.embedded.server.face import kubelets
from ingot.embedded.server.face.auth import Identity, require
from ingot.embedded.server.face.kubelets import Kubelets
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.reads import reading
from ingot.embedded.server.storage.store import Store

log = logging.getLogger(__name__)

_HEADERS: Final = {"Content-Type": "text/plain", "Cache-Control": "no-cache, private"}
_SWITCHES: Final = ("follow", "previous", "timestamps")
# Each is a number; the least that it may be.
_NUMBERS: Final = {"limitBytes": 1, "sinceSeconds": 1, "tailLines": 0}
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}")
_ALL_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")


def at(parts: Sequence[str]) -> Key | None:
    """The pod whose log a path names; None for other paths."""
    match parts:
        case ["api", "v1", "namespaces", namespace, "pods", name, "log"]:
            return Key(namespace, name)
        case _:
            return None


class Logs:
    def __init__(self, store: Store, registry: Registry, asking: Kubelets) -> None:
        self._store = store
        self._registry = registry
        self._kubelets = asking

    async def answer(self, request: web.BaseRequest, who: Identity, pod: Key) -> web.StreamResponse:
        require(who, "get", "pods/log", namespace=pod.namespace, name=pod.name)
        if request.method != "GET":
            raise method_not_allowed("the server does not allow this method on the requested resource")
        kind = self._registry.at("", "v1", "pods")
        if kind is None:
            raise unknown_path()
        query = _checked(pod.name, request.query)
        found = reading.get(self._store, kind, pod).document()
        container = _container(pod.name, found, request.query.get("container", ""))
        node = dig(found, "spec", "nodeName")
        if not node:
            # Nothing runs yet, so nothing was said.
            return web.Response(status=204, headers={"Cache-Control": _HEADERS["Cache-Control"]})
        path = f"/containerLogs/{pod.namespace}/{pod.name}/{container}"
        verified = not _is_on(request.query, "insecureSkipTLSVerifyBackend")
        async with self._kubelets.asked(self._kubelets.url(node, path, query), verified=verified) as said:
            if said.status != 200:
                raise await kubelets.refusal(said, name=pod.name)
            return await _handed_on(request, said)


async def _handed_on(request: web.BaseRequest, said: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(headers=_HEADERS)
    response.enable_chunked_encoding()
    await response.prepare(request)
    try:
        async for piece in said.content.iter_any():
            await response.write(piece)
        await response.write_eof()
    except aiohttp.ClientPayloadError:
        # The kubelet went away in the middle. What was said was said.
        log.info("a log ended early: %s", said.url.path)
        await response.write_eof()
    except ConnectionError:
        log.debug("the reader of a log went away: %s", said.url.path)
    return response


def _container(name: str, pod: Document, wanted: str) -> str:
    spec = pod.get("spec") or {}
    named = {part: [str(found.get("name", "")) for found in spec.get(part) or ()] for part in _ALL_CONTAINERS}
    if wanted:
        if not any(wanted in names for names in named.values()):
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(named["containers"]) == 1:
        return named["containers"][0]
    names = named["initContainers"] + named["containers"]
    choice = f", choose one of: [{' '.join(names)}]" if names else ""
    raise bad_request(f"a container name must be specified for pod {name}{choice}")


def _checked(name: str, parameters: Mapping[str, str]) -> dict[str, str]:
    """What the kubelet is asked for, in order. Raises 400 for what cannot be read and 422 for what cannot be meant."""
    made: dict[str, str] = {}
    problems: list[Cause] = []
    for field in _SWITCHES:
        if _is_on(parameters, field):
            made[field] = "true"
    for field, least in _NUMBERS.items():
        if text := parameters.get(field, ""):
            number = _number(text)
            made[field] = str(number)
            if number < least:
                limit = "greater than 0" if least else "greater than or equal to 0"
                problems.append(cause("Invalid", field, f"must be {limit}", shown=str(number)))
    if text := parameters.get("sinceTime", ""):
        made["sinceTime"] = _time(text)
        if "sinceSeconds" in made:
            problems.append(
                cause("Forbidden", "[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")
            )
    if problems:
        listed = ", ".join(f"{found.field}: {found.message}" for found in problems)
        raise Refused(
            422,
            "Invalid",
            f'PodLogOptions "{name}" is invalid: {listed if len(problems) == 1 else f"[{listed}]"}',
            details={"name": name, "kind": "PodLogOptions"},
            causes=problems,
        )
    return dict(sorted(made.items()))


def _is_on(parameters: Mapping[str, str], field: str) -> bool:
    """Like Kubernetes: whatever does not say no says yes."""
    return field in parameters and parameters[field].lower() not in ("false", "0")


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise bad_request(f'strconv.ParseInt: parsing "{text[:40]}": invalid syntax')
    return int(text)


def _time(text: str) -> str:
    try:
        if datetime.fromisoformat(text).tzinfo is not None:
            return text
    except ValueError:
        pass
    raise bad_request(f'parsing time "{text[:40]}": write it like 2006-01-02T15:04:05Z')
