"""Stream metadata: what a CoreOS stream publishes, and where, as Fedora CoreOS, RHEL CoreOS and CentOS Stream CoreOS write it.

Owns reading the document and naming what is in it. An artifact is found by architecture, platform, format and part, and is
fetched from the location that the document gives: names of files changed over the years and are never put together here.
Its sha256 must be there; a signature may be (Fedora publishes one, the others do not). What is wrong with one artifact is an
error for whoever asks for that one; the others can be had all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit

import msgspec

from ingot.formats.errors import FormatError, UnsupportedFormat

LARGEST: Final = 16 << 20
"""The documents that are published have some 60 KB."""

METAL: Final = "metal"
DISK: Final = "disk"
"""The part of a format that has only one, such as an ISO image."""

_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")
_LONGEST_NAME: Final = 200
"""In bytes: there is room in a folder's entry for what is put around it while the file is not whole."""


class _Part(msgspec.Struct, rename="kebab"):
    location: str | None = None
    signature: str | None = None
    sha256: str | None = None
    uncompressed_sha256: str | None = None


class _Platform(msgspec.Struct):
    release: str = ""
    formats: dict[str, dict[str, _Part]] = {}


class _Architecture(msgspec.Struct):
    artifacts: dict[str, _Platform] = {}


class _Metadata(msgspec.Struct, rename="kebab"):
    last_modified: str = ""


class _Document(msgspec.Struct):
    stream: str | None = None
    release: str | None = None
    architectures: dict[str, _Architecture] | None = None
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamArtifact:
    """One file of a stream: where it is, and what it must be."""

    stream: str
    architecture: str
    platform: str
    format: str
    part: str
    release: str
    location: str
    sha256: str
    signature: str | None = None
    """Where its detached GPG signature is."""
    uncompressed_sha256: str | None = None

    @property
    def file_name(self) -> str:
        """The last part of the location; safe as a name in a folder."""
        return _name_in(self.location)


class Stream:
    """A stream at one moment."""

    def __init__(self, document: Mapping[str, _Architecture], name: str, last_modified: str) -> None:
        self._architectures = document
        self.name: Final = name
        self.last_modified: Final = last_modified

    @property
    def architectures(self) -> tuple[str, ...]:
        return tuple(self._architectures)

    def platforms(self, architecture: str) -> tuple[str, ...]:
        return tuple(self._artifacts(architecture))

    def formats(self, architecture: str, platform: str = METAL) -> tuple[str, ...]:
        return tuple(self._platform(architecture, platform).formats)

    def release(self, architecture: str, platform: str = METAL) -> str:
        return self._platform(architecture, platform).release

    def artifacts(
        self, *, architecture: str, format: str, platform: str = METAL
    ) -> tuple[StreamArtifact, ...]:
        """Every part of a format: one for an ISO image; kernel, initramfs and rootfs for PXE."""
        parts = self._parts(architecture, platform, format)
        return tuple(self._artifact(architecture, platform, format, part) for part in parts)

    def artifact(
        self, *, architecture: str, format: str, platform: str = METAL, part: str = DISK
    ) -> StreamArtifact:
        return self._artifact(architecture, platform, format, part)

    def _artifact(self, architecture: str, platform: str, format: str, part: str) -> StreamArtifact:
        parts = self._parts(architecture, platform, format)
        where = f"the format {format} of the platform {platform} for {architecture}"
        found = _chosen(parts, part, f"stream {self.name} has no part {part} in {where}")
        what = f"stream {self.name}, {architecture}, {platform}, {format}, {part}"
        return StreamArtifact(
            stream=self.name,
            architecture=architecture,
            platform=platform,
            format=format,
            part=part,
            release=self._platform(architecture, platform).release,
            location=_location(found.location, what),
            sha256=_digest(found.sha256, "sha256", what),
            signature=None if found.signature is None else _location(found.signature, what),
            uncompressed_sha256=None
            if found.uncompressed_sha256 is None
            else _digest(found.uncompressed_sha256, "uncompressed-sha256", what),
        )

    def _artifacts(self, architecture: str) -> Mapping[str, _Platform]:
        missing = f"stream {self.name} has nothing for the architecture {architecture}"
        return _chosen(self._architectures, architecture, missing).artifacts

    def _platform(self, architecture: str, platform: str) -> _Platform:
        missing = f"stream {self.name} has no platform {platform} for {architecture}"
        return _chosen(self._artifacts(architecture), platform, missing)

    def _parts(self, architecture: str, platform: str, format: str) -> Mapping[str, _Part]:
        missing = f"stream {self.name} has no format {format} of the platform {platform} for {architecture}"
        return _chosen(self._platform(architecture, platform).formats, format, missing)


def parse_stream(content: bytes) -> Stream:
    """The stream that this document describes."""
    if len(content) > LARGEST:
        raise FormatError(f"the stream metadata has {len(content)} bytes; at most {LARGEST} are read")
    try:
        document = msgspec.json.decode(content, type=_Document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"this is no stream metadata: {error}") from error
    if document.architectures is None or document.stream is None:
        raise UnsupportedFormat(_not_a_stream(document))
    return Stream(document.architectures, document.stream, document.metadata.last_modified)


def _not_a_stream(document: _Document) -> str:
    if document.release is not None:
        return (
            f"this is the metadata of release {document.release}, not of a stream; the document that is needed has the keys "
            "stream and architectures (https://…/streams/stable.json, or `openshift-install coreos print-stream-json`)"
        )
    missing = "architectures" if document.architectures is None else "stream"
    return f"this is no stream metadata: it has no key {missing}"


_Value = TypeVar("_Value")


def _chosen(choices: Mapping[str, _Value], wanted: str, missing: str) -> _Value:
    if wanted not in choices:
        raise UnsupportedFormat(f"{missing}; it has {_listed(choices)}")
    return choices[wanted]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _digest(value: str | None, key: str, what: str) -> str:
    if value is None:
        raise FormatError(f"{what}: the metadata has no {key}, so nothing could be verified")
    if not _SHA256.fullmatch(value):
        raise FormatError(f"{what}: {key} is {value[:80]!r}, not 64 hexadecimal digits")
    return value.lower()


def _location(value: str | None, what: str) -> str:
    if value is None:
        raise FormatError(f"{what}: the metadata has no location")
    shown = repr(value[:200])
    if not value.isascii() or not value.isprintable() or " " in value:
        raise FormatError(f"{what}: the location {shown} has blanks or other characters that no URL has")
    try:
        split = urlsplit(value)
        host, _ = split.hostname, split.port
    except ValueError as error:
        raise FormatError(f"{what}: the location {shown} is no URL: {error}") from error
    if split.scheme not in ("http", "https") or not host:
        raise FormatError(f"{what}: the location {shown} is not an http or https URL")
    if not _name_in(value):
        raise FormatError(f"{what}: the location {shown} does not end in the name of a file")
    return value


def _name_in(location: str) -> str:
    """The file name at the end of a URL; empty where there is none that can be used."""
    name = unquote(urlsplit(location).path.rpartition("/")[2])
    fine = name.isprintable() and "/" not in name and not name.startswith(".")
    return name if fine and len(name.encode(errors="replace")) <= _LONGEST_NAME else ""
