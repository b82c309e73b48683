"""How long ago something was, in one number and one unit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_UNITS: Final = (("d", 86400), ("h", 3600), ("min", 60))


def age(since: datetime | None, now: datetime) -> str:
    """`17 min`; "" where nobody knows."""
    if since is None:
        return ""
    seconds = max(0, int((now - since).total_seconds()))
    for unit, length in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def ago(at: datetime | None, now: datetime) -> str:
    return f"{age(at, now)} ago" if at is not None else "some time ago"


def stamp(at: datetime) -> str:
    """The moment itself, as kubectl writes it."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
