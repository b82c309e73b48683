"""The kinds this server serves: where each lives, what it looks like, what may be done with it.

A `Kind` is made from a CustomResourceDefinition by `definitions`, or written down in `builtins`. `registry` finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause
from ingot.embedded.server.kinds import columns, jsonpath
from ingot.embedded.server.kinds.columns import Column
from ingot.embedded.server.kinds.schema import Shape
from ingot.embedded.server.kinds.selectors import Selectable

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
READ_VERBS: Final = ("get", "list", "watch")

FieldReader = Callable[[Document], str]


def _nothing(new: Document, old: Document | None) -> None:
    """Most kinds need no preparing."""


def _no_causes(new: Document, old: Document | None) -> list[Cause]:
    return []


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    group: str
    version: str
    kind: str
    plural: str
    singular: str
    schema: Mapping[str, Any]
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (columns.NAME, columns.AGE)
    verbs: tuple[str, ...] = ALL_VERBS
    has_status: bool = False
    # Built-in kinds take strategic patches and unconditional updates, and have no generation.
    built_in: bool = False
    fields: Mapping[str, FieldReader] = field(default_factory=dict)
    # Fills in what the schema cannot, in place; raises Refused where Kubernetes cannot even decode.
    prepare: Callable[[Document, Document | None], None] = _nothing
    # What only this kind demands.
    check: Callable[[Document, Document | None], list[Cause]] = _no_causes

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @cached_property
    def resource(self) -> str:
        """`baremetalhosts.metal3.io`: how messages call the kind, and its key in the store."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def shape(self) -> Shape:
        return Shape(self.schema)

    @cached_property
    def field_names(self) -> frozenset[str]:
        return frozenset(
            {"metadata.name", *(("metadata.namespace",) if self.namespaced else ()), *self.fields}
        )

    def selectable(self, document: Document) -> Selectable:
        found = {"metadata.name": str(dig(document, "metadata", "name") or "")}
        if self.namespaced:
            found["metadata.namespace"] = str(dig(document, "metadata", "namespace") or "")
        found.update((name, read(document)) for name, read in self.fields.items())
        return Selectable(dig(document, "metadata", "labels") or {}, found)


def field_at(path: str) -> FieldReader:
    """The text at a path, as field selectors compare it; empty where there is nothing."""
    find = jsonpath.compiled(path)

    def read(document: Document) -> str:
        found = find(document)
        return jsonpath.as_text(found[0]) if found else ""

    return read
