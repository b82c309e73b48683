"""What is to be fetched, under which rules, and what came of it. Values only."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ingot.formats.streams import StreamArtifact
from ingot.images.fetching.patience import Patience

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
LARGEST: Final = 64 << 30
_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A file somewhere: it is worth nothing without its sha256."""

    url: str
    sha256: str
    name: str
    """What it is called in the folder it goes to."""
    signature: str | None = None
    """Where its detached GPG signature is, if it has one."""

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"{self.sha256!r} is no sha256: 64 hexadecimal digits, in small letters")
        if self.name.startswith(".") or not re.fullmatch(r"[^/\0]+", self.name):
            raise ValueError(f"{self.name!r} is not the name of a file in a folder")

    @classmethod
    def of(cls, artifact: StreamArtifact) -> Wanted:
        return cls(
            url=artifact.location,
            sha256=artifact.sha256,
            name=artifact.file_name,
            signature=artifact.signature,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """How files are fetched."""

    keys: tuple[Path, ...] = ()
    """Files with the public keys (GPG) that may have signed what is fetched; none: sha256 alone is checked."""
    allow_unsigned: bool = False
    """Take a file without a signature although there are keys. A signature that is there and wrong is never taken."""
    authorities: Path | None = None
    """More certificate authorities (PEM) that servers and proxies may have their certificates from."""
    limit: int = LARGEST
    """The most bytes that a file may have."""
    patience: Patience = field(default_factory=Patience)
    stall: float = 60.0
    """Seconds without a byte after which a connection counts as cut."""
    deadline: float = 4 * _HOUR
    """Seconds that one file may take, with everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far one file is."""

    name: str
    done: int
    total: int | None
    """None while nobody knows."""


Tell = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A file that is there, whole and verified."""

    path: Path
    sha256: str
    size: int
    reused: bool = False
    """It was there already."""
    resumed: int = 0
    """So many bytes of it were left over from an earlier try."""
    signer: str | None = None
    """The fingerprint of the key that signed it; None when no signature was checked."""
