"""The dispatch table: from a path to the resource and its handlers. One table serves every server of a profile.

A template's part in braces stands for one part of a path: {system}, {manager} and {chassis} must be the server's own, all
others are handed to the handler by their name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ingot.lab.redfish.answers import Answer, Document, Refusal, missing
from ingot.lab.redfish.server import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, as a handler sees it."""

    server: Server
    method: str
    path: str
    ids: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    has_body: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)

    def at(self, path: str, ids: Mapping[str, str]) -> Call:
        """The same caller, reading another resource."""
        return Call(server=self.server, method="GET", path=path, ids=ids)


Show = Callable[[Call], Document]
Act = Callable[[Call], Awaitable[Answer]]


class Resource:
    """What can be done at one path. `tag` is what the ETag covers, for a resource that can be changed."""

    __slots__ = ("acts", "show", "tag")

    def __init__(self) -> None:
        self.show: Show | None = None
        self.tag: Show | None = None
        self.acts: dict[str, Act] = {}

    @property
    def allow(self) -> str:
        reads = {"GET", "HEAD"} if self.show or "GET" in self.acts else set()
        return ", ".join(sorted(reads | set(self.acts)))

    def etag(self, call: Call) -> str | None:
        covered = self.tag or (self.show if "PATCH" in self.acts else None)
        if covered is None:
            return None
        return '"' + hashlib.sha256(msgspec.json.encode(covered(call))).hexdigest()[:16] + '"'


class _Node:
    __slots__ = ("any", "below", "name", "resource")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.any: _Node | None = None
        self.name = ""
        self.resource: Resource | None = None


class Table:
    def __init__(self) -> None:
        self._root = _Node()

    def show(self, template: str, show: Show, *, tag: Show | None = None) -> None:
        """GET at this path answers this document."""
        resource = self._resource(template)
        resource.show, resource.tag = show, tag

    def act(self, method: str, template: str, act: Act) -> None:
        self._resource(template).acts[method] = act

    def find(self, server: Server, path: str) -> tuple[Resource, Mapping[str, str]]:
        """The resource and what stands in the path's places; a `Refusal` when there is none."""
        node, ids = self._root, {}
        for part in _parts(path):
            if part in node.below:
                node = node.below[part]
            elif node.any is not None and server.owns(node.any.name, part):
                node = node.any
                ids[node.name] = part
            else:
                raise missing(path)
        if node.resource is None:
            raise missing(path)
        return node.resource, ids

    def read(self, call: Call, path: str) -> Document:
        """The document at another path, as this caller would get it."""
        resource, ids = self.find(call.server, path)
        if resource.show is None:
            raise missing(path)
        return resource.show(call.at(path, ids))

    def _resource(self, template: str) -> Resource:
        node = self._root
        for part in _parts(template):
            if part.startswith("{"):
                if node.any is None:
                    node.any = _Node()
                    node.any.name = part[1:-1]
                assert node.any.name == part[1:-1], template
                node = node.any
            else:
                node = node.below.setdefault(part, _Node())
        if node.resource is None:
            node.resource = Resource()
        return node.resource


def _parts(path: str) -> list[str]:
    return path.strip("/").split("/")


def check_tag(resource: Resource, call: Call) -> None:
    """A change that was decided on an older state is refused."""
    expected = call.headers.get("If-Match")
    if expected not in (None, "*") and expected != resource.etag(call):
        raise Refusal(412, "PreconditionFailed", "The resource has changed since it was read.")
