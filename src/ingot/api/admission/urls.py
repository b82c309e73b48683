"""Rules for URLs. What is refused is repeated to the user, without the password that may be in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from ingot.api.admission.errors import FieldError, invalid, not_supported

DOWNLOAD_SCHEMES: Final = ("http", "https", "ftp", "gopher", "oci")
"""Where an image can come from."""
WEB_SCHEMES: Final = ("http", "https")

PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")


def without_password(url: str) -> str:
    """Up to the last @ of the whole text: a password that was not encoded may hold slashes, too."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}://******@{rest.rpartition('@')[2]}" if separator and "@" in rest else url


def url(path: str, found: str, schemes: tuple[str, ...]) -> Iterator[FieldError]:
    shown = without_password(found)
    if not PRINTABLE.fullmatch(found):
        yield invalid(
            path, shown, "a URL consists of printable ASCII characters without spaces; encode others as %XX."
        )
        return
    try:
        parts = urlsplit(found)
        scheme, host, _ = parts.scheme, parts.hostname, parts.port
    except ValueError as error:
        # The error quotes what it takes for the port, which can be a part of a password.
        problem = (
            f"this is not a URL: {error}." if shown == found else "what follows the user name is no host."
        )
        yield invalid(path, shown, problem)
        return
    if scheme not in schemes:
        yield not_supported(path, shown, f"the scheme has to be one of: {', '.join(schemes)}.")
    elif not host:
        yield invalid(path, shown, f"the URL names no host; write {scheme}://HOST/PATH.")
