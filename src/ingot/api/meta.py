"""What all kinds share: object metadata, references, conditions, and the descriptor of a kind.

Owns the words that `kube` needs to talk about any object without knowing any kind. A `Resource` says where a kind lives in
the API and which struct its objects decode into. Unknown fields are ignored on decoding, so a struct is for reading and
deciding; what is written back is always a patch of the fields that changed, never a whole object.

A name that a user wrote (of a Secret, say) becomes a part of a URL here and nowhere else: `Resource.path` lets no name
reach beyond its own namespace.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, Generic, Literal, NamedTuple, TypeVar, dataclass_transform
from urllib.parse import quote

import msgspec
from msgspec import Struct

from ingot.api.schema import doc


class Malformed(ValueError):
    """Something a user wrote cannot be what it has to be. The message is for that user."""


class InvalidName(Malformed):
    """A name that no object can have, and that would point elsewhere in a URL."""


class Key(NamedTuple):
    """Where an object is: its namespace ("" for a cluster-wide kind) and its name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Model(Struct, kw_only=True, omit_defaults=True, rename="camel", frozen=True, gc=False):
    """Base of every struct of the API: camel case on the wire, defaults left out.

    Frozen, because a decoded object is shared by a cache and everybody who reads it: `msgspec.structs.replace` makes a
    changed copy. Objects of an API are trees, so the garbage collector, which looks for cycles, has nothing to find in them.
    """


class OwnerReference(Model):
    """Points at an object that this one belongs to and is deleted with."""

    api_version: Annotated[str, doc("API version of the owner.")]
    kind: Annotated[str, doc("Kind of the owner.")]
    name: Annotated[str, doc("Name of the owner.")]
    uid: Annotated[str, doc("UID of the owner.")]
    controller: Annotated[bool | None, doc("Whether it is the one owner that looks after the object.")] = None
    block_owner_deletion: Annotated[
        bool | None, doc("Whether the owner cannot go, in a foreground deletion, before the object is gone.")
    ] = None


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

    api_version: Annotated[str, doc("API version of the object referred to.")] = ""
    field_path: Annotated[str, doc("A part of the object, for references that mean less than the whole.")] = (
        ""
    )
    kind: Annotated[str, doc("Kind of the object referred to.")] = ""
    name: Annotated[str, doc("Name of the object referred to.")] = ""
    namespace: Annotated[str, doc("Namespace of the object referred to.")] = ""
    resource_version: Annotated[str, doc("The exact version of the object that was meant, if any.")] = ""
    uid: Annotated[str, doc("UID of the object referred to.")] = ""


class SecretReference(Model):
    """Points at a Secret."""

    name: Annotated[str, doc("Name of the Secret.")] = ""
    namespace: Annotated[
        str, doc("Namespace of the Secret; empty means the namespace of the object itself.")
    ] = ""


ConditionStatus = Literal["True", "False", "Unknown"]

_LABEL_PREFIX = r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
_LABEL_NAME = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])"
LABEL_KEY_PATTERN: Final = f"^{_LABEL_PREFIX}{_LABEL_NAME}$"
"""The key of a label, and everything else that is named like one: conditions, hooks."""


class Condition(Model):
    """One aspect of an object's state, in the form that `kubectl wait --for=condition=…` reads."""

    type: Annotated[
        str,
        doc("Which aspect of the object this is.", maxLength=316, pattern=LABEL_KEY_PATTERN),
    ]
    status: Annotated[ConditionStatus, doc("Whether it holds: True, False or Unknown.")]
    reason: Annotated[
        str,
        doc(
            "Why, in one word that programs can compare.",
            minLength=1,
            maxLength=1024,
            pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        ),
    ]
    message: Annotated[str, doc("Why, in a sentence for people.", maxLength=32768)]
    last_transition_time: Annotated[datetime, doc("When `status` last changed.")]
    observed_generation: Annotated[
        int | None,
        doc(
            "The generation of the object that this was said of; older than the object's own means out of date.",
            minimum=0,
            format="int64",
        ),
    ] = None


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
        for part in (namespace, name, subresource):
            _check_path_segment(part)
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(quote(part, safe="/:") for part in parts)


def _check_path_segment(part: str) -> None:
    """Kubernetes allows no such name in any kind; in a URL it would leave the namespace it was meant for."""
    if part in (".", "..") or "/" in part or "%" in part:
        raise InvalidName(
            f"{part!r} is not the name of an object: it must not be '.' or '..' or contain '/' or '%'. "
            "Correct the field that refers to it."
        )


def now() -> datetime:
    """The current time as the API writes it: UTC, whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)
