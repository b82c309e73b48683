"""Kubernetes' own kinds, as far as Ingot reads and writes them: Secret, ConfigMap, Namespace, Node, Event, Lease."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Any, Final

import msgspec

from ingot.api.meta import Malformed, Model, Object, ObjectReference, Resource


class UnreadableSecret(Malformed):
    """A value in a Secret is not what it should be. Never says the value."""


class SecretObject(Object):
    """The API object of kind Secret. Called so because `trust.Secret` is a single value that must not be shown.

    Its repr names the keys and hides what is behind them.
    """

    type: str = ""
    immutable: bool | None = None
    data: dict[str, str] = msgspec.field(default_factory=dict)
    """Values in base64, as they are on the wire; `text` decodes one."""
    string_data: dict[str, str] = msgspec.field(default_factory=dict)
    """For writing only: values as they are, which the API turns into `data`."""

    def text(self, key: str) -> str | None:
        """The value of a key as text; None where the Secret has no such key."""
        if key not in self.data:
            return None
        try:
            return base64.b64decode(self.data[key], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise UnreadableSecret(
                f"Secret {self.key}: the value of {key!r} is not text in base64. "
                "Write it again with `kubectl create secret generic` or under `stringData`."
            ) from None

    def __repr__(self) -> str:
        return f"SecretObject({self.key}, type={self.type!r}, keys={sorted({*self.data, *self.string_data})})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("key", str(self.key)), ("keys", sorted({*self.data, *self.string_data}))]


class ConfigMap(Object):
    """Words and settings that are not secret."""

    data: dict[str, str] = msgspec.field(default_factory=dict)


class Namespace(Object):
    """A room for names."""


class NodeCondition(Model):
    """One aspect of a node's state. Kubelets leave out what they have nothing to say about."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class NodeTaint(Model):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Model):
    provider_id: str = msgspec.field(name="providerID", default="")
    unschedulable: bool = False
    taints: list[NodeTaint] = msgspec.field(default_factory=list)


class NodeAddress(Model):
    address: str = ""
    type: str = ""


class NodeStatus(Model):
    addresses: list[NodeAddress] = msgspec.field(default_factory=list)
    conditions: list[NodeCondition] = msgspec.field(default_factory=list)


class Node(Object):
    """A machine that runs pods, registered and described by the agent on it."""

    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def ready(self) -> NodeCondition | None:
        """Whether it answers and takes pods; None while nobody said anything about it."""
        return next((found for found in self.status.conditions if found.type == "Ready"), None)


class EventSource(Model):
    component: str = ""
    host: str = ""


class Event(Object):
    """Something that happened to an object, told to whoever looks. Kept for a while only."""

    involved_object: ObjectReference = msgspec.field(default_factory=ObjectReference)
    related: ObjectReference | None = None
    reason: str = ""
    message: str = ""
    type: str = ""
    action: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    source: EventSource = msgspec.field(default_factory=EventSource)
    reporting_component: str = ""
    reporting_instance: str = ""


class LeaseSpec(Model):
    holder_identity: str = ""
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(Object):
    """Who may act alone, and until when."""

    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


SECRETS: Final = Resource(group="", version="v1", kind="Secret", plural="secrets", type=SecretObject)
CONFIG_MAPS: Final = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", type=ConfigMap)
NAMESPACES: Final = Resource(
    group="", version="v1", kind="Namespace", plural="namespaces", type=Namespace, namespaced=False
)
NODES: Final = Resource(group="", version="v1", kind="Node", plural="nodes", type=Node, namespaced=False)
EVENTS: Final = Resource(group="", version="v1", kind="Event", plural="events", type=Event)
LEASES: Final = Resource(group="coordination.k8s.io", version="v1", kind="Lease", plural="leases", type=Lease)
