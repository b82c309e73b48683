"""Event: what happened to an object of its own namespace."""

from __future__ import annotations

from typing import Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.builtins.fields import fields_of, text
from ingot.embedded.server.kinds.columns import NAME, Column, age
from ingot.embedded.server.kinds.kind import Kind, field_at


def _check_event(new: Document, old: Document | None) -> list[Cause]:
    about = dig(new, "involvedObject", "namespace") or ""
    here = dig(new, "metadata", "namespace")
    if about != here and not (about == "" and here in ("default", "kube-system")):
        return [
            cause("Invalid", "involvedObject.namespace", "does not match event.namespace", shown=f'"{about}"')
        ]
    return []


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


_REFERENCE: Final = {
    name: text(words)
    for name, words in {
        "apiVersion": "API version of the object.",
        "fieldPath": "The part of the object that is meant.",
        "kind": "Kind of the object.",
        "name": "Name of the object.",
        "namespace": "Namespace of the object.",
        "resourceVersion": "The version of the object that was meant.",
        "uid": "UID of the object.",
    }.items()
}
_TIME: Final = {"format": "date-time", "nullable": True}

EVENTS: Final = Kind(
    group="",
    version="v1",
    kind="Event",
    plural="events",
    singular="event",
    short_names=("ev",),
    built_in=True,
    schema=fields_of(
        "Something that happened to an object, told by whoever noticed. Events are kept for an hour.",
        involvedObject=fields_of("The object this is about.", **_REFERENCE),
        related=fields_of("A second object that had a part in it.", **_REFERENCE),
        reason=text("Why, in one word for programs."),
        message=text("What happened, in a sentence for people."),
        type=text("Normal, or Warning."),
        action=text("What was done or failed."),
        count={"type": "integer", "format": "int32", "description": "How often it was seen."},
        firstTimestamp=text("When it was first seen.", **_TIME),
        lastTimestamp=text("When it was last seen.", **_TIME),
        eventTime=text("When it happened, with microseconds.", **_TIME),
        reportingComponent=text("The controller that tells it."),
        reportingInstance=text("Which of its instances."),
        source=fields_of("Who noticed.", component=text("The component."), host=text("The node it runs on.")),
        series=fields_of(
            "A series of like events.",
            count={"type": "integer", "format": "int32", "description": "How many so far."},
            lastObservedTime=text("When the last one was seen.", **_TIME),
        ),
    ),
    columns=(
        Column("Last Seen", _last_seen, description="Time since it was last seen."),
        Column("Type", lambda d: d.get("type"), description="Normal or Warning."),
        Column("Reason", lambda d: d.get("reason"), description="Why, in one word."),
        Column("Object", _about, description="The object it is about."),
        Column(
            "Subobject", lambda d: dig(d, "involvedObject", "fieldPath"), priority=1, description="Its part."
        ),
        Column("Source", _source, priority=1, description="Who noticed."),
        Column("Message", lambda d: str(d.get("message") or "").strip(), description="What happened."),
        Column("First Seen", lambda d: age(d.get("firstTimestamp") or d.get("eventTime")), priority=1),
        Column(
            "Count", lambda d: d.get("count") or dig(d, "series", "count") or 1, type="integer", priority=1
        ),
        Column(NAME.name, NAME.read, format="name", priority=1, description=NAME.description),
    ),
    fields={
        name: field_at(f".{name}")
        for name in (
            *(f"involvedObject.{part}" for part in _REFERENCE),
            "reason",
            "type",
            "reportingComponent",
        )
    }
    | {"source": lambda d: str(dig(d, "source", "component") or d.get("reportingComponent") or "")},
    check=_check_event,
)
