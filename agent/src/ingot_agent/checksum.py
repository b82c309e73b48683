"""Which hash an image has to have: the fields of `instance_info` that say it, and files with the checksums of many images.

Only hashes that nobody can make two images for are taken: an image that is told by MD5 or SHA-1 is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from ingot_agent.errors import Refused

_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
_BY_LENGTH: Final = {length: name for name, length in _LENGTHS.items()}
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
# "<hash>  <name>", "<hash> *<name>" and "SHA256 (<name>) = <hash>", as the coreutils write them.
_GNU_LINE: Final = re.compile(r"([0-9a-fA-F]{32,128})\s+[*]?(?:\./)?(\S.*)")
_BSD_LINE: Final = re.compile(r"[\w-]+\s*\((.+)\)\s*=\s*([0-9a-fA-F]{32,128})")


@dataclass(frozen=True, slots=True)
class Digest:
    """A hash that is to be found: the name of the algorithm and the value in small letters."""

    algorithm: str
    value: str

    def __str__(self) -> str:
        return f"{self.algorithm} {self.value}"


@dataclass(frozen=True, slots=True)
class DigestAt:
    """A hash that stands in a file of checksums, at this URL."""

    url: str
    algorithm: str | None


def wanted(instance: Mapping[str, Any], image: str) -> Digest | DigestAt:
    """What `instance_info` says the image's hash is."""
    value = instance.get("image_os_hash_value") or instance.get("image_checksum")
    if not isinstance(value, str) or not value.strip():
        raise Refused(
            f"the image {image} has no hash, and an image is not installed unverified. Give its checksum (sha256 or sha512)."
        )
    algorithm = instance.get("image_os_hash_algo") if instance.get("image_os_hash_value") else None
    named = _algorithm(algorithm) if algorithm else None
    value = value.strip()
    if re.match(r"https?://", value, re.IGNORECASE):
        return DigestAt(value, named)
    return digest(value, named)


def digest(value: str, algorithm: str | None) -> Digest:
    """This value as a hash; its length says which, where nobody does."""
    if not _HEX.fullmatch(value):
        raise Refused("the image's checksum is not a hexadecimal number.")
    name = algorithm or _BY_LENGTH.get(len(value))
    if name is None:
        raise Refused(
            f"the image's checksum has {len(value)} digits, which is neither sha256 (64) nor sha512 (128)."
            + (" MD5 proves nothing about an image, and is not taken." if len(value) == 32 else "")
        )
    if len(value) != _LENGTHS[name]:
        raise Refused(
            f"the image's checksum has {len(value)} digits, and one of {name} has {_LENGTHS[name]}."
        )
    return Digest(name, value.lower())


def found_in(text: str, image: str, where: DigestAt) -> Digest:
    """The image's hash in a file of checksums: the only one there is, or the one beside the image's name."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) == 1 and _HEX.fullmatch(lines[0]):
        return digest(lines[0], where.algorithm)
    name = unquote(urlsplit(image).path.rpartition("/")[2])
    for line in lines:
        if (gnu := _GNU_LINE.fullmatch(line)) and gnu[2] == name:
            return digest(gnu[1], where.algorithm)
        if (bsd := _BSD_LINE.fullmatch(line)) and bsd[1] == name:
            return digest(bsd[2], where.algorithm)
    raise Refused(f"the file of checksums names no image {name!r}.")


def _algorithm(given: object) -> str:
    name = str(given).lower().replace("-", "")
    if name not in _LENGTHS:
        raise Refused(f"the image's hash is a {given!s}; sha256, sha384 and sha512 are taken.")
    return name
