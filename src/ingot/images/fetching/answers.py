"""What a server's answer means for a file of which some bytes are there: pure decisions over status and headers.

A range is taken only if it begins exactly where our bytes end and is of the same version of the file; anything else begins
anew. That two versions were mixed all the same would show in the sha256, which is taken over all of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from ingot.images.fetching.errors import Absent, Refused
from ingot.images.fetching.patience import WEATHER, retry_after

_RANGE: Final = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19}|\*)", re.ASCII)
_UNSATISFIED: Final = re.compile(r"bytes \*/(\d{1,19})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Body:
    """Bytes follow. They belong at `offset`; 0 replaces what is there."""

    offset: int
    total: int | None
    """How long the whole file is; None when the server does not say."""
    version: str | None
    """The validator (a strong ETag, or a date) that a later range is asked for with."""


@dataclass(frozen=True, slots=True)
class Complete:
    """Nothing follows: what is there is all there is."""


@dataclass(frozen=True, slots=True)
class StartOver:
    """What is there is of no use for this file any more."""


@dataclass(frozen=True, slots=True)
class TryLater:
    """Weather."""

    why: str
    wish: float | None = None


Answer = Body | Complete | StartOver | TryLater


def range_headers(have: int, version: str | None) -> dict[str, str]:
    """What is asked for when so many bytes of this version are there; without a version all of it is."""
    if not have or version is None or not version.isprintable():
        return {}
    return {"Range": f"bytes={have}-", "If-Range": version}


def meaning(status: int, headers: Mapping[str, str], *, have: int, version: str | None, who: str) -> Answer:
    """What to do with an answer to a question with `range_headers`; `Refused` for a clear no."""
    if status in WEATHER:
        wish = retry_after(headers.get("Retry-After"), datetime.now(UTC))
        return TryLater(f"HTTP {status}", wish)
    asked = bool(range_headers(have, version))
    if status == 416 and asked:
        whole = _UNSATISFIED.fullmatch(headers.get("Content-Range", ""))
        return Complete() if whole and int(whole[1]) == have else StartOver()
    if status not in (200, 206) or (status == 206 and not asked):
        raise _refusal(status, who)
    if headers.get("Content-Encoding", "identity").lower() not in ("identity", ""):
        raise Refused(f"{who} packs the file on the way (Content-Encoding), though it was asked not to")
    found = version_in(headers)
    if status == 200:
        return Body(0, _number(headers.get("Content-Length")), found)
    part = _RANGE.fullmatch(headers.get("Content-Range", ""))
    same = found is None or found == version
    if part is None or int(part[1]) != have or not same:
        return StartOver()
    total = None if part[3] == "*" else int(part[3])
    if total is not None and int(part[2]) != total - 1:
        return StartOver()
    return Body(have, total, version)


def version_in(headers: Mapping[str, str]) -> str | None:
    """What tells one version of the file from another: an ETag unless it is a weak one, else the date."""
    etag = headers.get("ETag", "").strip()
    if etag.startswith('"') and len(etag) <= 1024:
        return etag
    return headers.get("Last-Modified")


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and re.fullmatch(r"\d{1,19}", value, re.ASCII) else None


def _refusal(status: int, who: str) -> Refused:
    if status in (404, 410):
        return Absent(
            f"{who} answers HTTP {status}: the file is not there (any more). Newer stream metadata may name another one"
        )
    rights = ": it may not be read from here without more rights" if status in (401, 403, 407) else ""
    return Refused(f"{who} answers HTTP {status}{rights}")
