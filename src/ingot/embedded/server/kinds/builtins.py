"""The kinds of Kubernetes itself that Ingot needs: Namespace, Secret, Event, Lease, and the definitions of its own
kinds.

Each is written down as a `Kind` with a schema in our own words, the columns `kubectl get` shows for it, and the small
habits that no schema can say: a Secret's `stringData` becomes `data`, an Event is about an object in its own
namespace.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, bad_request, cause
from ingot.embedded.server.kinds.columns import AGE, NAME, Column, age
from ingot.embedded.server.kinds.kind import READ_VERBS, Kind, field_at


def _text(description: str, **more: object) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _object(description: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": properties}


def _map_of_text(description: str, **more: object) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": {"type": "string", **more}}


# Namespace


def _prepare_namespace(new: Document, old: Document | None) -> None:
    new["spec"] = (old or {}).get("spec") or {"finalizers": ["kubernetes"]}
    new["status"] = (old or {}).get("status") or {"phase": "Active"}
    # Selectors over namespaces rely on this label; Kubernetes sets it too.
    new["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = new["metadata"].get("name", "")


NAMESPACES: Final = Kind(
    group="",
    version="v1",
    kind="Namespace",
    plural="namespaces",
    singular="namespace",
    short_names=("ns",),
    namespaced=False,
    built_in=True,
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    schema=_object(
        "A scope for names: objects of most kinds live in a namespace and go when it goes.",
        spec=_object(
            "What keeps the namespace.",
            finalizers={
                "type": "array",
                "items": {"type": "string"},
                "description": "Who has to empty the namespace before it can go.",
            },
        ),
        status=_object(
            "The state of the namespace.", phase=_text("Active, or Terminating while it is emptied.")
        ),
    ),
    columns=(
        NAME,
        Column("Status", lambda d: dig(d, "status", "phase"), description="Phase of the namespace."),
        AGE,
    ),
    fields={"status.phase": field_at(".status.phase")},
    prepare=_prepare_namespace,
)


# Secret

_SECRET_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_SECRET_LIMIT: Final = 1024 * 1024


def _prepare_secret(new: Document, old: Document | None) -> None:
    data = _values(new, "data")
    for key, value in data.items():
        if value is None:
            data[key] = ""
        elif not isinstance(value, str) or not _is_base64(value):
            raise bad_request(
                f'Secret in version "v1" cannot be handled as a Secret: the value of data[{key!r}] is not base64; '
                "put plain text into stringData instead"
            )
    plain = _values(new, "stringData")
    new.pop("stringData", None)
    for key, value in plain.items():
        if not isinstance(value, str):
            raise bad_request(
                f'Secret in version "v1" cannot be handled as a Secret: stringData[{key!r}] is not text'
            )
        data[key] = base64.b64encode(value.encode()).decode()
    if data:
        new["data"] = data
    else:
        new.pop("data", None)
    new.setdefault("type", "Opaque")


def _values(new: Document, name: str) -> Document:
    found = new.get(name)
    if not isinstance(found, dict | None):
        raise bad_request(
            f'Secret in version "v1" cannot be handled as a Secret: {name} is not a map of names to values'
        )
    return found or {}


def _check_secret(new: Document, old: Document | None) -> list[Cause]:
    data = new.get("data", {})
    found = [
        cause(
            "Invalid",
            f"data[{key}]",
            "a key consists of up to 253 alphanumeric characters, '-', '_' or '.'",
        )
        for key in data
        if not _SECRET_KEY.fullmatch(key)
    ]
    if sum(len(value) * 3 // 4 for value in data.values()) > _SECRET_LIMIT:
        found.append(
            Cause("data", "FieldValueTooLong", f"Too long: may not be more than {_SECRET_LIMIT} bytes")
        )
    if old is not None:
        if new.get("type") != old.get("type"):
            found.append(cause("Invalid", "type", "field is immutable"))
        if old.get("immutable") and (not new.get("immutable") or data != old.get("data", {})):
            found.append(cause("Forbidden", "data", "field is immutable when `immutable` is set"))
    return found


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


SECRETS: Final = Kind(
    group="",
    version="v1",
    kind="Secret",
    plural="secrets",
    singular="secret",
    built_in=True,
    schema=_object(
        "Small pieces of data that only a few may read: passwords, tokens, keys.",
        data={
            "type": "object",
            "description": "The values, each encoded in base64.",
            "x-kubernetes-preserve-unknown-fields": True,
        },
        stringData={
            "type": "object",
            "description": "The same as plain text, for writing only: it is moved into data.",
            "x-kubernetes-preserve-unknown-fields": True,
        },
        type=_text("What the Secret is for, so that programs can find theirs."),
        immutable={"type": "boolean", "description": "When true, the data can never be changed again."},
    ),
    columns=(
        NAME,
        Column("Type", lambda d: d.get("type"), description="What the Secret is for."),
        Column(
            "Data",
            lambda d: len(d.get("data") or {}),
            type="integer",
            description="How many values it holds.",
        ),
        AGE,
    ),
    fields={"type": field_at(".type")},
    prepare=_prepare_secret,
    check=_check_secret,
)


# Event


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
    name: _text(words)
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
    schema=_object(
        "Something that happened to an object, told by whoever noticed. Events are kept for an hour.",
        involvedObject=_object("The object this is about.", **_REFERENCE),
        related=_object("A second object that had a part in it.", **_REFERENCE),
        reason=_text("Why, in one word for programs."),
        message=_text("What happened, in a sentence for people."),
        type=_text("Normal, or Warning."),
        action=_text("What was done or failed."),
        count={"type": "integer", "format": "int32", "description": "How often it was seen."},
        firstTimestamp=_text("When it was first seen.", **_TIME),
        lastTimestamp=_text("When it was last seen.", **_TIME),
        eventTime=_text("When it happened, with microseconds.", **_TIME),
        reportingComponent=_text("The controller that tells it."),
        reportingInstance=_text("Which of its instances."),
        source=_object("Who noticed.", component=_text("The component."), host=_text("The node it runs on.")),
        series=_object(
            "A series of like events.",
            count={"type": "integer", "format": "int32", "description": "How many so far."},
            lastObservedTime=_text("When the last one was seen.", **_TIME),
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


# Lease

LEASES: Final = Kind(
    group="coordination.k8s.io",
    version="v1",
    kind="Lease",
    plural="leases",
    singular="lease",
    built_in=True,
    schema=_object(
        "A claim that somebody holds for a time and has to renew: how one of many is elected.",
        spec=_object(
            "The claim.",
            holderIdentity=_text("Who holds it."),
            leaseDurationSeconds={
                "type": "integer",
                "format": "int32",
                "description": "How long others have to wait after the last renewal.",
            },
            acquireTime=_text("When it was taken.", format="date-time"),
            renewTime=_text("When it was last renewed.", format="date-time"),
            leaseTransitions={
                "type": "integer",
                "format": "int32",
                "description": "How often it changed hands.",
            },
            strategy=_text("How the holder is chosen where several offer themselves."),
            preferredHolder=_text("Who should hold it next."),
        ),
    ),
    columns=(
        NAME,
        Column("Holder", lambda d: dig(d, "spec", "holderIdentity"), description="Who holds it."),
        AGE,
    ),
)


# CustomResourceDefinition

DEFINITIONS: Final = Kind(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    singular="customresourcedefinition",
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    namespaced=False,
    built_in=True,
    verbs=READ_VERBS,
    schema={
        "type": "object",
        "description": "The definition of a kind. In this API definitions are part of the release and can only be read.",
        "properties": {
            "spec": {
                "type": "object",
                "description": "Names, scope, versions and schema of the kind.",
                "x-kubernetes-preserve-unknown-fields": True,
            },
            "status": {
                "type": "object",
                "description": "Whether the kind is served.",
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
    },
    columns=(
        NAME,
        Column(
            "Created At",
            lambda d: dig(d, "metadata", "creationTimestamp"),
            type="date",
            description="When the kind was first served.",
        ),
    ),
)

BUILT_IN: Final = (NAMESPACES, SECRETS, EVENTS, LEASES, DEFINITIONS)
FIRST_NAMESPACES: Final = ("default", "kube-system")
