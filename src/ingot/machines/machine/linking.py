"""Which host a Machine has, as both sides write it down. Pure.

The host names its Machine in `spec.consumerRef`, which is the lock. The Machine names its host in an annotation from the moment
it means to take it, and in `spec.providerID` once it has it. A provider ID with the UID of another host means a host that is
gone: its name may belong to a new one, which is nobody's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.machine import MACHINES, Annotation, Machine
from ingot.api.meta import Key, ObjectReference

_SCHEME: Final = "baremetalhost:///"
_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")


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
    """The host that the Machine has or means to take; None where it names none that could be.

    Whoever may write a Machine may write any name on it: hosts of other namespaces are not for its having.
    """
    by_id = _parsed(machine.spec.provider_id.removeprefix(_SCHEME), machine)
    if machine.spec.provider_id.startswith(_SCHEME) and by_id is not None:
        return by_id
    named = _parsed(machine.metadata.annotations.get(Annotation.HOST, ""), machine)
    return named if named is not None and not named.uid else None


def _parsed(text: str, machine: Machine) -> Link | None:
    namespace, _, rest = text.partition("/")
    name, _, uid = rest.partition("/")
    if namespace != machine.metadata.namespace or not _NAME.fullmatch(name) or "/" in uid:
        return None
    return None if rest.endswith("/") else Link(Key(namespace, name), uid)
