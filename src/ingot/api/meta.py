"""What all kinds share: object metadata, references, conditions, and the descriptor of a kind.

Owns the words that `kube` needs to talk about any object without knowing any kind. A `Resource` says where a kind lives in
the API and which struct its objects decode into. Unknown fields are ignored on decoding, so a struct is for reading and
deciding; what is written back is always a patch of the fields that changed, never a whole object.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct


class Key(NamedTuple):
    """Where an object is: its namespace ("" for a cluster-wide kind) and its name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Model(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of every struct of the API: camel case on the wire, defaults left out."""


class OwnerReference(Model):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    finalizers: list[str] = msgspec.field(default_factory=list)
    owner_references: list[OwnerReference] = msgspec.field(default_factory=list)


class Object(Model):
    """What every API object has. Kinds derive from it and add spec, status or data."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)


class PartialObjectMetadata(Object):
    """An object of any kind of which only the metadata was read."""


class ObjectReference(Model):
    """Points at an object of any kind."""

    api_version: Annotated[str, Meta(description="API version of the object referred to.")] = ""
    field_path: Annotated[
        str, Meta(description="A part of the object, for references that mean less than the whole.")
    ] = ""
    kind: Annotated[str, Meta(description="Kind of the object referred to.")] = ""
    name: Annotated[str, Meta(description="Name of the object referred to.")] = ""
    namespace: Annotated[str, Meta(description="Namespace of the object referred to.")] = ""
    resource_version: Annotated[
        str, Meta(description="The exact version of the object that was meant, if any.")
    ] = ""
    uid: Annotated[str, Meta(description="UID of the object referred to.")] = ""


class SecretReference(Model):
    """Points at a Secret."""

    name: Annotated[str, Meta(description="Name of the Secret.")] = ""
    namespace: Annotated[
        str, Meta(description="Namespace of the Secret; empty means the namespace of the object itself.")
    ] = ""


class Condition(Model):
    """One aspect of an object's state, in the form that `kubectl wait --for=condition=…` reads."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime
    observed_generation: int | None = None


T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(Generic[T]):
    """A kind: where it lives in the API and what its objects decode into."""

    group: str
    version: str
    kind: str
    plural: str
    type: type[T]
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of the collection, of one object, or of a part of it."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


def now() -> datetime:
    """The current time as the API writes it: UTC, whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)
