"""From the bytes of a watch to news about objects.

Owns the lines of a watch stream: cutting them out of chunks of any size, telling the kinds of events apart, and decoding an
object straight into the struct of its kind. A line that was cut off by the end of the stream is dropped: the watch is taken
up again from the last whole one. An object that does not fit its struct is news too: it cannot be worked with, so it counts as
removed, and the log says which field is wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final, Generic, Literal, TypeVar, cast

import msgspec
import msgspec.structs

from ingot.api.meta import Key, Object, PartialObjectMetadata, Resource
from ingot.kube.errors import UNDECODABLE, ApiError, Status, Unreadable, error_from

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Object)
Told = TypeVar("Told")

END_OF_INITIAL_EVENTS: Final = "k8s.io/initial-events-end"
_PUT: Final = frozenset({"ADDED", "MODIFIED"})
LONGEST_LINE: Final = 64 * 1024 * 1024
"""No object of a Kubernetes API comes near this; a line that passes it is not a watch event."""
_KEPT: Final = 4 * 1024 * 1024


class Put(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """The object was made or changed."""

    object: T


class Removed(msgspec.Struct, frozen=True, gc=False):
    """The object is not there any more, or not in a shape that can be read."""

    key: Key
    version: str


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """Nothing up to this version has been kept from us."""

    version: str


class Listed(msgspec.Struct, frozen=True, gc=False):
    """All that was there at this version has been told; what comes now are changes."""

    version: str


News = Put[T] | Removed | Bookmark | Listed


def keep_read_buffers() -> None:
    """Have glibc keep the memory that a stretch of a watch was read into, for the next one.

    It gives free memory back to the system beyond twice the largest block that it ever took from there and got back. With the
    quarter of a megabyte that one read brings, that is back and forth at every read, and a tenth of what a change costs. One
    larger block, never touched, is all it needs to learn better. Other C libraries make nothing of it.
    """
    bytes(_KEPT)


class Lines:
    """Cuts lines out of chunks. Time is linear in the bytes, however long a line is."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> bytes:
        """The whole lines that there are with this chunk, each with its end; b"" while the first is not at its end."""
        end = chunk.rfind(b"\n") + 1
        whole = b""
        if end:
            whole = b"".join([*self._pieces, memoryview(chunk)[:end]])
            self._pieces, self._size = [], 0
        self._pieces.append(chunk[end:])
        self._size += len(chunk) - end
        if self._size > self._longest:
            raise Unreadable(
                f"a line of the watch is longer than {self._longest} bytes; this is not a Kubernetes API"
            )
        return whole


class _Event(msgspec.Struct, Generic[Told]):
    """Any event, with as much of its object as somebody wants to know."""

    type: str
    object: Told


class _PutEvent(msgspec.Struct, Generic[Told]):
    """What nearly all events are."""

    type: Literal["ADDED", "MODIFIED"]
    object: Told


class EventReader(Generic[T]):
    """Decodes the lines of one kind's watch."""

    _raw_events: Final = msgspec.json.Decoder(_Event[msgspec.Raw])
    _metadata: Final = msgspec.json.Decoder(PartialObjectMetadata)

    def __init__(self, kind: Resource[T], *, doing: str) -> None:
        self._kind = kind
        self._doing = doing
        # The type is known at run time only, so the type checker is told what comes of it.
        self._puts = cast(
            "msgspec.json.Decoder[_PutEvent[T]]", msgspec.json.Decoder(cast("Any", _PutEvent)[kind.type])
        )

    def read(self, lines: bytes) -> Iterator[News[T]]:
        """The news in whole lines, in their order. Events of unknown kinds are passed over; raises what an ERROR event says."""
        try:
            # All lines in one go, because nearly all of them are objects that were put.
            puts = self._puts.decode_lines(lines)
        except UNDECODABLE:
            yield from self._read_one_by_one(lines)
            return
        for event in puts:
            yield Put(named(self._kind, event.object))

    def _read_one_by_one(self, lines: bytes) -> Iterator[News[T]]:
        for line in lines.split(b"\n"):
            if line and (news := self._read_with_care(line)) is not None:
                yield news

    def _read_with_care(self, line: bytes) -> News[T] | None:
        """One line, whatever it is."""
        try:
            event = self._raw_events.decode(line)
            if event.type == "ERROR":
                raise self._refusal(event.object)
            if event.type in _PUT:
                return self._put(event.object)
            metadata = self._metadata.decode(event.object)
        except UNDECODABLE as error:
            raise Unreadable(f"{self._doing}: a line that is no watch event ({error})") from error
        if event.type == "DELETED":
            return Removed(metadata.key, metadata.metadata.resource_version)
        if event.type == "BOOKMARK":
            ended = metadata.metadata.annotations.get(END_OF_INITIAL_EVENTS) == "true"
            return (Listed if ended else Bookmark)(metadata.metadata.resource_version)
        return None

    def _put(self, raw: msgspec.Raw) -> News[T]:
        try:
            return Put(named(self._kind, msgspec.json.decode(raw, type=self._kind.type)))
        except UNDECODABLE as error:
            metadata = self._metadata.decode(raw)
            log.error("%s", unreadable(self._kind, metadata.key, error))
            return Removed(metadata.key, metadata.metadata.resource_version)

    def _refusal(self, raw: msgspec.Raw) -> ApiError:
        status = msgspec.json.decode(raw, type=Status)
        return error_from(status, code=status.code or 500, doing=self._doing)


def named(kind: Resource[T], decoded: T) -> T:
    """The object with its kind's name in it: items of lists come without, and metadata-only ones with a wrong one."""
    # Frozen for everybody else; this one was made a moment ago and nobody has seen it yet.
    msgspec.structs.force_setattr(decoded, "api_version", kind.api_version)
    msgspec.structs.force_setattr(decoded, "kind", kind.kind)
    return decoded


def unreadable(kind: Resource[T], key: Key, error: Exception) -> Unreadable:
    return Unreadable(
        f"{kind.kind} {key} does not have the shape of {kind.api_version}: {error}. "
        "It is left alone until it is mended; check that the CRDs of this version are installed."
    )
