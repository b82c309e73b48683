"""Who owns which fields: the entries of `metadata.managedFields`.

An entry belongs to a manager together with how it wrote: a controller that applies and also updates has two, and a third
for what it writes to the status. Appliers are one manager whatever version they speak. Entries are kept as the
dictionaries they are on the wire; one that does not change is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ingot.embedded.server.writes.apply import fieldset
from ingot.embedded.server.writes.apply.fieldset import FieldSet, NotASet
from ingot.embedded.server.writes.apply.ownership import fitted
from ingot.embedded.server.writes.apply.structure import Structure

Entry: TypeAlias = dict[str, Any]

APPLY: Final = "Apply"
UPDATE: Final = "Update"
BEFORE_FIRST_APPLY: Final = "before-first-apply"
_ANCIENT: Final = "ancient-changes"
_UPDATERS_LIMIT: Final = 10


@dataclass(frozen=True, slots=True)
class Manager:
    """Who writes, how, and to which part."""

    name: str
    operation: str
    version: str
    subresource: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        version = "" if self.operation == APPLY else self.version
        return (self.name, self.operation, version, self.subresource)

    def __str__(self) -> str:
        words = f'"{self.name}"'
        if self.subresource:
            words += f' with subresource "{self.subresource}"'
        return f"{words} using {self.version}" if self.operation == UPDATE else words


def manager_of(entry: Mapping[str, Any]) -> Manager:
    return Manager(
        str(entry.get("manager", "")),
        str(entry.get("operation", "")),
        str(entry.get("apiVersion", "")),
        str(entry.get("subresource", "")),
    )


class Managed:
    """All entries of one object, while a write is being decided."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries = {manager_of(entry).identity: entry for entry in entries}

    def __bool__(self) -> bool:
        return bool(self._entries)

    def fields(self, manager: Manager) -> FieldSet:
        entry = self._entries.get(manager.identity)
        return _fields(entry) if entry else {}

    def others(self, manager: Manager) -> list[tuple[Manager, FieldSet]]:
        return [
            (manager_of(entry), _fields(entry))
            for identity, entry in self._entries.items()
            if identity != manager.identity
        ]

    def all_fields(self) -> FieldSet:
        found: FieldSet = {}
        for entry in self._entries.values():
            found = fieldset.union(found, _fields(entry))
        return found

    def fit(self, structure: Structure) -> None:
        """Bring entries that are older than the schema in line with it."""
        for identity, entry in self._entries.items():
            fields = _fields(entry)
            now = fitted(fields, structure)
            if now != fields:
                self._entries[identity] = {**entry, "fieldsV1": now}

    def take_away(self, fields: FieldSet, *, but_from: Manager | None = None) -> None:
        """Nobody else owns these any more. Who is left with nothing is no manager."""
        for identity, entry in list(self._entries.items()):
            if but_from is not None and identity == but_from.identity:
                continue
            had = _fields(entry)
            if not fieldset.intersection(had, fields):
                continue
            left = fieldset.difference(had, fields)
            if left:
                self._entries[identity] = {**entry, "fieldsV1": left}
            else:
                del self._entries[identity]

    def give(self, manager: Manager, fields: FieldSet, time: str | None) -> None:
        """The manager owns exactly these. Without a time, that of its last write stays."""
        before = self._entries.pop(manager.identity, None)
        if not fields:
            return
        when = time or (before or {}).get("time")
        entry: Entry = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.version,
        }
        if when:
            entry["time"] = when
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = fields
        if manager.subresource:
            entry["subresource"] = manager.subresource
        self._entries[manager.identity] = entry

    def forget_oldest(self) -> None:
        """Updates leave at most so many entries; the oldest ones become one."""
        updaters = [entry for entry in self._entries.values() if entry.get("operation") != APPLY]
        surplus = len(updaters) - _UPDATERS_LIMIT
        if surplus <= 0:
            return
        updaters.sort(key=lambda entry: (entry.get("time") or "", manager_of(entry).identity))
        firsts: dict[str, Entry] = {}
        for entry in updaters:
            if surplus <= 0:
                break
            manager = manager_of(entry)
            first = firsts.setdefault(manager.version, entry)
            if first is entry:
                continue
            bucket = Manager(_ANCIENT, UPDATE, manager.version)
            if bucket.identity not in self._entries:
                del self._entries[manager_of(first).identity]
                self.give(bucket, _fields(first), first.get("time"))
            del self._entries[manager.identity]
            self.give(bucket, fieldset.union(self.fields(bucket), _fields(entry)), entry.get("time"))
            surplus -= 1

    def encoded(self) -> list[Entry]:
        """For the object: appliers first, then by time."""
        return sorted(
            self._entries.values(),
            key=lambda entry: (
                entry.get("operation", ""),
                entry.get("time") or "",
                entry.get("manager", ""),
                entry.get("apiVersion", ""),
                entry.get("subresource", ""),
            ),
        )


def _fields(entry: Mapping[str, Any]) -> FieldSet:
    found: FieldSet = entry.get("fieldsV1") or {}
    return found


def managed_after(live: object, sent: object, *, cleared_by: Sequence[object]) -> Managed:
    """The entries a write starts from.

    A client may edit them, or clear them by what is given. Who leaves them out, or sends what cannot be read, does not
    touch them.
    """
    kept = Managed(live if isinstance(live, list) else ())
    if (not sent and sent not in cleared_by) or sent == live:
        return kept
    if sent in cleared_by:
        return Managed()
    try:
        return Managed([_checked(entry) for entry in sent]) if isinstance(sent, list) else kept
    except NotASet:
        return kept


def _checked(entry: object) -> Entry:
    if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
        raise NotASet("an entry says whether its manager applied or updated")
    if not entry.get("apiVersion") or entry.get("fieldsType") != "FieldsV1":
        raise NotASet("an entry has an apiVersion, and fieldsType FieldsV1")
    texts = {
        name: str(entry[name])
        for name in ("manager", "operation", "apiVersion", "time", "fieldsType")
        if entry.get(name)
    }
    made: Entry = {**texts, "fieldsV1": fieldset.checked(entry.get("fieldsV1") or {})}
    if entry.get("subresource"):
        made["subresource"] = str(entry["subresource"])
    return made


def same_but_for_time(first: object, second: object) -> bool:
    """Whether nothing but the times of the entries differs."""
    if not isinstance(first, list) or not isinstance(second, list):
        return first == second
    return len(first) == len(second) and all(
        {**one, "time": None} == {**other, "time": None} for one, other in zip(first, second, strict=True)
    )
