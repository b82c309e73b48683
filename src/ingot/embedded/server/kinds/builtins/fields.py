"""The few words the schemas of the built-in kinds are written in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def text(description: str, **more: object) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def fields_of(description: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": properties}
