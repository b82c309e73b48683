"""`$expand`: the resources that a document links to, in place of the links. One level, as the root says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ingot.lab.redfish.answers import Document

Read = Callable[[str], Document]


def expanded(document: Document, read: Read) -> Document:
    """The document with what is below it read in. `Links` lead elsewhere and stay links."""
    return {name: value if name == "Links" else _expanded(value, read) for name, value in document.items()}


def _expanded(value: Any, read: Read) -> Any:
    if isinstance(value, list):
        return [_expanded(entry, read) for entry in value]
    if isinstance(value, dict) and list(value) == ["@odata.id"]:
        return read(value["@odata.id"])
    return value
