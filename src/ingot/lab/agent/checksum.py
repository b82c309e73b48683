"""Which checksum an image must have: pure rules over what Ironic sends and what checksum files hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import urlsplit

_BY_LENGTH: Final = {32: "md5", 64: "sha256", 128: "sha512"}
_KNOWN: Final = frozenset({"md5", "sha256", "sha512"})
_HEX: Final = re.compile(r"[0-9a-fA-F]+")
_BSD: Final = re.compile(r"[A-Za-z0-9-]+\s*\((?P<name>.+)\)\s*=\s*(?P<value>[0-9a-fA-F]+)")


@dataclass(frozen=True, slots=True)
class Checksum:
    algorithm: str
    value: str
    """The digest in hexadecimal, or the URL of a file that holds it."""

    @property
    def is_url(self) -> bool:
        return self.value.startswith(("http://", "https://"))


def expected_checksum(
    *, algorithm: str | None, value: str | None, short: str | None, md5_allowed: bool
) -> Checksum:
    """The checksum Ironic asks for: algorithm and value, or the short form whose length tells the algorithm."""
    if value:
        wanted = Checksum((algorithm or "").lower() or _by_length(value), value)
    elif short:
        wanted = Checksum(_by_length(short), short)
    else:
        raise ValueError("the image has no checksum, so it cannot be verified")
    _check_allowed(wanted, md5_allowed=md5_allowed)
    if wanted.algorithm and wanted.algorithm not in _KNOWN:
        raise ValueError(f"unknown checksum algorithm {wanted.algorithm!r}; md5, sha256 and sha512 are known")
    if not wanted.is_url and not _HEX.fullmatch(value or short or ""):
        raise ValueError(f"{value or short!r} is neither a checksum in hexadecimal nor a URL")
    return wanted


def checksum_in_file(text: str, *, image_url: str, algorithm: str, md5_allowed: bool) -> Checksum:
    """The image's checksum in a checksum file: alone, or in the line that names the image's file."""
    value = _value_in(text, image_url)
    found = Checksum(algorithm or _by_length(value), value)
    _check_allowed(found, md5_allowed=md5_allowed)
    return found


def _value_in(text: str, image_url: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and _HEX.fullmatch(lines[0]):
        return lines[0]
    wanted = PurePosixPath(urlsplit(image_url).path).name
    for line in lines:
        if bsd := _BSD.fullmatch(line):
            name, value = bsd["name"], bsd["value"]
        else:
            value, _, name = line.partition(" ")
        if PurePosixPath(name.strip().lstrip("*")).name == wanted and _HEX.fullmatch(value):
            return value
    raise ValueError(f"the checksum file has no line for {wanted}")


def _check_allowed(checksum: Checksum, *, md5_allowed: bool) -> None:
    if checksum.algorithm == "md5" and not md5_allowed:
        raise ValueError("MD5 checksums are disabled; give a sha256 or sha512 checksum")


def _by_length(value: str) -> str:
    if value.startswith(("http://", "https://")):
        return ""  # the file will tell
    try:
        return _BY_LENGTH[len(value)]
    except KeyError:
        raise ValueError(f"a checksum of {len(value)} characters is neither md5, sha256 nor sha512") from None
