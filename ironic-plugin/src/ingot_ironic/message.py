"""What the operator is told: events about nodes, and the message they travel in.

An event names a node and carries a few of its fields, chosen here by name; of a step only its name. Payloads, driver_info,
instance_info and driver_internal_info never leave Ironic, because they hold passwords, tokens and user data. An event without
fields means "look again".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

PLAIN_FIELDS: Final = (
    "provision_state",
    "target_provision_state",
    "power_state",
    "target_power_state",
    "maintenance",
    "fault",
    "last_error",
    "health",
    "instance_uuid",
    "inspection_finished_at",
    "provision_updated_at",
)
STEP_FIELDS: Final = ("clean_step", "deploy_step", "service_step")
WATCHED: Final = frozenset((*PLAIN_FIELDS, *STEP_FIELDS))


@dataclass(frozen=True, slots=True)
class Event:
    """Something about one node."""

    uuid: str
    name: str | None = None
    fields: Mapping[str, Any] | None = None
    deleted: bool = False

    def after(self, earlier: Event) -> Event:
        """Both as one event: later fields win, and a wish to look again is never lost."""
        if self.deleted or earlier.deleted:
            return Event(self.uuid, self.name or earlier.name, None, self.deleted)
        fields = {**earlier.fields, **self.fields} if self.fields and earlier.fields else None
        return Event(self.uuid, self.name or earlier.name, fields)

    def as_json(self, seq: int) -> dict[str, Any]:
        fields = dict(self.fields or {})
        return {"seq": seq, "uuid": self.uuid, "name": self.name, "deleted": self.deleted, "fields": fields}


def event_of(node: Any) -> Event:
    """What a node just saved looks like. Missing attributes (another version of Ironic) are left out."""
    fields = {field: _value(getattr(node, field)) for field in PLAIN_FIELDS if _has(node, field)}
    fields |= {field: _step_name(getattr(node, field)) for field in STEP_FIELDS if _has(node, field)}
    if _has(node, "updated_at"):
        fields["updated_at"] = _value(node.updated_at)
    return Event(node.uuid, node.name, fields)


def encode(
    *, sender: str, first: int, gap: bool, patches: Mapping[str, bool], events: Sequence[Event]
) -> bytes:
    """The body of one POST."""
    body = {
        "sender": sender,
        "first": first,
        "gap": gap,
        "patches": dict(patches),
        "events": [event.as_json(seq) for seq, event in enumerate(events, start=first)],
    }
    return json.dumps(body, separators=(",", ":")).encode()


def _has(node: Any, field: str) -> bool:
    return field in node.fields and bool(node.obj_attr_is_set(field))


def _value(value: Any) -> str | bool | None:
    if value is None or isinstance(value, str | bool):
        return value
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _step_name(step: Any) -> str | None:
    return str(step["step"]) if isinstance(step, Mapping) and step.get("step") else None
