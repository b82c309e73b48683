"""Digests: the name of a blob is the hash of its bytes. Only SHA-256, which every registry and tool has."""

from __future__ import annotations

import hashlib
import re
from typing import Final, NewType

from ingot.formats.errors import FormatError, UnsupportedFormat

Digest = NewType("Digest", str)
"""`sha256:` and 64 hexadecimal digits; made by `parse_digest` and `digest_of` alone, so it is safe as part of a path or URL."""

_SHA256: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_ANY: Final = re.compile(r"[a-z0-9]+(?:[+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+", re.ASCII)


def parse_digest(text: str) -> Digest:
    if _SHA256.fullmatch(text):
        return Digest(text)
    if _ANY.fullmatch(text) and not text.startswith("sha256:"):
        raise UnsupportedFormat(f"{text!r} is a digest of another kind than sha256, which alone is supported")
    raise FormatError(f"{text!r} is no digest; one is sha256: and 64 hexadecimal digits in lower case")


def digest_of(content: bytes) -> Digest:
    return Digest(f"sha256:{hashlib.sha256(content).hexdigest()}")
