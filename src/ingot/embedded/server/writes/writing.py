"""Creating, changing and deleting: from what a client wants to what is stored.

Every write goes the same way: bring the document into shape, let the server's own part stand, check, decide, store.
The decision is taken on the newest state without waiting in between, so two writers never both win. What would change
nothing is not written. A refused write has changed nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ingot.api.meta import Key
from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import (
    Cause,
    already_exists,
    bad_request,
    cause,
    conflict,
    forbidden,
    invalid,
    modified_meanwhile,
    not_found,
)
from ingot.embedded.server.kinds.builtins import FIRST_NAMESPACES, NAMESPACES
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.names import generated
from ingot.embedded.server.storage.store import Store, Stored, is_terminating, stored
from ingot.embedded.server.writes import ending, managing
from ingot.embedded.server.writes import metadata as meta
from ingot.embedded.server.writes.admission import Admission
from ingot.embedded.server.writes.apply import Entry
from ingot.embedded.server.writes.managing import Configuration

Edit = Callable[[Document], Document]

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
_PROPAGATION: Final = {"Orphan": ORPHAN, "Foreground": FOREGROUND}


@dataclass(slots=True)
class Manner:
    """How a client wants its write to be treated. Warnings collected on the way go back to it."""

    dry_run: bool = False
    field_validation: str = "Warn"
    # Who owns what this write sets.
    manager: str = "ingot"
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a client says about a delete."""

    uid: str = ""
    version: str = ""
    propagation: str = "Background"
    # Seconds the object has to end; None leaves that to the object.
    grace: int | None = None
    dry_run: bool = False


class Writing:
    def __init__(self, store: Store, admission: Admission) -> None:
        self._store = store
        self._admission = admission

    async def create(
        self,
        kind: Kind,
        namespace: str,
        document: Document,
        manner: Manner,
        *,
        managed: list[Entry] | None = None,
    ) -> Stored:
        """Store a new object. `managed` says who owns what in it, where that is not its writer, all of it."""
        unknown: list[str] = []
        metadata = meta.read(kind, document, unknown)
        _check_type(kind, document)
        _check_place(kind, metadata, namespace)
        if metadata.get("resourceVersion"):
            raise bad_request("resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = generated(metadata["generateName"])
        meta.born(kind, metadata)
        new = {**document, "metadata": metadata}
        if kind.has_status and not kind.born_with_status:
            new.pop("status", None)
        self._shape(kind, new, None, unknown, manner)
        if managed is None:
            sent = dig(document, "metadata", "managedFields")
            managing.record(kind, new, None, sent=sent, manager=manner.manager)
        else:
            managing.put(new, managed)
        self._check(kind, new, None)
        self._check_namespace(kind, namespace)
        key = Key(namespace if kind.namespaced else "", metadata["name"])
        if (there := self._store.head(kind, key)) is not None:
            await self._store.settled(there)
            raise already_exists(kind, key.name)
        if manner.dry_run:
            return stored(kind, new, version=0, at=0)
        return await self._store.put(kind, new)

    async def change(
        self, kind: Kind, key: Key, edit: Edit, manner: Manner, *, subresource: str = "", whole: bool = False
    ) -> Stored:
        """Replace the object by what `edit` makes of it. `whole` is a PUT: a custom kind must then name its version."""
        current = self._store.head(kind, key)
        if current is None:
            raise not_found(kind, key.name)
        # The edit works on its own copy: patches share what they do not touch.
        new = edit(current.document(kind))
        return await self._replace(kind, key, current, new, manner, subresource=subresource, whole=whole)

    async def apply(
        self, kind: Kind, key: Key, config: Configuration, manner: Manner, *, subresource: str = ""
    ) -> tuple[Stored, bool]:
        """Lay a configuration over the object, or create it so. Answers with the object and whether it is new."""
        current = self._store.head(kind, key)
        if current is None and subresource:
            raise not_found(kind, key.name)
        live = current.document(kind) if current is not None else None
        new, managed = managing.lay_over(kind, live, config, manager=manner.manager, subresource=subresource)
        if current is None:
            metadata = meta.read(kind, new, [])
            _check_place(kind, metadata, key.namespace, name=key.name)
            if metadata.get("uid"):
                raise conflict(
                    kind,
                    key.name,
                    f"uid mismatch: the provided object specified uid {metadata['uid']}, "
                    "and no existing object was found",
                )
            return await self.create(kind, key.namespace, new, manner, managed=managed), True
        item = await self._replace(kind, key, current, new, manner, subresource=subresource, managed=managed)
        return item, False

    async def _replace(
        self,
        kind: Kind,
        key: Key,
        current: Stored,
        new: Document,
        manner: Manner,
        *,
        subresource: str = "",
        whole: bool = False,
        managed: list[Entry] | None = None,
    ) -> Stored:
        old = current.document(kind)
        sent = dig(new, "metadata", "managedFields")
        unknown: list[str] = []
        metadata = meta.read(kind, new, unknown)
        _check_type(kind, new)
        _check_place(kind, metadata, key.namespace, name=key.name)
        _check_preconditions(kind, key.name, metadata, current, whole=whole and not kind.built_in)
        new = _own_part_only(kind, {**new, "metadata": metadata}, old, subresource)
        meta.carried_over(new["metadata"], old["metadata"])
        self._shape(kind, new, old, unknown, manner)
        if managed is None:
            managing.record(kind, new, old, sent=sent, manager=manner.manager, subresource=subresource)
        else:
            managing.put(new, managed)
        self._check(kind, new, old)
        return await self._commit(kind, new, old, current, manner)

    async def delete(self, kind: Kind, key: Key, wish: Deletion) -> tuple[Stored, bool]:
        """Delete, or mark for deletion while somebody still holds on. Answers with the last state and whether it is gone."""
        current = self._store.head(kind, key)
        if current is None:
            raise not_found(kind, key.name)
        _check_deletion(kind, key.name, wish, current)
        if kind is NAMESPACES and key.name in FIRST_NAMESPACES:
            raise forbidden(f'namespaces "{key.name}" is forbidden: this namespace may not be deleted')
        old = current.document(kind)
        if problems := self._admission.deleted(kind, old):
            raise invalid(kind, key.name, problems)
        new = copy.deepcopy(old)
        if not is_terminating(old):
            kind.leave(new)
        metadata = new["metadata"]
        if (finalizer := _PROPAGATION.get(wish.propagation)) and finalizer not in metadata.get(
            "finalizers", ()
        ):
            metadata["finalizers"] = [*metadata.get("finalizers", ()), finalizer]
        seconds = ending.seconds_left(kind, old, wish.grace)
        stays = bool(metadata.get("finalizers")) or kind is NAMESPACES or seconds != 0
        if stays and seconds is not None and not (is_terminating(old) and ending.is_over(old)):
            ending.mark(new, seconds)
            if kind is NAMESPACES:
                new["status"] = {**new.get("status", {}), "phase": "Terminating"}
        if wish.dry_run:
            return stored(kind, new, version=current.version, at=current.at), not stays
        if not stays:
            return await self._store.remove(kind, new), True
        if new == old:
            await self._store.settled(current)
            return current, False
        return await self._store.put(kind, new), False

    async def finish_namespace(self, name: str) -> None:
        """The namespace is empty: let it go, unless somebody else still holds on."""
        current = self._store.head(NAMESPACES, Key("", name))
        if current is None:
            return
        document = current.document()
        if is_terminating(document) and not dig(document, "metadata", "finalizers"):
            await self._store.remove(NAMESPACES, document)

    async def install(self, kind: Kind, document: Document) -> None:
        """Store an object of the server itself, unless it is there already just so."""
        key = Key(document["metadata"].get("namespace", ""), document["metadata"]["name"])
        new = copy.deepcopy(document)
        if (current := self._store.head(kind, key)) is None:
            meta.born(kind, new["metadata"])
        else:
            old = current.document()
            meta.carried_over(new["metadata"], old["metadata"])
            if meta.unchanged(new, old):
                return
        await self._store.put(kind, new)

    async def _commit(
        self, kind: Kind, new: Document, old: Document, current: Stored, manner: Manner
    ) -> Stored:
        metadata = new["metadata"]
        if meta.unchanged(new, old):
            await self._store.settled(current)
            return current
        apart = kind.has_status
        if "generation" in metadata and meta.content(new, with_status=not apart) != meta.content(
            old, with_status=not apart
        ):
            metadata["generation"] += 1
        metadata["resourceVersion"] = str(current.version)
        if manner.dry_run:
            return stored(kind, new, version=current.version, at=current.at)
        ends = is_terminating(new) and not metadata.get("finalizers") and ending.is_over(new)
        if ends and kind is not NAMESPACES:
            return await self._store.remove(kind, new)
        return await self._store.put(kind, new)

    def _shape(
        self, kind: Kind, new: Document, old: Document | None, unknown: list[str], manner: Manner
    ) -> None:
        new["apiVersion"], new["kind"] = kind.api_version, kind.kind
        manner.warnings += kind.warn(new, old)
        kind.prepare(new, old)
        unknown += kind.shape.conform(new)
        _report_unknown(unknown, manner)

    def _check(self, kind: Kind, new: Document, old: Document | None) -> None:
        name = new["metadata"].get("name", "")
        problems = meta.problems(kind, new["metadata"], old["metadata"] if old else None)
        problems += [found for found in kind.shape.problems(new) if not _was_so_before(found, new, old)]
        if not problems:
            problems = kind.check(new, old) + self._admission.written(kind, new, old)
        if problems:
            raise invalid(kind, name, problems)

    def _check_namespace(self, kind: Kind, namespace: str) -> None:
        if not kind.namespaced:
            return
        there = self._store.head(NAMESPACES, Key("", namespace))
        if there is None:
            raise not_found(NAMESPACES, namespace)
        if is_terminating(there.document()):
            words = f"unable to create new content in namespace {namespace} because it is being terminated"
            terminating = Cause(
                "metadata.namespace", "NamespaceTerminating", f"namespace {namespace} is being terminated"
            )
            raise forbidden(f"{kind.resource} is forbidden: {words}", causes=[terminating])


def _check_type(kind: Kind, document: Document) -> None:
    version, name = document.get("apiVersion") or kind.api_version, document.get("kind") or kind.kind
    if (version, name) == (kind.api_version, kind.kind):
        return
    if kind.built_in:
        raise bad_request(f'{name} in version "{version}" cannot be handled as a {kind.kind}')
    if version != kind.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        )
    problem = cause("Invalid", "kind", f"must be {kind.kind}", shown=f'"{name}"')
    raise invalid(kind, dig(document, "metadata", "name") or "", [problem])


def _check_place(kind: Kind, metadata: Document, namespace: str, *, name: str = "") -> None:
    """The document may leave out where it is, but it may not say something else than the URL."""
    if kind.namespaced:
        if metadata.setdefault("namespace", namespace) != namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request "
                f"({metadata['namespace']} is not {namespace})"
            )
    else:
        metadata.pop("namespace", None)
    if name and metadata.setdefault("name", name) != name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )


def _check_preconditions(kind: Kind, name: str, metadata: Document, current: Stored, *, whole: bool) -> None:
    version = metadata.pop("resourceVersion", "")
    if whole and not version:
        words = "must be specified for an update"
        raise invalid(kind, name, [cause("Invalid", "metadata.resourceVersion", words, shown="0x0")])
    if uid := metadata.get("uid"):
        _check_uid(kind, name, uid, current)
    if version and version != str(current.version):
        raise modified_meanwhile(kind, name)


def _check_deletion(kind: Kind, name: str, wish: Deletion, current: Stored) -> None:
    if wish.uid:
        _check_uid(kind, name, wish.uid, current)
    if wish.version and wish.version != str(current.version):
        raise conflict(
            kind,
            name,
            f"Precondition failed: ResourceVersion in precondition: {wish.version}, "
            f"ResourceVersion in object meta: {current.version}",
        )


def _check_uid(kind: Kind, name: str, uid: str, current: Stored) -> None:
    if uid != current.uid:
        raise conflict(
            kind, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {current.uid}"
        )


def _own_part_only(kind: Kind, new: Document, old: Document, subresource: str) -> Document:
    """A write to the main resource leaves the status alone, and a write to the status leaves everything else alone."""
    if subresource == "status":
        kept = {**old, "metadata": dict(old["metadata"])}
        kept.pop("status", None)
        return {**kept, "status": new["status"]} if new.get("status") is not None else kept
    if kind.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    return new


def _report_unknown(unknown: list[str], manner: Manner) -> None:
    words = [f'unknown field "{path}"' for path in unknown]
    if not words or manner.field_validation == "Ignore":
        return
    if manner.field_validation == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(words)}")
    manner.warnings += words


def _was_so_before(found: Cause, new: Document, old: Document | None) -> bool:
    """Whether a part that is wrong is untouched by this change: a rule that got stricter must not hold finalizers."""
    part = found.field.partition(".")[0].partition("[")[0]
    return old is not None and part in old and new.get(part) == old[part]
