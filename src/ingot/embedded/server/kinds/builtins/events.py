"""Event: what happened to an object of its own namespace.

The same objects are served in two groups that name the fields differently: the core one, in whose form they are kept
(old recorders, kubectl), and `events.k8s.io` (newer recorders), whose writers have to say more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins import rules
from ingot.embedded.server.kinds.builtins.making import built_in
from ingot.embedded.server.kinds.builtins.tables import message
from ingot.embedded.server.kinds.columns import NAME, Column, age
from ingot.embedded.server.kinds.kind import field_at

# Field of events.k8s.io → field of the core group.
_OTHER_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
# What a newer recorder cannot change about an event: only the series goes on.
_FIXED: Final = (
    "regarding",
    "related",
    "reason",
    "note",
    "type",
    "action",
    "reportingController",
    "reportingInstance",
    "eventTime",
)
_NOTE_LIMIT: Final = 1024


def _to_core(event: Document) -> Document:
    made = {_OTHER_NAMES.get(name, name): value for name, value in event.items()}
    made.setdefault("involvedObject", {})
    return made


def _from_core(event: Document) -> Document:
    names = {core: new for new, core in _OTHER_NAMES.items()}
    return {names.get(name, name): value for name, value in event.items()}


def _check(new: Document, old: Document | None) -> list[Cause]:
    return _place(new, "involvedObject")


def _check_new_style(new: Document, old: Document | None) -> list[Cause]:
    found = _place(new, "regarding")
    if old is not None:
        return found + [problem for name in _FIXED for problem in rules.immutable(new, old, name)]
    found += [
        cause("Required", name, "")
        for name in ("eventTime", "reportingController", "reportingInstance", "action", "reason")
        if not new.get(name)
    ]
    if new.get("type") not in ("Normal", "Warning"):
        found.append(
            cause("Invalid", "type", 'must be "Normal" or "Warning"', shown=rules.shown(new.get("type", "")))
        )
    if len(new.get("note", "")) > _NOTE_LIMIT:
        found.append(cause("Invalid", "note", f"can have at most {_NOTE_LIMIT} characters", shown='""'))
    return found


def _place(event: Document, about: str) -> list[Cause]:
    there = dig(event, about, "namespace") or ""
    here = dig(event, "metadata", "namespace")
    if there != here and not (there == "" and here in ("default", "kube-system")):
        words = "does not match event.namespace"
        return [cause("Invalid", f"{about}.namespace", words, shown=rules.shown(there))]
    return []


# Both groups show the same columns, read from the core form.


def _last_seen(event: Document) -> str:
    seen = dig(event, "series", "lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return age(seen or dig(event, "metadata", "creationTimestamp"))


def _about(event: Document) -> str:
    reference = event.get("involvedObject") or {}
    return f"{str(reference.get('kind', '')).lower()}/{reference.get('name', '')}"


def _source(event: Document) -> str:
    parts = (
        dig(event, "source", "component") or event.get("reportingComponent"),
        dig(event, "source", "host") or event.get("reportingInstance"),
    )
    return ", ".join(part for part in parts if part)


_COLUMNS: Final = (
    Column("Last Seen", _last_seen, description="Time since it was last seen."),
    Column("Type", lambda d: d.get("type"), description="Normal or Warning."),
    Column("Reason", lambda d: d.get("reason"), description="Why, in one word."),
    Column("Object", _about, description="The object it is about."),
    Column("Subobject", lambda d: dig(d, "involvedObject", "fieldPath"), priority=1, description="Its part."),
    Column("Source", _source, priority=1, description="Who noticed."),
    Column("Message", lambda d: str(d.get("message") or "").strip(), description="What happened."),
    Column(
        "First Seen",
        lambda d: age(d.get("firstTimestamp") or d.get("eventTime")),
        priority=1,
        description="Time since it was first seen.",
    ),
    Column(
        "Count",
        lambda d: d.get("count") or dig(d, "series", "count") or 1,
        priority=1,
        description="How often it was seen.",
    ),
    Column(NAME.name, NAME.read, format="name", priority=1, description=NAME.description),
)


def _read_as_core(read: Callable[[Document], object]) -> Callable[[Document], object]:
    return lambda event: read(_to_core(event))


_REFERENCE: Final = tuple(message("io.k8s.api.core.v1.ObjectReference").by_name)

# How each group calls the fields that events can be selected by; the values are the same.
_SELECTED: Final = {
    **{f"involvedObject.{part}": f"regarding.{part}" for part in _REFERENCE},
    "reason": "reason",
    "type": "type",
    "reportingComponent": "reportingController",
}


def _component(event: Document) -> str:
    return str(dig(event, "source", "component") or event.get("reportingComponent") or "")


EVENTS: Final = replace(
    built_in(
        "",
        "Event",
        "events",
        short_names=("ev",),
        columns=_COLUMNS,
        fields={
            **{name: field_at(f".{core}") for core, new in _SELECTED.items() for name in (core, new)},
            "source": _component,
        },
        check=_check,
    ),
    selectable_fields=frozenset({*_SELECTED, "source"}),
)

NEW_STYLE_EVENTS: Final = replace(
    built_in(
        "events.k8s.io",
        "Event",
        "events",
        short_names=("ev",),
        columns=tuple(replace(column, read=_read_as_core(column.read)) for column in _COLUMNS),
        check=_check_new_style,
    ),
    stored_as=EVENTS,
    selectable_fields=frozenset(_SELECTED.values()),
    to_home=_to_core,
    from_home=_from_core,
)
