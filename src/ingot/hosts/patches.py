"""Merge patches: the smallest change that turns one JSON document into another.

Pure. Writing only what changed keeps the writes of others, and a patch that is empty is not sent at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from ingot.api.wire import differing_fields, wire, wire_fields

S = TypeVar("S", bound=msgspec.Struct)


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


def status_difference(old: S, new: S) -> dict[str, Any]:
    """The merge patch between two statuses. Undecoded parts are compared as bytes: they are large and hardly ever change.

    An object without a status gets all of it: the API demands fields that would otherwise be left out because they are empty.
    """
    nothing = type(old)()
    if old == nothing:
        return {} if new == nothing else cast("dict[str, Any]", wire(new))
    changed = differing_fields(old, new)
    return difference(wire_fields(old, changed), wire_fields(new, changed))
