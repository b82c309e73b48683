"""Kubernetes Events: what happened to an object, told to whoever looks at it with `kubectl describe`.

Owns their shape and their thrift. `record` never waits, never raises, and never costs more than a queue of bounded length;
writing is a background task's business. While the process has much to ask of the API, Events wait: what changes a host's state
goes first, and of Events the warnings. The same thing said again within ten minutes raises the count of the Event that said it
first, and what differs in its words alone becomes one Event after the first few. An Event is a courtesy: what the API does not
take after a few tries is dropped and counted, and no decision may rest on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self

import msgspec

from ingot.api.meta import Key, Object, ObjectMeta, ObjectReference, Resource, now
from ingot.kube.backoff import Backoff
from ingot.kube.client import Client
from ingot.kube.errors import AlreadyExists, KubeError, NotFound, TooManyRequests, Unavailable
from ingot.kube.metrics import EVENTS
from ingot.kube.similar import SimilarMessages

log = logging.getLogger(__name__)

REPEAT_WINDOW: Final = 600.0
LONGEST_QUEUE: Final = 50_000
"""A rack of a few thousand hosts that wake together says some things about each of them."""
WRITERS: Final = 8
MANY_UNDER_WAY: Final = 8
"""Requests of others. With more of them one writer goes on, so that Events come late and not never."""
REMEMBERED: Final = 4096
LONGEST_MESSAGE: Final = 1024
ATTEMPTS: Final = 6
DRAIN: Final = 5.0
BACKOFF: Final = Backoff(first=0.25, limit=8.0)
COMBINED: Final = "(combined from similar events): "
"""What other controllers write in this place, so that people and programs know it."""


class EventSource(msgspec.Struct, omit_defaults=True):
    component: str = ""
    host: str = ""


class Event(Object):
    """A core/v1 Event, as far as we write and read it."""

    involved_object: ObjectReference = msgspec.field(default_factory=ObjectReference)
    reason: str = ""
    message: str = ""
    type: str = ""
    source: EventSource = msgspec.field(default_factory=EventSource)
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    count: int = 0
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""


EVENT: Final = Resource(group="", version="v1", kind="Event", plural="events", type=Event)


class _Matter(NamedTuple):
    """What makes two records similar."""

    uid: str
    key: Key
    type: str
    reason: str


class _Identity(NamedTuple):
    """What makes two records the same Event. `message` is None for the Event that stands for many similar ones."""

    matter: _Matter
    message: str | None

    @property
    def key(self) -> Key:
        return self.matter.key

    @property
    def reason(self) -> str:
        return self.matter.reason


@dataclass(slots=True)
class _Waiting:
    """Something to be written: how often it happened since, when it did first and last."""

    about: ObjectReference
    related: ObjectReference | None
    message: str
    first: datetime
    last: datetime
    controller: str = ""
    times: int = 1


@dataclass(slots=True)
class _Written:
    """An Event that is in the API, and what it says."""

    key: Key
    count: int
    at: float


@dataclass(slots=True)
class _Desk:
    """What waits to be written, in order, and what was written lately, the oldest first."""

    warnings: OrderedDict[_Identity, _Waiting] = field(default_factory=OrderedDict)
    news: OrderedDict[_Identity, _Waiting] = field(default_factory=OrderedDict)
    written: OrderedDict[_Identity, _Written] = field(default_factory=OrderedDict)
    in_flight: set[_Identity] = field(default_factory=set)

    @property
    def count(self) -> int:
        return len(self.warnings) + len(self.news)

    def pile(self, identity: _Identity) -> OrderedDict[_Identity, _Waiting]:
        """Where it waits, or would."""
        return self.warnings if identity.matter.type == "Warning" else self.news

    def take(self) -> tuple[_Identity, _Waiting] | None:
        """The next to be written. What happens during the write counts as a repetition, and is written after it."""
        for pile in (self.warnings, self.news):
            for identity in pile:
                if identity not in self.in_flight:
                    self.in_flight.add(identity)
                    return identity, pile.pop(identity)
        return None


class EventRecorder:
    """Records Events under one component's name. Close it, or use it with `async with`, to have the last ones written."""

    def __init__(
        self,
        client: Client,
        *,
        component: str = "metal3-baremetal-controller",
        reporting: str = "metal3.io/baremetal-controller",
        drain: float = DRAIN,
        longest_queue: int = LONGEST_QUEUE,
    ) -> None:
        self._client = client
        self._component = component
        self._reporting = reporting
        self._drain = drain
        self._longest_queue = longest_queue
        self._desk = _Desk()
        self._similar: SimilarMessages[_Matter] = SimilarMessages()
        self._closing = False
        self._full = False
        self._writing = 0
        self._writers: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def record(
        self,
        obj: Object,
        *,
        type: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        related: ObjectReference | None = None,
        controller: str = "",
    ) -> None:
        """Say that something happened to this object. Call it on the event loop.

        `controller`: whose voice it is, if not the recorder's own, as in metal3-NAME-controller.
        """
        message = message if len(message) <= LONGEST_MESSAGE else message[: LONGEST_MESSAGE - 1] + "…"
        matter = _Matter(obj.metadata.uid, obj.key, type, reason)
        identity = _Identity(matter, message)
        if self._similar.is_one_too_many(matter, message, asyncio.get_running_loop().time()):
            identity, message = _Identity(matter, None), f"{COMBINED}{message}"
        pile, time = self._desk.pile(identity), now()
        if identity in pile:
            pile[identity].times += 1
            pile[identity].last, pile[identity].message = time, message
        elif self._desk.count < self._longest_queue and not self._closing:
            pile[identity] = _Waiting(reference_to(obj), related, message, time, time, controller)
            self._full = False
        else:
            self._overflow(identity)
            return
        self._call_a_writer()

    async def close(self) -> None:
        """Write what waits, for a few seconds at most."""
        self._closing = True
        for _ in range(WRITERS):
            self._call_a_writer()
        if writers := list(self._writers):
            await asyncio.wait(writers, timeout=self._drain)
            for writer in writers:
                writer.cancel()
            await asyncio.wait(writers)
        for identity in (*self._desk.warnings, *self._desk.news):
            self._dropped(identity, "the recorder was closed before it could be written")

    def _call_a_writer(self) -> None:
        """One more, while there is work and room for one."""
        if self._writing < (WRITERS if self._has_leisure() else 1) and self._desk.count:
            self._writing += 1
            writer = asyncio.create_task(self._write_all(), name="event-recorder")
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)

    def _has_leisure(self) -> bool:
        """Whether Events may be written as fast as they can be: others ask for little, or this cannot wait any longer."""
        others = self._client.under_way - len(self._desk.in_flight)
        is_pressing = self._closing or self._desk.warnings or self._desk.count > self._longest_queue // 2
        return bool(is_pressing) or others <= MANY_UNDER_WAY

    async def _write_all(self) -> None:
        """Until nothing is left that nobody else is writing, or others have more to do than Events; then one stays."""
        try:
            while (self._writing == 1 or self._has_leisure()) and (taken := self._desk.take()) is not None:
                identity, waiting = taken
                try:
                    await self._write_patiently(identity, waiting)
                finally:
                    self._desk.in_flight.discard(identity)
                self._call_a_writer()
        finally:
            self._writing -= 1

    async def _write_patiently(self, identity: _Identity, waiting: _Waiting) -> None:
        name = _name(identity.reason)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._write(identity, waiting, name)
                return
            except (Unavailable, TooManyRequests) as error:
                if attempt == ATTEMPTS:
                    self._dropped(identity, str(error))
                    return
                await asyncio.sleep(BACKOFF.delay(attempt))
            except KubeError as error:
                self._dropped(identity, str(error))
                return
            except (
                Exception
            ):  # the edge of the task: one event that cannot be written must not end the writing
                log.exception("event %s for %s", identity.reason, identity.key)
                self._dropped(identity, "a bug, see above")
                return

    async def _write(self, identity: _Identity, waiting: _Waiting, name: str) -> None:
        loop_time = asyncio.get_running_loop().time()
        known = self._desk.written.get(identity)
        if known is not None and loop_time - known.at <= REPEAT_WINDOW:
            count = known.count + waiting.times
            change = {"count": count, "lastTimestamp": waiting.last, "message": waiting.message}
            try:
                await self._client.patch(EVENT, known.key, change)
            except NotFound:
                # Events live for an hour or less; a new one takes its place.
                pass
            else:
                EVENTS.labels("repeated").inc()
                self._remember(identity, _Written(known.key, count, loop_time))
                return
        event = self._event(identity, waiting, name)
        # The name is random: one that exists is our own earlier try, whose answer was lost.
        with contextlib.suppress(AlreadyExists):
            await self._client.create(EVENT, event)
        EVENTS.labels("created").inc()
        self._remember(identity, _Written(event.key, waiting.times, loop_time))

    def _event(self, identity: _Identity, waiting: _Waiting, name: str) -> Event:
        return Event(
            # Events about cluster-wide objects live in the namespace default.
            metadata=ObjectMeta(namespace=identity.key.namespace or "default", name=name),
            involved_object=waiting.about,
            reason=identity.reason,
            message=waiting.message,
            type=identity.matter.type,
            source=EventSource(
                component=f"metal3-{waiting.controller}-controller" if waiting.controller else self._component
            ),
            first_timestamp=waiting.first,
            last_timestamp=waiting.last,
            count=waiting.times,
            related=waiting.related,
            reporting_component=f"metal3.io/{waiting.controller}-controller"
            if waiting.controller
            else self._reporting,
        )

    def _remember(self, identity: _Identity, written: _Written) -> None:
        self._desk.written[identity] = written
        self._desk.written.move_to_end(identity)
        if len(self._desk.written) > REMEMBERED:
            self._desk.written.popitem(last=False)

    def _overflow(self, identity: _Identity) -> None:
        """Say it for the first of a row only: whoever floods the recorder would flood the log as well."""
        if self._full:
            EVENTS.labels("dropped").inc()
            return
        self._full = True
        why = (
            "the recorder is closed" if self._closing else f"{self._longest_queue} others wait to be written"
        )
        self._dropped(identity, f"{why}; later ones that are lost for this reason are counted, not logged")

    def _dropped(self, identity: _Identity, why: str) -> None:
        EVENTS.labels("dropped").inc()
        log.warning("event %s for %s is not recorded: %s", identity.reason, identity.key, why)


def reference_to(obj: Object) -> ObjectReference:
    return ObjectReference(
        api_version=obj.api_version,
        kind=obj.kind,
        name=obj.metadata.name,
        namespace=obj.metadata.namespace,
        uid=obj.metadata.uid,
        resource_version=obj.metadata.resource_version,
    )


def _name(reason: str) -> str:
    """A name of our own making, so that a repeated create is noticed as such."""
    stem = re.sub(r"[^a-z0-9]+", "-", reason.lower()).strip("-") or "event"
    return f"{stem[:63]}-{secrets.token_hex(5)}"
