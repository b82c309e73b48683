"""How objects are shown: whole, as metadata only, or as rows of a table.

What a client gets is negotiated in `Accept`. Whole objects are passed on as the bytes that are stored; only tables
need decoding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import bad_request, not_acceptable
from ingot.embedded.server.kinds.glance import glance
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.storage.objects import Stored

_META_VERSION: Final = "meta.k8s.io/v1"
# What this server can write; YAML is made of the JSON at the very end.
READABLE: Final = frozenset({"application/json", "application/yaml", "application/*", "*/*"})


class _WithMetadata(msgspec.Struct):
    metadata: msgspec.Raw


class View:
    """Whole objects, as they are."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def one(self, item: Stored) -> bytes:
        return item.body_for(self.kind)

    def listed(self, items: Sequence[Stored], metadata: Document) -> Iterator[bytes]:
        """The parts of a list, each made when it is asked for."""
        head = {"kind": self.kind.list_kind, "apiVersion": self.kind.api_version, "metadata": metadata}
        return _enclosed(head, "items", (item.body_for(self.kind) for item in items))

    def bookmark(self, metadata: Document) -> bytes:
        return encode({"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": metadata})

    def event(self, item: Stored) -> bytes:
        return self.one(item)


class MetadataView(View):
    """Only the metadata: what a cache needs that must not hold values."""

    def one(self, item: Stored) -> bytes:
        metadata = bytes(msgspec.json.decode(item.body, type=_WithMetadata).metadata)
        return b'{"kind":"PartialObjectMetadata","apiVersion":"%s","metadata":%s}' % (
            _META_VERSION.encode(),
            metadata,
        )

    def listed(self, items: Sequence[Stored], metadata: Document) -> Iterator[bytes]:
        head = {"kind": "PartialObjectMetadataList", "apiVersion": _META_VERSION, "metadata": metadata}
        return _enclosed(head, "items", (self.one(item) for item in items))

    def bookmark(self, metadata: Document) -> bytes:
        return encode({"kind": "PartialObjectMetadata", "apiVersion": _META_VERSION, "metadata": metadata})


class TableView(View):
    """Rows for people. In a watch only the first event carries the columns."""

    def __init__(self, kind: Kind, include: str) -> None:
        super().__init__(kind)
        self._include = include
        self._metadata = MetadataView(kind)
        self._whole = View(kind)
        self._glance = glance(kind.columns)
        self._announced = False

    def one(self, item: Stored) -> bytes:
        return encode(self._table([item], {"resourceVersion": str(item.version)}))

    def listed(self, items: Sequence[Stored], metadata: Document) -> Iterator[bytes]:
        head = self._table([], metadata)
        del head["rows"]
        return _enclosed(head, "rows", (encode(self._row(item)) for item in items))

    def bookmark(self, metadata: Document) -> bytes:
        return encode(
            {
                "kind": "Table",
                "apiVersion": _META_VERSION,
                "metadata": metadata,
                "columnDefinitions": [],
                "rows": [],
            }
        )

    def event(self, item: Stored) -> bytes:
        table = self._table([item], {"resourceVersion": str(item.version)})
        if self._announced:
            table["columnDefinitions"] = []
        self._announced = True
        return encode(table)

    def _table(self, items: Sequence[Stored], metadata: Document) -> Document:
        return {
            "kind": "Table",
            "apiVersion": _META_VERSION,
            "metadata": metadata,
            "columnDefinitions": [column.definition() for column in self.kind.columns],
            "rows": [self._row(item) for item in items],
        }

    def _row(self, item: Stored) -> Document:
        document = self._glance(item.body) if item.kind is self.kind else item.document(self.kind)
        row: Document = {"cells": [column.read(document) for column in self.kind.columns]}
        if self._include == "Object":
            row["object"] = msgspec.Raw(self._whole.one(item))
        elif self._include != "None":
            row["object"] = msgspec.Raw(self._metadata.one(item))
        return row


@dataclass(frozen=True, slots=True)
class MediaType:
    name: str
    parameters: dict[str, str]


def media_types(header: str) -> list[MediaType]:
    """What an `Accept` asks for, in its order. No header is the wish for anything."""
    found = []
    for part in (header or "*/*").split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        found.append(MediaType(name.lower(), {key.strip(): value.strip() for key, _, value in pairs}))
    return found


def view_for(kind: Kind, accept: str, include_object: str, *, of_list: bool) -> View:
    """The first of the wanted representations that this server has."""
    for wanted in media_types(accept):
        if wanted.name not in READABLE:
            continue
        match wanted.parameters.get("as"), wanted.parameters.get("v", "v1"):
            case None, _:
                return View(kind)
            case ("Table", "v1"):
                return TableView(kind, _included(include_object))
            case (("PartialObjectMetadata" | "PartialObjectMetadataList") as form, "v1"):
                if of_list != form.endswith("List"):
                    what = "a list" if of_list else "not a list"
                    raise not_acceptable(f"you requested {form}, but the requested object is {what}")
                return MetadataView(kind)
            case _:
                continue
    raise not_acceptable(
        "only the following media types are accepted: application/json, application/yaml, "
        "application/json;as=Table;v=v1;g=meta.k8s.io, application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    )


def _included(include: str) -> str:
    if include not in ("", "Metadata", "Object", "None"):
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include[:40]}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return include


def _enclosed(head: Document, name: str, members: Iterable[bytes]) -> Iterator[bytes]:
    """A document whose last field is a list that is too long to be made at once."""
    yield b'%s,"%s":[' % (encode(head)[:-1], name.encode())
    between = b""
    for member in members:
        yield between
        yield member
        between = b","
    yield b"]}"
