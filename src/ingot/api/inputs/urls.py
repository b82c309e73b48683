"""URLs that something is fetched from or posted to.

A URL is read by several programs (us, Ironic, the ramdisk, a BMC), and what they make of an odd one differs. So only what all of
them read alike passes: printable ASCII, a scheme that is meant, a host that is an IP address or a name, no backslash, no encoded
control character.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

DOWNLOAD_SCHEMES: Final = ("http", "https", "ftp", "gopher", "oci")
"""Where an image can come from, as far as Metal3's API is concerned."""
WEB_SCHEMES: Final = ("http", "https")

PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
ENCODED_CONTROL: Final = re.compile(r"%(?:[01][0-9a-f]|7f)", re.IGNORECASE)
# So many digits are no port.
_DIGEST: Final = re.compile(r"sha(?:256|512):[0-9a-f]{64,128}", re.IGNORECASE)
# Underscores are against the rules for host names, and many a name server has them.
_NAME: Final = re.compile(
    r"(?=.{1,253}\.?\Z)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*\.?", re.I
)
# 127.1, 0x7f000001 and 2130706433 are addresses to some programs and names to others.
_ENDS_IN_A_NUMBER: Final = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Problem:
    sentence: str
    of_scheme: bool = False
    """The URL is well, and leads where nothing can be fetched from."""


def without_password(url: str) -> str:
    """Up to the last @ of the whole text: a password that was not encoded may hold slashes, too. The digest of an image has an
    @ of its own before it."""
    scheme, separator, rest = url.partition("://")
    before, at, shown = rest.rpartition("@")
    if "/" in before and _DIGEST.fullmatch(shown):
        _, at, image = before.rpartition("@")
        shown = f"{image}@{shown}"
    return f"{scheme}://******@{shown}" if separator and at else url


def problem_with(url: str, schemes: tuple[str, ...]) -> Problem | None:
    if not PRINTABLE.fullmatch(url):
        return Problem("a URL consists of printable ASCII characters without spaces; encode others as %XX.")
    try:
        parts = urlsplit(url)
        scheme, host, _ = parts.scheme, parts.hostname, parts.port
    except ValueError as error:
        # The error quotes what it takes for the port, which can be a part of a password.
        hidden = without_password(url) != url
        return Problem("what follows the user name is no host." if hidden else f"this is not a URL: {error}.")
    if scheme not in schemes:
        return Problem(f"the scheme has to be one of: {', '.join(schemes)}.", of_scheme=True)
    if not host:
        return Problem(f"the URL names no host; write {scheme}://HOST/PATH.")
    if not is_web_host(host):
        return Problem(f"{host!r} is neither an IP address, written out, nor a name of a host.")
    if "\\" in url:
        return Problem("a backslash is not a part of a URL; write / or encode it as %5C.")
    if ENCODED_CONTROL.search(url):
        return Problem("it holds an encoded control character (%00 to %1F, %7F).")
    return None


def host_of(url: str) -> str:
    """The host of a URL without a problem, in lower case, without brackets."""
    return urlsplit(url).hostname or ""


def has_credentials(url: str) -> bool:
    """Whether a user name or password is a part of it."""
    return "@" in urlsplit(url).netloc


def is_web_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _NAME.fullmatch(host) is not None and not _ENDS_IN_A_NUMBER.fullmatch(host)
    return "%" not in host
