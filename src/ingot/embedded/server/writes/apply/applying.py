"""Server-side apply, and the bookkeeping of every other write.

`applied` lays a configuration over an object: what it names is set and owned, what its manager owned before and leaves
out now is removed unless somebody else owns it too, and a field that somebody else owns with another value is a
conflict, unless the manager insists. `updated` is for all other writes: who changed a field owns it now, alone.

Pure functions over documents. Fields are compared in the version of the request: where a kind has several versions, they
share their paths (conversion changes nothing but the version).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.writes.apply import fieldset, last_applied
from ingot.embedded.server.writes.apply.comparing import compare
from ingot.embedded.server.writes.apply.fieldset import FieldSet, Path, difference, intersection, union
from ingot.embedded.server.writes.apply.managers import BEFORE_FIRST_APPLY, UPDATE, Entry, Managed, Manager
from ingot.embedded.server.writes.apply.merging import merge
from ingot.embedded.server.writes.apply.ownership import fields_of, with_named_fields, without
from ingot.embedded.server.writes.apply.structure import Structure

# What nobody owns: the server's own part, and what says which object this is.
_NOBODYS: Final[FieldSet] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        "f:name": {},
        "f:namespace": {},
        "f:creationTimestamp": {},
        "f:selfLink": {},
        "f:uid": {},
        "f:generation": {},
        "f:managedFields": {},
        "f:resourceVersion": {},
    },
}


@dataclass(frozen=True, slots=True)
class Conflict:
    manager: Manager
    path: Path

    @property
    def where(self) -> str:
        return fieldset.shown(self.path)

    def __str__(self) -> str:
        return f"conflict with {self.manager}: {self.where}"


class Conflicts(Exception):
    """Others own what the configuration would change."""

    def __init__(self, found: list[Conflict]) -> None:
        super().__init__("; ".join(map(str, found)))
        self.found = found


def updated(
    old: Document, new: Document, managed: Managed, manager: Manager, structure: Structure, *, time: str
) -> list[Entry]:
    """The entries after a write that turned one document into the other. Neither holds managedFields."""
    delta = compare(old, new, structure)
    if not delta:
        return managed.encoded()
    written = delta.written
    managed.take_away(union(written, delta.removed))
    taken = difference(written, _NOBODYS)
    if taken:
        managed.give(manager, union(managed.fields(manager), taken), time)
    managed.forget_oldest()
    return managed.encoded()


def applied(
    live: Document,
    config: Document,
    managed: Managed,
    manager: Manager,
    structure: Structure,
    *,
    force: bool,
    time: str,
    nothing: Document | None = None,
    new: bool = False,
    apart: str = "",
) -> tuple[Document, list[Entry]]:
    """The object with the configuration laid over it, and its entries. `new` says that nothing is there yet.

    `nothing` is an object of the kind before anybody wrote into it. `apart` names the part of the object that is written
    elsewhere, and that the configuration therefore leaves out. Raises Conflicts.
    """
    if not managed and not new:
        # Written by somebody who was not recorded: what is there belongs to those who came before.
        there = {name: value for name, value in live.items() if name != apart}
        before = Manager(BEFORE_FIRST_APPLY, UPDATE, manager.version, manager.subresource)
        managed = Managed(updated(nothing or {}, there, managed, before, structure, time=time))
    managed.fit(structure)
    last = managed.fields(manager)
    wanted = fields_of(config, structure)
    merged = merge(live, config, structure)
    managed.give(manager, wanted, None)
    made = _pruned(merged, last, managed, structure) if last else merged
    delta = compare(live, made, structure)
    written = delta.written
    if not force and (found := _conflicts(written, managed, manager, live, structure)):
        raise Conflicts(found)
    managed.take_away(union(written, delta.removed), but_from=manager)
    managed.give(manager, difference(wanted, _NOBODYS), time if delta else None)
    if manager.name == last_applied.KUBECTL:
        made = last_applied.follow(made, config)
    return made, managed.encoded()


def _conflicts(
    written: FieldSet, managed: Managed, manager: Manager, live: Document, structure: Structure
) -> list[Conflict]:
    found = [
        Conflict(other, path)
        for other, owned in managed.others(manager)
        for path in fieldset.members(intersection(owned, written))
    ]
    if found and manager.name == last_applied.KUBECTL:
        own = last_applied.own_fields(live, structure)
        found = [conflict for conflict in found if not last_applied.is_in(conflict.path, own)]
    return found


def _pruned(merged: Document, last: FieldSet, managed: Managed, structure: Structure) -> Document:
    """Without what the manager owned, leaves out now, and nobody else owns."""

    def there_in(document: Document) -> FieldSet:
        return compare({}, document, structure).added

    before = with_named_fields(last, structure)
    owned = with_named_fields(managed.all_fields(), structure)
    there = there_in(merged)
    bare = without(merged, before, structure)
    kept = without(merged, difference(there, union(there_in(bare), owned)), structure)
    # Only what the manager had may go: what was left dangling by that stays.
    made: Document = without(merged, intersection(difference(there, there_in(kept)), before), structure)
    return made
