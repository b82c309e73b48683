"""Metadata: the part of an object that all kinds share, and most of which the server owns.

`read` turns what a client sent into metadata of the right types; what it does not know is named, what the server owns
is dropped. `born` and `carried_over` fill in the server's part for a new object and for a changed one. `problems`
checks names, labels and finalizers.
"""

from __future__ import annotations

import uuid
from typing import Any, Final

import msgspec

from ingot.embedded.server.documents import Document, dig, encode, is_time, timestamp
from ingot.embedded.server.errors import Cause, Unreadable, cause
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.names import (
    label_key_problem,
    label_value_problem,
)
from ingot.embedded.server.writes.apply import same_but_for_time

_ANNOTATIONS_LIMIT: Final = 256 * 1024


class _Owner(msgspec.Struct, rename="camel", omit_defaults=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class _Metadata(msgspec.Struct, rename="camel", omit_defaults=True):
    """What a client may say about an object. A field that is null counts as absent."""

    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    finalizers: list[str] | None = None


_STANDARD_FINALIZERS: Final = frozenset(
    {"kubernetes", "orphan", "foregroundDeletion", "customresourcecleanup.apiextensions.k8s.io"}
)
# Built-in groups that take any finalizer, as they would from a custom kind.
_LENIENT_GROUPS: Final = frozenset(
    {"admissionregistration.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io"}
)
_KNOWN: Final = frozenset(_Metadata.__struct_encode_fields__)
_DROPPED: Final = frozenset({"managedFields", "selfLink"})
_SERVERS_OWN: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
    "managedFields",
)


def read(kind: Kind, document: Document, unknown: list[str]) -> Document:
    """The metadata of a document, checked for types; names of unknown fields go to `unknown`."""
    given = document.get("metadata")
    if given is None:
        given = {}
    try:
        checked = msgspec.convert(given, _Metadata)
    except msgspec.ValidationError as error:
        raise Unreadable(kind.kind, kind.version, f"metadata: {error}") from None
    for name in ("creationTimestamp", "deletionTimestamp"):
        if (text := given.get(name)) is not None and not is_time(text):
            raise Unreadable(kind.kind, kind.version, f"metadata.{name}: {_quoted(text[:40])} is not a time")
    unknown.extend(f"metadata.{name}" for name in given if name not in _KNOWN | _DROPPED)
    made: Document = msgspec.to_builtins(checked)
    return {name: value for name, value in made.items() if value not in ("", {}, [])}


def born(kind: Kind, metadata: Document) -> None:
    """What the server says about an object when it is created."""
    for name in (*_SERVERS_OWN, "resourceVersion"):
        if name != "generateName":
            metadata.pop(name, None)
    metadata["uid"] = str(uuid.uuid4())
    metadata["creationTimestamp"] = timestamp()
    if kind.has_generation:
        metadata["generation"] = 1


def carried_over(metadata: Document, old: Document) -> None:
    """A change cannot touch what the server owns: it stays as it was."""
    for name in _SERVERS_OWN:
        metadata.pop(name, None)
        if name in old:
            metadata[name] = old[name]


def problems(kind: Kind, metadata: Document, old: Document | None) -> list[Cause]:
    found: list[Cause] = []
    name, prefix = metadata.get("name", ""), metadata.get("generateName", "")
    # A prefix may end where a name may not; something follows it.
    if old is None and prefix and (problem := kind.name_problem(f"{prefix.removesuffix('-')}a")):
        found.append(cause("Invalid", "metadata.generateName", problem, shown=_quoted(prefix)))
    if not name:
        found.append(cause("Required", "metadata.name", "name or generateName is required"))
    elif old is None and (problem := kind.name_problem(name)):
        found.append(cause("Invalid", "metadata.name", problem, shown=_quoted(name)))
    found += _label_problems(metadata)
    found += _owner_problems(metadata.get("ownerReferences", []))
    found += _finalizer_problems(kind, metadata, old)
    return found


def warnings(kind: Kind, metadata: Document) -> list[str]:
    """What is allowed, but not wise."""
    if kind.built_in:
        return []
    return [
        f"metadata.finalizers: {_quoted(name)}: prefer a domain-qualified finalizer name "
        "to avoid accidental conflicts with other finalizer writers"
        for name in metadata.get("finalizers", [])
        if _is_nobodys(name)
    ]


def _is_nobodys(finalizer: str) -> bool:
    """Whether a finalizer says neither whose it is nor that it is Kubernetes' own."""
    return "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS


def unchanged(new: Document, old: Document) -> bool:
    """Whether nothing changed that clients decide. When somebody last wrote what they own is no change by itself."""
    return _without_server_part(new) == _without_server_part(old) and same_but_for_time(
        new["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    )


def _without_server_part(document: Document) -> Document:
    metadata = {
        name: value
        for name, value in document.get("metadata", {}).items()
        if name not in ("resourceVersion", "generation", "managedFields")
    }
    return {**document, "metadata": metadata}


def content(document: Document, *, with_status: bool) -> dict[str, Any]:
    """What moves the generation when it changes: all but metadata, and status where it is written apart."""
    left_out = ("metadata",) if with_status else ("metadata", "status")
    return {name: value for name, value in document.items() if name not in left_out}


def _label_problems(metadata: Document) -> list[Cause]:
    found = []
    for key, value in metadata.get("labels", {}).items():
        if problem := label_key_problem(key):
            found.append(cause("Invalid", "metadata.labels", problem, shown=_quoted(key)))
        if problem := label_value_problem(value):
            found.append(cause("Invalid", "metadata.labels", problem, shown=_quoted(value)))
    annotations = metadata.get("annotations", {})
    found += [
        cause("Invalid", "metadata.annotations", problem, shown=_quoted(key))
        for key in annotations
        if (problem := label_key_problem(key.lower()))
    ]
    if sum(len(key) + len(value) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        found.append(
            Cause(
                "metadata.annotations",
                "FieldValueTooLong",
                f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes",
            )
        )
    return found


def _owner_problems(owners: list[Document]) -> list[Cause]:
    found = []
    for owner in owners:
        for name in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(name):
                where = f"metadata.ownerReferences.{name}"
                found.append(cause("Invalid", where, f"{name} must not be empty", shown='""'))
    if sum(1 for owner in owners if owner.get("controller")) > 1:
        found.append(
            cause("Invalid", "metadata.ownerReferences", "only one reference can have controller set to true")
        )
    return found


def _finalizer_problems(kind: Kind, metadata: Document, old: Document | None) -> list[Cause]:
    names = metadata.get("finalizers", [])
    found = [
        cause("Invalid", "metadata.finalizers", problem, shown=_quoted(name))
        for name in names
        if (problem := label_key_problem(name))
    ]
    if kind.built_in and kind.group not in _LENIENT_GROUPS and not found:
        words = "name is neither a standard finalizer name nor is it fully qualified"
        found = [
            cause("Invalid", f"metadata.finalizers[{index}]", words, shown=_quoted(name))
            for index, name in enumerate(names)
            if _is_nobodys(name)
        ]
    if old is not None and dig(old, "deletionTimestamp"):
        added = set(metadata.get("finalizers", [])) - set(old.get("finalizers", []))
        if added:
            words = f"no new finalizers can be added if the object is being deleted, found new finalizers {sorted(added)}"
            found.append(cause("Forbidden", "metadata.finalizers", words))
    return found


def _quoted(text: str) -> str:
    return encode(text).decode()
