"""What hosts that were deleted by force have left in the back end: noted where it survives us, and removed when it answers again.

A forced delete lets a host go without asking the back end, which may keep a record of it. That is noted first, in the ConfigMap
`ingot-forgotten-hosts` of the host's namespace, one entry a host, without anything secret. The record is removed as soon as the
back end answers, and then the entry goes. A host of the same name that was created meanwhile is not registered before that, so
that it neither inherits a record nor loses one: what a live host is registered as is never removed here (see `guard`).
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost, OperationalStatus, State
from ingot.api.core import CONFIG_MAPS, ConfigMap
from ingot.api.meta import Key
from ingot.hosts import guard
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import LOOK_AGAIN, Outcome, Wait
from ingot.kube import Again, Change, Client, Controller, Done, Forbidden, Informer, NotFound
from ingot.provisioner import (
    EVERYTHING,
    Act,
    BackendUnavailable,
    Busy,
    Failed,
    HostRef,
    Permit,
    Provisioner,
    Ready,
    Refusal,
    Sight,
)
from ingot.provisioner import Change as BackendChange
from ingot.trust import redact

log = logging.getLogger(__name__)

FORGOTTEN: Final = "ingot-forgotten-hosts"
"""The name of the ConfigMap, in each namespace that needs one."""
NEVER_REGISTERED: Final = frozenset({State.NONE, State.UNMANAGED})
"""States in which the back end has no record of the host."""
WORKERS: Final = 4


class Leftover(msgspec.Struct, frozen=True, kw_only=True, rename={"backend_id": "backEndID"}):
    """A host that was let go, and what the back end calls it."""

    uid: str
    backend_id: str = ""
    since: datetime


def leftovers(noted: ConfigMap | None) -> dict[str, Leftover]:
    """What is noted, by the name of the host. What is not ours to read is left alone."""
    found: dict[str, Leftover] = {}
    for name, text in (noted.data if noted is not None else {}).items():
        try:
            found[name] = msgspec.json.decode(text, type=Leftover)
        except (msgspec.DecodeError, UnicodeError) as error:
            log.warning("%s: the entry %s cannot be read: %s", noted and noted.key, name, error)
    return found


def left_behind(host: BareMetalHost, *, noted: bool = True) -> str:
    """What a host leaves that is deleted by force, for its user. `noted`: whether we shall know of it."""
    if host.state in NEVER_REGISTERED:
        return "The back end never knew the host: nothing is left behind."
    status = host.status
    name = status.provisioning.id
    record = f"Its record{f' {name}' if name else ''} in the back end"
    if status.operational_status is OperationalStatus.DETACHED:
        record = "It is detached: the back end has no record of it."
    elif noted:
        record += (
            f" is removed as soon as that answers, and is noted in the ConfigMap {FORGOTTEN} until then."
        )
    else:
        record += (
            " is left there, and has to be removed by hand: this namespace takes no ConfigMap to note it in."
        )
    image = status.provisioning.image
    runs = f"may go on running {redact(image.url)}" if image is not None and image.url else "is left as it is"
    return f"{record} The machine {runs}, and was last seen switched {'on' if status.powered_on else 'off'}."


async def note_leftover(p: Pass) -> bool:
    """Note that the back end may keep a record of the host. False when this namespace takes no notes."""
    if p.detached or p.state in NEVER_REGISTERED:
        return True
    entry = Leftover(uid=p.host.metadata.uid, backend_id=p.status.provisioning.id, since=p.tools.now())
    place = Key(p.key.namespace, FORGOTTEN)
    known = leftovers(p.tools.forgotten.get(place)).get(p.key.name)
    if known is not None and (known.uid == entry.uid or not entry.backend_id):
        # Noted before a crash; or this host never came to be registered, because it waited for that record to go.
        return True
    data = {p.key.name: msgspec.json.encode(entry).decode()}
    try:
        written = await _write(p.tools.client, place, data)
    except Forbidden as error:
        # A namespace that is being deleted takes nothing new; what it holds has to be able to go nevertheless.
        log.warning("%s: what it leaves in the back end cannot be noted: %s", p.key, error)
        return False
    p.tools.forgotten.observe(written)
    return True


async def _write(client: Client, place: Key, data: dict[str, str]) -> ConfigMap:
    try:
        return await client.patch(CONFIG_MAPS, place, {"data": data})
    except NotFound:
        body = {"metadata": {"name": place.name}, "data": data}
        return await client.create(CONFIG_MAPS, body, namespace=place.namespace)


async def record_goes_first(p: Pass) -> Outcome | None:
    """Whether a new host has to wait until the record of an earlier one of its name is gone."""
    noted = leftovers(p.tools.forgotten.get(Key(p.key.namespace, FORGOTTEN))).get(p.key.name)
    if noted is None or noted.uid == p.host.metadata.uid or p.deleting or p.status.provisioning.id:
        return None
    return Wait(
        "an earlier host of this name was deleted by force, and the back end still has its record; this host is registered as "
        "soon as the back end answers and that record is removed. If that cannot be, remove the host's entry from the ConfigMap "
        f"{FORGOTTEN}"
    )


class Leftovers:
    """Removes what was left, one record at a time, woken by the notes and by the back end."""

    def __init__(
        self,
        client: Client,
        backend: Provisioner,
        hosts: Informer[BareMetalHost],
        forgotten: Informer[ConfigMap],
        *,
        wake_host: Callable[[Key], None],
    ) -> None:
        self._client, self._backend = client, backend
        self._hosts, self._forgotten = hosts, forgotten
        self._wake_host = wake_host
        self.controller = Controller("forgotten-hosts", self._remove, workers=WORKERS)
        forgotten.subscribe(self._notes_changed)

    def backend_changed(self, change: BackendChange) -> None:
        """The back end has news: of one host, or it is back."""
        for noted in self._forgotten.items():
            for name in leftovers(noted):
                key = Key(noted.metadata.namespace, name)
                if change is EVERYTHING or change == key:
                    self.controller.wake(key)

    def _notes_changed(self, change: Change[ConfigMap]) -> None:
        before, after = leftovers(change.old), leftovers(change.new)
        for name in after:
            self.controller.wake(Key(change.key.namespace, name))
        for name in before.keys() - after.keys():
            self._wake_host(Key(change.key.namespace, name))

    async def _remove(self, key: Key) -> Done | Again:
        noted = self._forgotten.get(Key(key.namespace, FORGOTTEN))
        left = leftovers(noted).get(key.name)
        if noted is None or left is None:
            return Done()
        if guard.took_over(await self._live(key), uid=left.uid):
            log.info("%s: a host of this name is registered; nothing of the earlier one is left", key)
            return await self._drop(noted, key)
        try:
            answer = await self._backend.delete(
                HostRef(key, left.uid, left.backend_id), permit=self._permit(key, left)
            )
        except BackendUnavailable as error:
            return Again(LOOK_AGAIN, f"the back end is away: {error}")
        match answer:
            case Ready():
                log.info("%s: the back end has forgotten the host that was deleted by force", key)
                return await self._drop(noted, key)
            case Busy(why):
                return Again(LOOK_AGAIN, why)
            case Failed(message):
                log.warning("%s: the back end cannot forget the host that was deleted: %s", key, message)
                return Again(LOOK_AGAIN, message)

    async def _drop(self, noted: ConfigMap, key: Key) -> Done:
        version = noted.metadata.resource_version
        if set(noted.data) == {key.name}:
            with contextlib.suppress(NotFound):
                await self._client.delete(CONFIG_MAPS, noted.key, resource_version=version)
            return Done()
        written = await self._client.patch(
            CONFIG_MAPS, noted.key, {"data": {key.name: None}}, resource_version=version
        )
        self._forgotten.observe(written)
        return Done()

    def _permit(self, key: Key, left: Leftover) -> Permit:
        async def permit(act: Act, sight: Sight) -> Refusal | None:
            owner = next(
                (host for host in self._hosts.items() if host.status.provisioning.id == sight.backend_id),
                None,
            )
            live = await self._live(key)
            self._client.check_leave()
            return guard.refusal_for_leftover([live, owner], uid=left.uid, act=act, sight=sight)

        return permit

    async def _live(self, key: Key) -> BareMetalHost | None:
        try:
            return await self._client.get(BARE_METAL_HOSTS, key)
        except NotFound:
            return None
