"""What `kubectl get` shows of an object: the columns of a kind, and the cells of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ingot.embedded.server.documents import Document, dig, encode
from ingot.embedded.server.kinds.jsonpath import as_text, compiled, plain


@dataclass(frozen=True, slots=True)
class Column:
    """One column: how it is announced, and how its cell is read from an object.

    `path` says that reading needs nothing but the field there; None, that it may need anything.
    """

    name: str
    read: Callable[[Document], object]
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    path: tuple[str, ...] | None = None

    def definition(self) -> Document:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def age(since: str | None) -> str:
    """How long ago a time of the API was, in the two largest units that say something: `5d3h`, `12m`, `45s`."""
    if not since:
        return "<unknown>"
    try:
        seconds = int((datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds())
    except (TypeError, ValueError):
        return "<invalid>"
    return duration(max(seconds, 0))


def duration(seconds: int) -> str:
    """So many seconds in the two largest units that say something: `5d3h`, `12m`, `45s`."""
    minutes, hours, days, years = seconds // 60, seconds // 3600, seconds // 86400, seconds // (365 * 86400)
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if years < 2:
        return f"{days}d"
    if years < 8:
        return _two(years, "y", days % 365, "d")
    return f"{years}y"


def _two(first: int, first_unit: str, second: int, second_unit: str) -> str:
    return f"{first}{first_unit}{second}{second_unit}" if second else f"{first}{first_unit}"


NAME: Final = Column(
    "Name",
    lambda document: dig(document, "metadata", "name"),
    format="name",
    path=("metadata", "name"),
    description="Name of the object, unique in its namespace.",
)
AGE: Final = Column(
    "Age",
    lambda document: age(dig(document, "metadata", "creationTimestamp")),
    type="string",
    path=("metadata", "creationTimestamp"),
    description="Time since the object was created.",
)


def of_crd(printer_columns: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """The columns of a custom kind: its name, then what its definition asks for, or its age."""
    if not printer_columns:
        return (NAME, AGE)
    return (NAME, *(_printer_column(column) for column in printer_columns))


def _printer_column(column: Mapping[str, Any]) -> Column:
    find = compiled(str(column["jsonPath"]))
    kind = str(column["type"])
    return Column(
        name=str(column["name"]),
        read=lambda document: _cell(find(document), kind),
        type=kind,
        format=str(column.get("format", "")),
        description=str(
            column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
        ),
        priority=int(column.get("priority", 0)),
        path=plain(str(column["jsonPath"])),
    )


def _cell(found: list[Any], kind: str) -> object:
    if not found or found[0] is None:
        return "<unknown>" if kind == "date" and found else None
    value = found[0]
    if kind == "date":
        return age(value if isinstance(value, str) else None)
    if kind == "string":
        if len(found) > 1:
            return ",".join(as_text(part) for part in found)
        return encode(value).decode() if isinstance(value, dict | list) else as_text(value)
    return value if isinstance(value, bool | int | float) else None
