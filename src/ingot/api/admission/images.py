"""Rules for the image that is to be installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from ingot.api.admission.errors import FieldError, forbidden, invalid, not_supported, required
from ingot.api.baremetalhost import BareMetalHost, Image

URL_SCHEMES: Final = ("http", "https", "ftp", "gopher", "oci")
CHECKSUM_SCHEMES: Final = ("http", "https")

_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")
# Up to the last @ of the whole text: a password that was not encoded may hold slashes, too.
_CREDENTIALS: Final = re.compile(r"(?<=://).*@", re.DOTALL)


def image(host: BareMetalHost) -> Iterator[FieldError]:
    found = host.spec.image
    if found is None:
        return
    if not found.url:
        yield required("spec.image.url", "say where the image is, or remove spec.image to install nothing.")
        return
    yield from _url("spec.image.url", found.url, URL_SCHEMES)
    yield from _checksum(found)


def _url(path: str, url: str, schemes: tuple[str, ...]) -> Iterator[FieldError]:
    shown = _CREDENTIALS.sub("******@", url)
    if not _PRINTABLE.fullmatch(url):
        yield invalid(
            path, shown, "a URL consists of printable ASCII characters without spaces; encode others as %XX."
        )
        return
    try:
        parts = urlsplit(url)
        scheme, host, _ = parts.scheme, parts.hostname, parts.port
    except ValueError as error:
        # The error quotes what it takes for the port, which can be a part of a password.
        problem = f"this is not a URL: {error}." if shown == url else "what follows the user name is no host."
        yield invalid(path, shown, problem)
        return
    if scheme not in schemes:
        yield not_supported(path, shown, f"the scheme has to be one of: {', '.join(schemes)}.")
    elif not host:
        yield invalid(path, shown, f"the URL names no host; write {scheme}://HOST/PATH.")


def _checksum(found: Image) -> Iterator[FieldError]:
    path = "spec.image.checksum"
    from_registry = _scheme_of(found.url) == "oci"
    if from_registry:
        if found.checksum:
            yield forbidden(
                path,
                found.checksum,
                "an image from an OCI registry is verified by its digest. Remove the checksum.",
            )
    elif not found.checksum:
        if found.format != "live-iso":
            yield required(
                path,
                "an image that is written to disk needs a checksum, or the URL of a file that holds it. "
                "Without one nobody can tell whether what arrives is what was meant.",
            )
    elif "://" in found.checksum:
        yield from _url(path, found.checksum, CHECKSUM_SCHEMES)
    elif not _PRINTABLE.fullmatch(found.checksum):
        yield invalid(path, found.checksum, "a checksum is written in hexadecimal digits, without spaces.")


def _scheme_of(url: str) -> str:
    """The scheme of a URL that may be malformed."""
    return url.partition(":")[0].lower()
