"""The kinds this server serves: where each lives, what it looks like, what may be done with it.

A `Kind` is one served version: it is made from a CustomResourceDefinition by `definitions`, or written down in
`builtins`. Versions of a kind share their objects, which are kept in the form of one of them, their `home`; `read_from`
and `kept` lead from that form to the others and back. `registry` finds kinds.
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
from ingot.embedded.server.kinds.names import subdomain_problem
from ingot.embedded.server.kinds.scale import Scale
from ingot.embedded.server.kinds.schema import Shape
from ingot.embedded.server.kinds.selectors import Selectable

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
READ_VERBS: Final = ("get", "list", "watch")

FieldReader = Callable[[Document], str]


def _nothing(new: Document, old: Document | None) -> None:
    """Most kinds need no preparing."""


def _stays_as_it_is(document: Document) -> None:
    """Most kinds need nothing done when they come, or when they go."""


def _no_causes(new: Document, old: Document | None) -> list[Cause]:
    return []


def _no_warnings(new: Document, old: Document | None) -> list[str]:
    return []


def _as_it_is(document: Document) -> Document:
    return document


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is done to an object by posting a document to a part of it: a Pod is bound by a Binding."""

    # Group, version and kind of what is posted.
    takes: tuple[str, str, str]
    # The object after it, from the object and what was posted; raises Refused where it cannot be done.
    perform: Callable[[Document, Document], Document]


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
    # Built-in kinds take strategic patches and unconditional updates, and only some of them count generations.
    built_in: bool = False
    counts_generations: bool = False
    # What can be done to an object by posting to a part of it, by the name of that part.
    actions: Mapping[str, Action] = field(default_factory=dict)
    # Whether a delete that removes the object answers with it, as Kubernetes does for some kinds, or with a Status.
    shows_removed: bool = False
    # What is wrong with a name; empty where nothing is.
    name_problem: Callable[[str], str] = subdomain_problem
    # Whether whoever creates an object also says how it is doing: a node registers with its status.
    born_with_status: bool = False
    # How many seconds an object has to end when nobody says otherwise, and those it gets of what is wished for.
    # None: objects of this kind go at once.
    grace: Callable[[Document, int | None], int] | None = None
    fields: Mapping[str, FieldReader] = field(default_factory=dict)
    # Fills in what the schema cannot, in place; raises Refused where Kubernetes cannot even decode.
    prepare: Callable[[Document, Document | None], None] = _nothing
    # What the server itself adds to a new object, in place, after everybody else: it belongs to nobody.
    complete: Callable[[Document], None] = _stays_as_it_is
    # What only this kind demands.
    check: Callable[[Document, Document | None], list[Cause]] = _no_causes
    # What a client should hear about a write that is taken all the same; asked before `prepare`.
    warn: Callable[[Document, Document | None], list[str]] = _no_warnings
    # Called, to change the document in place, when deletion begins: what must be so before the object can go.
    leave: Callable[[Document], None] = _stays_as_it_is
    # The kind in whose form the objects are kept, where that is another one; and the way there and back.
    stored_as: Kind | None = None
    to_home: Callable[[Document], Document] = _as_it_is
    from_home: Callable[[Document], Document] = _as_it_is
    # How many of something an object stands for, where it can be asked for that by itself.
    scale: Scale | None = None
    # The field selectors of this version, where other versions have others; all of `fields` otherwise.
    selectable_fields: frozenset[str] | None = None
    # What a list calls itself, where that is not the kind with `List` behind it.
    name_of_lists: str = ""
    # What a client of a version that will go should hear.
    deprecation: str = ""
    # The definition is going: objects can go too, but none can come.
    terminating: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_generation(self) -> bool:
        return self.counts_generations or not self.built_in

    @property
    def list_kind(self) -> str:
        return self.name_of_lists or f"{self.kind}List"

    @cached_property
    def subresources(self) -> tuple[str, ...]:
        parts = (("scale", self.scale), ("status", self.has_status))
        return (*self.actions, *(name for name, there in parts if there))

    @cached_property
    def resource(self) -> str:
        """`baremetalhosts.metal3.io`: how messages call the kind, and its key in the store."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def shape(self) -> Shape:
        return Shape(self.schema)

    @property
    def home(self) -> Kind:
        return self.stored_as or self

    def kept(self, document: Document) -> Document:
        """A document of this kind in the form of its home. Takes the document over."""
        return self.to_home(document)

    def read_from(self, document: Document, made_by: Kind) -> Document:
        """A document that another kind of the same objects made, as this one shows it. Takes the document over.

        Like Kubernetes: the defaults are those of the home, and what this version does not know is left out.
        """
        if made_by is not self.home:
            document = self.home.shaped(made_by.kept(document))
        if self.stored_as is not None:
            document = self.from_home(document)
            document["apiVersion"], document["kind"] = self.api_version, self.kind
            if not self.built_in:
                self.shape.conform(document, defaults=False)
        return document

    def shaped(self, document: Document) -> Document:
        """A document of any version as one of this kind: pruned, with defaults."""
        document["apiVersion"], document["kind"] = self.api_version, self.kind
        self.shape.conform(document)
        return document

    @cached_property
    def field_names(self) -> frozenset[str]:
        return frozenset(
            {
                "metadata.name",
                *(("metadata.namespace",) if self.namespaced else ()),
                *(self.fields if self.selectable_fields is None else self.selectable_fields),
            }
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
