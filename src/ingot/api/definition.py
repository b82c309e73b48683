"""What a kind says of itself beside its fields: short names, columns in `kubectl get`, whether it has a status of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ingot.api.meta import Resource


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`; those with a priority above 0 show only with `-o wide`."""

    name: str
    json_path: str
    type: str = "string"
    priority: int = 0
    description: str = ""


AGE: Final = Column("Age", ".metadata.creationTimestamp", type="date")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Where the numbers are that `kubectl scale` and autoscalers read and write through `/scale`."""

    wanted: str
    present: str
    selector: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A custom kind: its place in the API, and how it is shown."""

    resource: Resource[Any]
    description: str
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (AGE,)
    has_status: bool = True
    """Status is written apart from spec, through `/status`."""
    scale: Scale | None = None
