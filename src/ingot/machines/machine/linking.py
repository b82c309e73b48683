"""Which host a Machine has, as both sides write it down. Pure.

The host names its Machine in `spec.consumerRef`, which is the lock. The Machine names its host in an annotation from the moment
it means to take it, and in `spec.providerID` once it has it. A provider ID with the UID of another host means a host that is
gone: its name may belong to a new one, which is nobody's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.machine import MACHINES, Annotation, Machine
from ingot.api.meta import Key, ObjectReference

_SCHEME: Final = "baremetalhost:///"


@dataclass(frozen=True, slots=True)
class Link:
    """The host that a Machine names. Without a UID, whichever has the name."""

    key: Key
    uid: str = ""

    def means(self, host: BareMetalHost) -> bool:
        return host.key == self.key and self.uid in ("", host.metadata.uid)


def consumer_of(machine: Machine) -> ObjectReference:
    """How the Machine is named on its host."""
    return consumer_of_key(machine.key)


def consumer_of_key(key: Key) -> ObjectReference:
    return ObjectReference(
        api_version=MACHINES.api_version, kind=MACHINES.kind, name=key.name, namespace=key.namespace
    )


def provider_id(host: BareMetalHost) -> str:
    return f"{_SCHEME}{host.metadata.namespace}/{host.metadata.name}/{host.metadata.uid}"


def link_of(machine: Machine) -> Link | None:
    """The host that the Machine has or means to take; None where it names none that could be."""
    by_id = _parsed(machine.spec.provider_id.removeprefix(_SCHEME))
    if machine.spec.provider_id.startswith(_SCHEME) and by_id is not None:
        return by_id
    named = _parsed(machine.metadata.annotations.get(Annotation.HOST, ""))
    return named if named is not None and not named.uid else None


def _parsed(text: str) -> Link | None:
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        return None
    return Link(Key(parts[0], parts[1]), parts[2] if len(parts) == 3 else "")
