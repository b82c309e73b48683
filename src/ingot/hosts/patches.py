"""Merge patches: the smallest change that turns one JSON document into another.

Pure. Writing only what changed keeps the writes of others, and a patch that is empty is not sent at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ingot.api.baremetalhost import BareMetalHostStatus
from ingot.api.wire import differing_fields, wire, wire_fields

NO_STATUS: Final = BareMetalHostStatus()


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch (RFC 7386) from `old` to `new`. Lists are replaced whole, as that RFC has it."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if nested := difference(before, value):
                patch[key] = nested
        elif key not in old or before != value:
            patch[key] = value
    return patch


def status_difference(old: BareMetalHostStatus, new: BareMetalHostStatus) -> dict[str, Any]:
    """The merge patch between two statuses. The inventory is compared as bytes: it is large and hardly ever changes.

    A host without a status gets all of it: the API demands fields that would otherwise be left out because they are empty.
    """
    if old == NO_STATUS:
        return {} if new == NO_STATUS else wire(new)
    changed = differing_fields(old, new)
    return difference(wire_fields(old, changed), wire_fields(new, changed))
