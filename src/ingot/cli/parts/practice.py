"""The lab's servers as hosts in the API: created once, and from then on the user's.

An object that exists is never changed, and one that the user deleted is not created again: `run/applied.json` remembers what was
created, and in which API, so a new API gets its hosts and an old one is left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import NAMESPACES, SECRETS
from ingot.api.meta import Key, Resource
from ingot.cli.parts.state import StateFolder
from ingot.kube import AlreadyExists, Client
from ingot.trust import write_public

KINDS: Final[Mapping[str, Resource[Any]]] = {
    kind.kind: kind for kind in (NAMESPACES, SECRETS, BARE_METAL_HOSTS)
}


class Created(msgspec.Struct, frozen=True, order=True):
    kind: str
    namespace: str
    name: str

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """What was created so far. `api` names the API's database, `by` the process that looked last."""

    api: str = ""
    by: int = 0
    objects: list[Created] = msgspec.field(default_factory=list)

    @property
    def hosts(self) -> list[Key]:
        return [made.key for made in self.objects if made.kind == BARE_METAL_HOSTS.kind]


def read_applied(state: StateFolder) -> Applied:
    try:
        return msgspec.json.decode((state.run / "applied.json").read_bytes(), type=Applied)
    except (FileNotFoundError, msgspec.DecodeError):
        return Applied()


async def create_once(client: Client, state: StateFolder, objects: Iterable[Mapping[str, Any]]) -> Applied:
    """Create what was not created before; returns all that was ever created in this API."""
    # The namespace kube-system is as old as the API it is in, so its uid tells one API from another.
    api = (await client.get(NAMESPACES, Key("", "kube-system"))).metadata.uid
    before = read_applied(state)
    known = list(before.objects) if before.api == api else []
    for body in objects:
        made = _identity(body)
        if made not in known:
            await _create(client, made, body)
            known.append(made)
            # At once: what is created and forgotten would come back after the user deleted it.
            _write(state, Applied(api=api, objects=known))
    applied = Applied(api=api, by=os.getpid(), objects=known)
    _write(state, applied)
    return applied


async def _create(client: Client, made: Created, body: Mapping[str, Any]) -> None:
    try:
        await client.create(KINDS[made.kind], body, namespace=made.namespace)
    except AlreadyExists:
        # Created by a run that was killed before it could say so, or by the user: either way it stays as it is.
        return


def _identity(body: Mapping[str, Any]) -> Created:
    metadata = body["metadata"]
    kind = KINDS[body["kind"]]
    return Created(
        kind=kind.kind,
        namespace=metadata.get("namespace", "default") if kind.namespaced else "",
        name=metadata["name"],
    )


def _write(state: StateFolder, applied: Applied) -> None:
    write_public(state.run / "applied.json", msgspec.json.format(msgspec.json.encode(applied)) + b"\n")
