"""Creating, changing and deleting: from what a client wants to what is stored.

Every write goes the same way: bring the document into shape, let the server's own part stand, check, decide, store.
The decision is taken on the newest state without waiting in between, so two writers never both win; where webhooks, or
rules that take long, have to be asked in between, it is taken again if the object changed meanwhile. What would change
nothing is not written. A refused write has changed nothing.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ingot.api.meta import Key
from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import (
    Refused,
    Unreadable,
    already_exists,
    bad_request,
    cause,
    conflict,
    forbidden,
    invalid,
    invalid_patch,
    modified_meanwhile,
    not_found,
)
from ingot.embedded.server.kinds.builtins import FIRST_NAMESPACES, NAMESPACES
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.names import generated
from ingot.embedded.server.storage.objects import Stored, is_terminating, stored
from ingot.embedded.server.storage.store import Store
from ingot.embedded.server.writes import checks, deleting, ending, managing
from ingot.embedded.server.writes import metadata as meta
from ingot.embedded.server.writes.admission import Admission
from ingot.embedded.server.writes.apply import Entry
from ingot.embedded.server.writes.managing import Configuration
from ingot.embedded.server.writes.webhooks import CREATE, DELETE, ITSELF, UPDATE, Attempt, User, Webhooks

Edit = Callable[[Document], Document]

# How often a write is decided anew because the object changed while others were asked.
_DECISIONS: Final = 10


@dataclass(slots=True)
class Manner:
    """How a client wants its write to be treated. Warnings collected on the way go back to it."""

    dry_run: bool = False
    field_validation: str = "Warn"
    # Who owns what this write sets.
    manager: str = "ingot"
    # Whether the document is what a patch made of the object, so that the patch is to blame.
    patching: bool = False
    warnings: list[str] = field(default_factory=list)
    # What a strict reader of the body objects to.
    doubts: list[str] = field(default_factory=list)
    user: User = ITSELF


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a client says about a delete. Warnings collected on the way go back to it."""

    uid: str = ""
    version: str = ""
    propagation: str = "Background"
    # Seconds the object has to end; None leaves that to the object.
    grace: int | None = None
    dry_run: bool = False
    user: User = ITSELF
    warnings: list[str] = field(default_factory=list)


class Writing:
    def __init__(self, store: Store, admission: Admission, webhooks: Webhooks) -> None:
        self._store = store
        self._admission = admission
        self._webhooks = webhooks

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
        checks.check_type(kind, document)
        checks.check_place(kind, metadata, namespace)
        if metadata.get("resourceVersion", "0") != "0":
            raise bad_request("resourceVersion should not be set on objects to be created")
        if not metadata.get("name") and metadata.get("generateName"):
            place = namespace if kind.namespaced else ""
            metadata["name"] = generated(
                metadata["generateName"], lambda name: self._store.head(kind, Key(place, name)) is not None
            )
        meta.born(kind, metadata)
        new = {**document, "metadata": metadata}
        if kind.has_status and not kind.born_with_status:
            unknown += checks.unknown_unheard(kind, new, {})
            new.pop("status", None)
        self._shape(kind, new, None, unknown, manner)
        if managed is None:
            sent = dig(document, "metadata", "managedFields")
            managing.record(kind, new, None, sent=sent, manager=manner.manager)
        else:
            managing.put(new, managed)
        key = Key(namespace if kind.namespaced else "", metadata.get("name", ""))
        attempt = Attempt(CREATE, kind, key, manner.user, "", manner.dry_run)
        is_told = self._webhooks.concern(attempt)
        if is_told:
            new = await self._mutated(attempt, new, None, manner)
            if kind.has_status and not kind.born_with_status:
                new.pop("status", None)
            checks.check_place(kind, new["metadata"], namespace)
            key = Key(key.namespace, new["metadata"].get("name", ""))
        kind.complete(new)
        await self._check(kind, new, None)
        if is_told:
            await self._webhooks.validated(attempt._replace(key=key), new, None, manner.warnings)
        if kind.namespaced:
            checks.check_namespace(kind, namespace, self._store.head(NAMESPACES, Key("", namespace)))
        if (there := self._store.head(kind, key)) is not None:
            await self._store.settled(there)
            raise already_exists(kind, key.name)
        if manner.dry_run:
            return stored(kind, new, version=0, at=0)
        return await self._store.put(kind, new)

    async def change(
        self, kind: Kind, key: Key, edit: Edit, manner: Manner, *, subresource: str = ""
    ) -> Stored:
        """Replace the object by what `edit` makes of it.

        The edit may be asked for more than once, each time with the newest state.
        """
        for _ in range(_DECISIONS):
            current = self._store.head(kind, key)
            if current is None:
                raise not_found(kind, key.name)
            try:
                # The edit works on its own copy: patches share what they do not touch.
                new = edit(current.document(kind))
                item = await self._replace(kind, key, current, new, manner, subresource=subresource)
            except Unreadable as error:
                if manner.patching:
                    raise invalid_patch(error.why) from None
                raise
            if item is not None:
                return item
        raise modified_meanwhile(kind, key.name)

    async def apply(
        self, kind: Kind, key: Key, config: Configuration, manner: Manner, *, subresource: str = ""
    ) -> tuple[Stored, bool]:
        """Lay a configuration over the object, or create it so. Answers with the object and whether it is new."""
        said = len(manner.warnings)
        for _ in range(_DECISIONS):
            current = self._store.head(kind, key)
            if current is None and subresource:
                raise not_found(kind, key.name)
            live = current.document(kind) if current is not None else None
            new, managed = managing.lay_over(
                kind, live, config, manager=manner.manager, subresource=subresource
            )
            if current is None:
                metadata = meta.read(kind, new, [])
                checks.check_place(kind, metadata, key.namespace, name=key.name)
                if metadata.get("uid"):
                    raise conflict(
                        kind,
                        key.name,
                        f"uid mismatch: the provided object specified uid {metadata['uid']}, "
                        "and no existing object was found",
                    )
                try:
                    return await self.create(kind, key.namespace, new, manner, managed=managed), True
                except Refused:
                    # Somebody else may have created it while webhooks were asked: then it is laid over that.
                    if self._store.head(kind, key) is None:
                        raise
                    del manner.warnings[said:]
                    continue
            item = await self._replace(
                kind, key, current, new, manner, subresource=subresource, managed=managed
            )
            if item is not None:
                return item, False
        raise modified_meanwhile(kind, key.name)

    async def _replace(
        self,
        kind: Kind,
        key: Key,
        current: Stored,
        new: Document,
        manner: Manner,
        *,
        subresource: str = "",
        managed: list[Entry] | None = None,
    ) -> Stored | None:
        """None when the object changed while webhooks or long rules were asked: then nothing is decided yet."""
        said = len(manner.warnings)
        old = current.document(kind)
        sent = dig(new, "metadata", "managedFields")
        unknown: list[str] = []
        metadata = meta.read(kind, new, unknown)
        if manner.patching:
            checks.check_patched_type(kind, new, subresource)
        else:
            checks.check_type(kind, new)
        if not metadata.get("name"):
            raise bad_request(
                f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided"
            )
        checks.check_place(kind, metadata, key.namespace, name=key.name)
        checks.check_preconditions(
            kind, key.name, metadata, current, patching=manner.patching, subresource=subresource
        )
        if not subresource:
            checks.check_immutable(kind, metadata, old["metadata"])
        meta.carried_over(metadata, old["metadata"])
        if managed is None:
            unknown += checks.unknown_unheard(kind, new, old, subresource)
        new = checks.own_part_only(kind, {**new, "metadata": metadata}, old, subresource)
        meta.carried_over(new["metadata"], old["metadata"])
        self._shape(kind, new, old, unknown, manner)
        if managed is None:
            managing.record(
                kind,
                new,
                old,
                sent=sent,
                manager=manner.manager,
                subresource=subresource,
                said=metadata if subresource else None,
            )
        else:
            managing.put(new, managed)
        attempt = Attempt(UPDATE, kind, key, manner.user, subresource, manner.dry_run)
        is_told = self._webhooks.concern(attempt)
        if is_told:
            new = await self._mutated(attempt, new, old, manner)
            checks.check_place(kind, new["metadata"], key.namespace, name=key.name)
            managed_fields = new["metadata"].get("managedFields")
            new = checks.own_part_only(kind, new, old, subresource)
            if managed_fields is not None:
                new["metadata"]["managedFields"] = managed_fields
        await self._check(kind, new, old, subresource)
        if is_told:
            await self._webhooks.validated(attempt, new, old, manner.warnings)
        if self._is_newest(kind, current):
            return await self._commit(kind, new, old, current, manner, subresource)
        del manner.warnings[said:]
        return None

    async def delete(self, kind: Kind, key: Key, wish: Deletion) -> tuple[Stored, bool]:
        """Delete, or mark for deletion while somebody still holds on. Answers with the last state and whether it is gone."""
        attempt = Attempt(DELETE, kind, key, wish.user, "", wish.dry_run, wish.propagation)
        said = len(wish.warnings)
        for _ in range(_DECISIONS):
            current = self._store.head(kind, key)
            if current is None:
                raise not_found(kind, key.name)
            checks.check_deletion(kind, key.name, current, uid=wish.uid, version=wish.version)
            if kind is NAMESPACES and key.name in FIRST_NAMESPACES:
                raise forbidden(f'namespaces "{key.name}" is forbidden: this namespace may not be deleted')
            if not self._webhooks.concern(attempt):
                return await self._let_go(kind, current, wish)
            old = current.document(kind)
            await self._webhooks.mutated(attempt, None, old, wish.warnings)
            await self._webhooks.validated(attempt, None, old, wish.warnings)
            if self._is_newest(kind, current):
                return await self._let_go(kind, current, wish)
            del wish.warnings[said:]
        raise modified_meanwhile(kind, key.name)

    async def _let_go(self, kind: Kind, current: Stored, wish: Deletion) -> tuple[Stored, bool]:
        old = current.document(kind)
        if problems := self._admission.deleted(kind, old):
            raise invalid(kind, current.key.name, problems)
        new, stays = deleting.left_of(kind, old, propagation=wish.propagation, grace=wish.grace)
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
        managed = new["metadata"].get("managedFields")
        if (current := self._store.head(kind, key)) is None:
            meta.born(kind, new["metadata"])
        else:
            old = current.document()
            meta.carried_over(new["metadata"], old["metadata"])
        if managed:
            new["metadata"].setdefault("managedFields", managed)
        if current is not None:
            if meta.unchanged(new, old):
                return
            checks.count_generation(kind, new, old)
        await self._store.put(kind, new)

    async def _commit(
        self,
        kind: Kind,
        new: Document,
        old: Document,
        current: Stored,
        manner: Manner,
        subresource: str,
    ) -> Stored:
        metadata = new["metadata"]
        if meta.unchanged(new, old):
            await self._store.settled(current)
            return current
        if subresource not in kind.actions:
            checks.count_generation(kind, new, old)
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
        manner.warnings += kind.warn(new, old) + meta.warnings(kind, new["metadata"])
        kind.prepare(new, old)
        unknown += kind.shape.conform(new)
        # As Kubernetes lists them: of its own kinds as they come, of others in order.
        paths = unknown if kind.built_in else sorted(unknown)
        _report_doubts(kind, [*manner.doubts, *(f'unknown field "{path}"' for path in paths)], manner)

    async def _check(self, kind: Kind, new: Document, old: Document | None, subresource: str = "") -> None:
        name = new["metadata"].get("name", "")
        problems = meta.problems(kind, new["metadata"], old["metadata"] if old else None)
        problems += [found for found in kind.shape.problems(new) if not checks.was_so_before(found, new, old)]
        if kind.shape.rules_take_long(new):
            problems += await asyncio.to_thread(kind.shape.broken_rules, new, old, problems)
        else:
            problems += kind.shape.broken_rules(new, old, problems)
        if not problems:
            # An action does what no other write may, and has looked at the object itself.
            own = [] if subresource in kind.actions else kind.check(new, old)
            problems = own + self._admission.written(kind, new, old)
        if problems:
            raise invalid(kind, name, problems)

    async def _mutated(
        self, attempt: Attempt, new: Document, old: Document | None, manner: Manner
    ) -> Document:
        """What mutating webhooks make of the document; what the server owns stays as it was."""
        made = await self._webhooks.mutated(attempt, new, old, manner.warnings)
        if made is None or made is new:
            return new
        metadata = meta.read(attempt.kind, made, [])
        if (uid := metadata.get("uid")) != new["metadata"]["uid"]:
            problem = cause("Invalid", "metadata.uid", "field is immutable", shown=f'"{uid or ""}"')
            raise invalid(attempt.kind, attempt.key.name, [problem])
        meta.carried_over(metadata, new["metadata"])
        # What a webhook changes belongs to nobody.
        if "managedFields" in new["metadata"]:
            metadata["managedFields"] = new["metadata"]["managedFields"]
        made = {**made, "metadata": metadata}
        attempt.kind.prepare(made, old)
        attempt.kind.shape.conform(made)
        return made

    def _is_newest(self, kind: Kind, item: Stored) -> bool:
        latest = self._store.head(kind, item.key)
        return latest is not None and latest.version == item.version


def _report_doubts(kind: Kind, doubts: list[str], manner: Manner) -> None:
    if not doubts or manner.field_validation == "Ignore":
        return
    if manner.field_validation == "Strict":
        raise Unreadable(kind.kind, kind.version, f"strict decoding error: {', '.join(doubts)}")
    manner.warnings += doubts
