"""References: how a person names a container image in a registry, strictly checked.

    registry/repository[:tag][@digest]

The registry has to be named: a short name that some tool completes with a registry of its own choice is refused, because what
is fetched would depend on where it is fetched. A reference becomes a URL, so nothing passes here that could mean something there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.oci.digests import Digest, parse_digest

_HOST: Final = re.compile(
    r"(?:(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[0-9a-fA-F:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?",
    re.ASCII,
)
_REPOSITORY: Final = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*", re.ASCII
)
_TAG: Final = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}", re.ASCII)
_LONGEST: Final = 255
"""Of registry and repository together; registries refuse more."""


@dataclass(frozen=True, slots=True)
class Reference:
    registry: str
    repository: str
    tag: str | None = None
    digest: Digest | None = None

    @property
    def name(self) -> str:
        """Without tag and digest."""
        return f"{self.registry}/{self.repository}"

    @property
    def wanted(self) -> str:
        """What is asked for: the digest if there is one, because it cannot change its meaning."""
        return self.digest or self.tag or "latest"

    def at(self, digest: Digest) -> Reference:
        return replace(self, digest=digest)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.name}{tag}" + (f"@{self.digest}" if self.digest else "")


def parse_reference(text: str) -> Reference:
    rest, at, digest = text.partition("@")
    found = parse_digest(digest) if at else None
    registry, slash, path = rest.partition("/")
    repository, colon, tag = path.partition(":")
    if not slash or not _is_registry(registry):
        raise _wrong(text, "it has to begin with the registry, such as quay.io/ or registry.example:5000/")
    if not _REPOSITORY.fullmatch(repository):
        raise _wrong(
            text, "the repository is made of lower case letters, digits and single . _ - between them, with /"
        )
    if colon and not _TAG.fullmatch(tag):
        raise _wrong(
            text, "a tag is made of letters, digits and . _ -, begins with none of . -, and has at most 128"
        )
    if len(registry) + 1 + len(repository) > _LONGEST:
        raise _wrong(text, f"registry and repository are longer than {_LONGEST} characters")
    return Reference(registry, repository, tag if colon else None, found)


def _is_registry(text: str) -> bool:
    """A host is told from the first part of a path by a dot, a port, or being this machine."""
    host = _HOST.fullmatch(text)
    if host is None or not (host["port"] is None or 0 < int(host["port"]) < 65536):
        return False
    return "." in text or ":" in text or text == "localhost"


def _wrong(text: str, why: str) -> FormatError:
    return FormatError(f"{text!r} is no reference of a container image: {why}")
