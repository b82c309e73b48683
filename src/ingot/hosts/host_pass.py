"""One pass over one host: what was read, what has been decided, and the one write at its end.

A `Pass` carries the host as it was read and a status that the handlers change. `save` writes the difference, if there is any,
guarded by the version that was read, and then tells the Events that belong to it; so an Event is never told of something that
was not written. Handlers never call the API for the status themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from msgspec.structs import replace

from ingot.api.baremetalhost import (
    BARE_METAL_HOSTS,
    BareMetalHost,
    BareMetalHostStatus,
    ConditionType,
    ErrorType,
    EventReason,
    OperationalStatus,
    RamdiskStatus,
    State,
)
from ingot.api.core import ConfigMap, SecretObject
from ingot.api.meta import Key, PartialObjectMetadata
from ingot.api.wire import wire
from ingot.hosts import guard
from ingot.hosts.beside.companions import Companions
from ingot.hosts.conditions import conditions, with_conditions
from ingot.hosts.echoes import Echoes
from ingot.hosts.explanation import outlook
from ingot.hosts.patches import status_difference
from ingot.hosts.secrets.known import KnownCredentials
from ingot.hosts.settings import HostSettings
from ingot.kube import Client, EventRecorder, Informer, NotFound
from ingot.provisioner import Act, HostRef, Provisioner, Refusal, Sight, Vitals
from ingot.trust import redact

EventType = Literal["Normal", "Warning"]

QUIET: Final = timedelta(seconds=10)
"""How often a detail of what is going on is worth a write."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a pass works with."""

    client: Client
    hosts: Informer[BareMetalHost]
    secrets: Informer[PartialObjectMetadata]
    companions: Companions
    forgotten: Informer[ConfigMap]
    backend: Provisioner
    recorder: EventRecorder
    now: Callable[[], datetime]
    settings: HostSettings = field(default_factory=HostSettings)
    known_credentials: KnownCredentials = field(default_factory=KnownCredentials)
    echoes: Echoes = field(default_factory=Echoes)
    boots_noted: dict[Key, datetime] = field(default_factory=dict)
    """When a boot of each host was last noted in its status."""


@dataclass(frozen=True, slots=True)
class _Told:
    reason: EventReason
    message: str
    type: EventType


class Pass:
    """The host of this pass and all that is known and decided about it."""

    def __init__(self, host: BareMetalHost, tools: Tools) -> None:
        self.host = host
        self.tools = tools
        self.status: BareMetalHostStatus = host.status
        self.vitals: Vitals | None = None
        self.refused = False
        """Whether the guard stopped something: the back end and this pass were not of one mind."""
        self.stays_new = False
        """Whether the host goes on counting as one without a status, whatever is written; see `restoring`."""
        self.unmanageable = False
        """Whether the host cannot be registered, should the back end not know it, and is to be let go nevertheless."""
        self.note = ""
        """What is to be said beside why the host is where it is, whatever the pass comes to."""
        self.remark = ""
        """What the back end cannot do anything with, of what is asked for."""
        self.boots: RamdiskStatus | None = None
        """The ramdisk of its own that the back end has for the host; None: there is none, or none may be booted."""
        self.secrets: dict[str, SecretObject] = {}
        """What was read of them, for this pass alone."""
        self._told: list[_Told] = []
        self._mark = (self.status, 0)

    @property
    def key(self) -> Key:
        return self.host.key

    @property
    def state(self) -> State:
        return self.current.state

    @property
    def current(self) -> BareMetalHost:
        """The host with the status as decided so far."""
        return replace(self.host, status=self.status)

    @property
    def deleting(self) -> bool:
        return self.host.metadata.deletion_timestamp is not None

    @property
    def detached(self) -> bool:
        return self.status.operational_status is OperationalStatus.DETACHED

    @property
    def ref(self) -> HostRef:
        return HostRef(self.key, self.host.metadata.uid, self.status.provisioning.id)

    def failed_with(self, *kinds: ErrorType) -> bool:
        """Whether the last attempt failed in one of these ways; it has been told, and the next attempt is due."""
        return self.status.error_type in kinds

    def change(self, **fields: Any) -> None:
        self.status = replace(self.status, **fields)

    def change_provisioning(self, **fields: Any) -> None:
        self.change(provisioning=replace(self.status.provisioning, **fields))

    def completed(self) -> None:
        """Something was brought to its end: what failed before it does not count any more."""
        self.change(error_count=0)

    def clear_error(self) -> None:
        self.change(
            error_type=ErrorType.NONE,
            error_message="",
            operational_status=OperationalStatus.DETACHED if self.detached else OperationalStatus.OK,
            next_try=None,
        )

    def mark(self) -> None:
        """Where the pass is now, for `back_to_mark`."""
        self._mark = (self.status, len(self._told))

    def back_to_mark(self) -> None:
        """Take back what was decided since."""
        self.status, told = self._mark
        del self._told[told:]

    def tell(self, reason: EventReason, message: str, type: EventType = "Normal") -> None:
        """Remember an Event, to be sent once what it speaks of has been written."""
        self._told.append(_Told(reason, message, type))

    async def save(self, why: str, detail: str = "") -> bool:
        """Write what changed, if anything did. False: something was left for later, because it is a detail."""
        at = self.tools.now()
        why, detail = redact(why), redact(detail)
        if self.note and self.note not in why:
            why = f"{why} ({self.note})"
        told, sentence = self.told_last(), f"{why}: {detail}" if detail else why
        nothing_else = not status_difference(self.host.status, self._with_conditions(told, at))
        if nothing_else and _same_phase(told, why) and self._written_within(QUIET, at):
            self.send_events()
            return sentence == told
        self.status = self._with_conditions(sentence, at)
        if patch := status_difference(self.host.status, self.status):
            if not self.stays_new:
                self.change(last_updated=at)
                patch["lastUpdated"] = wire(at)
            self.wrote(
                await self.tools.client.patch(
                    BARE_METAL_HOSTS,
                    self.key,
                    {"status": patch},
                    subresource="status",
                    resource_version=self.host.metadata.resource_version,
                )
            )
        self.send_events()
        return True

    def _with_conditions(self, sentence: str, at: datetime) -> BareMetalHostStatus:
        made = conditions(
            self.status,
            self.state,
            why=sentence,
            outlook=outlook(self.current),
            vitals=self.vitals,
            generation=self.host.metadata.generation,
            at=at,
        )
        return with_conditions(self.status, made)

    def _written_within(self, time: timedelta, at: datetime) -> bool:
        last = self.host.status.last_updated
        return last is not None and at - last < time

    def told_last(self) -> str:
        """The sentence that the user reads now."""
        return next(
            (
                found.message
                for found in self.host.status.conditions
                if found.type == ConditionType.PROGRESSING
            ),
            "",
        )

    def send_events(self) -> None:
        """Send what is to be told. `save` does so; a host that is gone has no status to save."""
        for told in self._told:
            self.tools.recorder.record(
                self.host,
                type=told.type,
                reason=str(told.reason),
                message=told.message,
                related=self.host.spec.consumer_ref,
            )
        self._told.clear()

    async def patch_host(self, patch: dict[str, Any]) -> None:
        """Change the host's metadata or spec. The status decided so far is kept for the end of the pass."""
        written = await self.tools.client.patch(
            BARE_METAL_HOSTS, self.key, patch, resource_version=self.host.metadata.resource_version
        )
        decided = self.status
        self.wrote(written)
        self.status = decided

    def wrote(self, host: BareMetalHost) -> None:
        """Our own write was answered: that answer is newer than anything the watch has brought."""
        host = host.compact()
        self.tools.echoes.wrote(host.metadata.resource_version)
        self.tools.hosts.observe(host)
        self.host = host

    def overtaken(self) -> bool:
        """Whether somebody changed the host while this pass was under way."""
        latest = self.tools.hosts.get(self.key)
        if latest is None:
            return True
        seen, new = self.host.metadata, latest.metadata
        return (
            new.generation != seen.generation
            or new.annotations != seen.annotations
            or new.deletion_timestamp != seen.deletion_timestamp
        )

    async def permit(self, act: Act, sight: Sight) -> Refusal | None:
        """Asked by the back end right before it does what cannot be undone: reads the host afresh and decides."""
        try:
            fresh = await self.tools.client.get(BARE_METAL_HOSTS, self.key)
        except NotFound:
            fresh = None
        # Whoever holds the Lease by now may be at the same machine.
        self.tools.client.check_leave()
        refusal = guard.refusal(
            fresh, uid=self.host.metadata.uid, act=act, sight=sight
        ) or guard.refusal_for_shared(self.host, self.tools.hosts.items(), act=act, sight=sight)
        self.refused = self.refused or refusal is not None
        return refusal


def _same_phase(told: str, why: str) -> bool:
    return told == why or told.startswith(f"{why}: ")
