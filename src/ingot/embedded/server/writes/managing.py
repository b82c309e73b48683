"""Who owns which field after a write: the writes of this server, told in the terms of `apply`.

Every write that changes something is recorded in `metadata.managedFields`, under the name the client gave or the one its
User-Agent begins with. This module knows kinds, requests and refusals; the rules themselves are in `apply`.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Final

from ingot.embedded.server.documents import Document, dig, timestamp
from ingot.embedded.server.errors import Cause, Refused, bad_request
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.writes import apply
from ingot.embedded.server.writes.apply import Conflict, Conflicts, Entry, Managed, Manager, Structure

_NAME_LIMIT: Final = 128
_structures: weakref.WeakKeyDictionary[Kind, Structure] = weakref.WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a client applies."""

    document: Document
    force: bool = False


def structure(kind: Kind) -> Structure:
    found = _structures.get(kind)
    if found is None:
        found = _structures[kind] = apply.structure_of(kind.schema)
    return found


def name_of(user_agent: str) -> str:
    """The manager of a write whose client names none: what its User-Agent begins with."""
    printable = "".join(letter for letter in user_agent.partition("/")[0] if letter.isprintable())
    while len(printable.encode()) > _NAME_LIMIT:
        printable = printable[:-1]
    return printable or "unknown"


def record(
    kind: Kind,
    new: Document,
    old: Document | None,
    *,
    sent: object,
    manager: str,
    subresource: str = "",
    said: Document | None = None,
) -> None:
    """Note in the new document who owns what.

    `sent` are the managedFields that came with the request. `said` is the metadata that did, where it is not taken: like
    Kubernetes we hold a client to it all the same.
    """
    form = structure(kind)
    writer = Manager(manager, apply.UPDATE, kind.api_version, subresource)
    live = dig(old, "metadata", "managedFields") if old is not None else None
    managed = apply.managed_after(live, None if subresource else sent, cleared_by=_cleared_by(kind))
    if old is None:
        apart = _apart(kind, subresource)
        made = {name: value for name, value in new.items() if name != apart}
        entries = apply.updated(_nothing(kind), made, managed, writer, form, time=timestamp())
    elif managed:
        # The version is the server's; it is no difference.
        metadata = {**(said or new["metadata"]), "resourceVersion": old["metadata"].get("resourceVersion")}
        entries = apply.updated(old, {**new, "metadata": metadata}, managed, writer, form, time=timestamp())
    else:
        # An object that nobody is recorded for stays so until somebody applies to it.
        entries = []
    put(new, entries)


def _nothing(kind: Kind) -> Document:
    """The object before anybody wrote into it."""
    return (structure(kind).empty() if kind.built_in else None) or {}


def _cleared_by(kind: Kind) -> tuple[list[object], ...]:
    """What a client sends to have all entries forgotten. Of custom kinds Kubernetes does not see an empty list."""
    return ([], [{}]) if kind.built_in else ([{}],)


def put(document: Document, entries: list[Entry]) -> None:
    if entries:
        document["metadata"]["managedFields"] = entries
    else:
        document["metadata"].pop("managedFields", None)


def lay_over(
    kind: Kind, live: Document | None, config: Configuration, *, manager: str, subresource: str
) -> tuple[Document, list[Entry]]:
    """The object with a configuration applied to it, and who owns what then. Without a live object, a new one."""
    form = structure(kind)
    _check(kind, config.document, form)
    apart = _apart(kind, subresource)
    document = {name: value for name, value in config.document.items() if name != apart}
    there = live or {"apiVersion": kind.api_version, "kind": kind.kind}
    writer = Manager(manager, apply.APPLY, kind.api_version, subresource)
    managed = Managed(dig(there, "metadata", "managedFields") or ())
    try:
        return apply.applied(
            there,
            document,
            managed,
            writer,
            form,
            force=config.force,
            time=timestamp(),
            nothing=_nothing(kind),
            new=live is None,
            apart=apart,
        )
    except Conflicts as conflicts:
        raise _refusal(conflicts.found) from None


def _apart(kind: Kind, subresource: str) -> str:
    """What does not count of a configuration: the status at the object itself, and the rest at its status."""
    if subresource == "status":
        return "spec"
    return "status" if kind.has_status else ""


def _check(kind: Kind, document: Document, form: Structure) -> None:
    version, name = document.get("apiVersion") or "", document.get("kind") or ""
    if (version, name) != (kind.api_version, kind.kind):
        raise bad_request(f"invalid object type: {_title(version, name)}")
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    if found := apply.problems(document, form):
        place = f"{dig(document, 'metadata', 'namespace') or ''}/{dig(document, 'metadata', 'name') or ''}"
        listed = found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])
        title = _title(version, name)
        # Not what one would choose for a client's mistake, but what Kubernetes answers and its clients know.
        raise Refused(500, "", f"failed to create typed patch object ({place}; {title}): {listed}")


def _title(api_version: object, kind: object) -> str:
    group, _, version = str(api_version).rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def _refusal(found: list[Conflict]) -> Refused:
    causes = [
        Cause(conflict.where, "FieldManagerConflict", f"conflict with {conflict.manager}")
        for conflict in found
    ]
    if len(found) == 1:
        words = f"Apply failed with 1 conflict: {found[0]}"
    else:
        lines = []
        for manager in sorted({conflict.manager for conflict in found}, key=str):
            lines.append(f"conflicts with {manager}:")
            lines += [f"- {conflict.where}" for conflict in found if conflict.manager == manager]
        words = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return Refused(409, "Conflict", words, causes=causes)
