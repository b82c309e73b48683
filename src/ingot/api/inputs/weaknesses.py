"""What is merely weak in the image that a user asks for: it works, and an operator may want to know, or to forbid it.

Metal3 takes all of this, so it is taken here, with a warning, unless the site says otherwise.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from ingot.api.baremetalhost import Image
from ingot.api.inputs import checksums, urls


class Weakness(enum.StrEnum):
    """The word for it in settings."""

    MD5 = "md5"
    CHECKSUM_URL = "checksum-url"
    URL_CREDENTIALS = "url-credentials"
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True)
class Weak:
    weakness: Weakness
    field: str
    sentence: str
    """What is weak, and what would be better; without a full stop."""


def weaknesses(image: Image | None) -> Iterator[Weak]:
    if image is None or not image.url:
        return
    if checksums.is_url(image.checksum):
        yield Weak(
            Weakness.CHECKSUM_URL,
            "spec.image.checksum",
            "the checksum is fetched like the image, so whoever changes one can change the other; write the sha256 itself",
        )
    elif image.checksum and checksums.algorithm(image.checksum, image.checksum_type) == "md5":
        yield Weak(
            Weakness.MD5,
            "spec.image.checksum",
            "md5 does not tell an image from one that was made to look like it; use sha256",
        )
    if any("://" in url and urls.has_credentials(url) for url in (image.url, image.checksum)):
        yield Weak(
            Weakness.URL_CREDENTIALS,
            "spec.image.url",
            "a user name or password is a part of the URL, and whoever can read the host can read it",
        )
    if _is_plain(image.checksum) or (_is_plain(image.url) and not image.checksum):
        yield Weak(
            Weakness.UNVERIFIED,
            "spec.image.url",
            "nothing vouches for what arrives: neither TLS nor a checksum; use https, or set the checksum",
        )


def _is_plain(url: str) -> bool:
    return url.lower().startswith("http://")
