"""Names of kinds: which a definition gets, and what its status says about it.

Within a group a name means one thing: plural, singular and short names share one space, kinds and list kinds another.
Who came first keeps a name; a definition that asks for a taken one keeps what it had, and says so in its conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ingot.embedded.server.documents import Document, dig, timestamp

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"

ESTABLISHED: Final = "Established"
NAMES_ACCEPTED: Final = "NamesAccepted"
TERMINATING: Final = "Terminating"

Names = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Taken:
    """The names that others of a group have."""

    resources: frozenset[str]
    kinds: frozenset[str]


def taken(others: Iterable[Names]) -> Taken:
    resources: set[str] = set()
    kinds: set[str] = set()
    for names in others:
        resources |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
        kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return Taken(frozenset(resources - {""}), frozenset(kinds - {""}))


def accepted(wanted: Names, had: Names, others: Taken) -> tuple[Document, str, str]:
    """The names a definition gets; and, where one was taken, the reason and sentence of its condition."""
    names: Document = dict(had)
    reason = sentence = ""
    for name, space, conflict in (
        ("plural", others.resources, "PluralConflict"),
        ("singular", others.resources, "SingularConflict"),
        ("shortNames", others.resources, "ShortNamesConflict"),
        ("kind", others.kinds, "KindConflict"),
        ("listKind", others.kinds, "ListKindConflict"),
    ):
        asked = wanted.get(name)
        new = [asked] if isinstance(asked, str) else asked or []
        in_use = [word for word in new if word in space]
        if in_use:
            words = [f'"{word}" is already in use' for word in in_use]
            reason, sentence = conflict, words[0] if len(words) == 1 else f"[{', '.join(words)}]"
        elif asked:
            names[name] = asked
        else:
            names.pop(name, None)
    names.pop("categories", None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    return names, reason, sentence


def is_true(definition: Mapping[str, Any], type_: str) -> bool:
    conditions = dig(definition, "status", "conditions") or ()
    return any(found.get("type") == type_ and found.get("status") == "True" for found in conditions)


def status_of(definition: Mapping[str, Any], others: Taken) -> Document:
    """The status a definition has to have, given the names that others have."""
    status: Document = dict(definition.get("status") or {})
    names, reason, sentence = accepted(definition["spec"]["names"], status.get("acceptedNames") or {}, others)
    status["acceptedNames"] = names
    found = list(status.get("conditions") or ())
    if reason:
        found = with_condition(found, NAMES_ACCEPTED, "False", reason, sentence)
        if not is_true(definition, ESTABLISHED):
            found = with_condition(found, ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
    else:
        found = with_condition(found, NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
        if not is_true(definition, ESTABLISHED):
            found = with_condition(
                found, ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted"
            )
    status["conditions"] = found
    return status


def with_condition(
    conditions: Iterable[Document], type_: str, status: str, reason: str, message: str
) -> list[Document]:
    """The conditions with this one in its place. Its time moves only when its status does."""
    made: list[Document] = []
    new: Document = {
        "type": type_,
        "status": status,
        "lastTransitionTime": timestamp(),
        "reason": reason,
        "message": message,
    }
    for found in conditions:
        if found.get("type") != type_:
            made.append(found)
            continue
        if found.get("status") == status:
            new["lastTransitionTime"] = found.get("lastTransitionTime", new["lastTransitionTime"])
        made.append(new)
    return made if new in made else [*made, new]
