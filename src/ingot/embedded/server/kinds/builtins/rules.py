"""Rules that several built-in kinds share, in the words Kubernetes uses for them.

Each function answers with what is wrong, as causes that name the field; nothing wrong is an empty list.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ingot.embedded.server.documents import Document, encode
from ingot.embedded.server.errors import Cause, cause
from ingot.embedded.server.kinds.names import label_key_problem, label_problem, label_value_problem

_DATA_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)
_DATA_LIMIT: Final = 1024 * 1024
_PERCENT: Final = re.compile(r"[0-9]+%", re.ASCII)
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])[a-z0-9]([a-z0-9-]*[a-z0-9])?", re.ASCII)


def shown(value: object) -> str:
    return encode(value).decode()


def immutable(new: Document, old: Document | None, *path: str) -> list[Cause]:
    """A field that nobody can change once it is there."""
    if old is None:
        return []
    before, after = _at(old, path), _at(new, path)
    if before == after:
        return []
    return [cause("Invalid", ".".join(path), "field is immutable", shown=shown(after))]


def _at(document: Any, path: Iterable[str]) -> Any:
    for part in path:
        document = document.get(part) if isinstance(document, Mapping) else None
    return document


def not_negative(value: object, field: str) -> list[Cause]:
    if isinstance(value, int) and value < 0:
        return [cause("Invalid", field, "must be greater than or equal to 0", shown=str(value))]
    return []


def port_number(value: object, field: str) -> list[Cause]:
    if isinstance(value, int) and not 1 <= value <= 65535:
        return [cause("Invalid", field, "must be between 1 and 65535, inclusive", shown=str(value))]
    return []


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def share(value: object, field: str) -> list[Cause]:
    """A number of pods, or a percentage of them."""
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        words = "must be a number, or a percentage such as 25%"
        return [cause("Invalid", field, words, shown=shown(value))]
    return not_negative(value, field)


def port_name(value: str, field: str) -> list[Cause]:
    if len(value) > 15:
        return [cause("Invalid", field, "must be no more than 15 characters", shown=shown(value))]
    if not _PORT_NAME.fullmatch(value) or "--" in value:
        words = "the name of a port is made of a-z, 0-9 and single hyphens, with a letter in it"
        return [cause("Invalid", field, words, shown=shown(value))]
    return []


def label_name(value: str, field: str) -> list[Cause]:
    """A DNS label, as names of containers and volumes are."""
    if problem := label_problem(value):
        return [cause("Invalid", field, problem, shown=shown(value))]
    return []


def labels(found: Mapping[str, str], field: str) -> list[Cause]:
    return [
        cause("Invalid", field, problem, shown=shown(text))
        for key, value in found.items()
        for text, problem in ((key, label_key_problem(key)), (value, label_value_problem(value)))
        if problem
    ]


def label_selector(selector: Mapping[str, Any], field: str) -> list[Cause]:
    found = labels(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for index, wanted in enumerate(selector.get("matchExpressions") or ()):
        where = f"{field}.matchExpressions[{index}]"
        if problem := label_key_problem(wanted.get("key", "")):
            found.append(cause("Invalid", f"{where}.key", problem, shown=shown(wanted.get("key", ""))))
        takes_values = wanted.get("operator") in ("In", "NotIn")
        if takes_values and not wanted.get("values"):
            words = "must be specified when `operator` is 'In' or 'NotIn'"
            found.append(cause("Required", f"{where}.values", words))
        elif not takes_values and wanted.get("values"):
            words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(cause("Forbidden", f"{where}.values", words))
    return found


def selects(selector: Mapping[str, Any], found: Mapping[str, str]) -> bool:
    """Whether a label selector chooses what has these labels."""
    if any(found.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for wanted in selector.get("matchExpressions") or ():
        value, values = found.get(wanted["key"]), wanted.get("values") or ()
        match wanted["operator"]:
            case "In":
                holds = value in values
            case "NotIn":
                holds = value not in values
            case "Exists":
                holds = value is not None
            case _:
                holds = value is None
        if not holds:
            return False
    return True


def duplicates(items: Iterable[Mapping[str, Any]], key: str, field: str) -> list[Cause]:
    seen: set[str] = set()
    found = []
    for index, item in enumerate(items):
        name = item.get(key, "")
        if name and name in seen:
            found.append(cause("Duplicate", f"{field}[{index}].{key}", "", shown=shown(name)))
        seen.add(name)
    return found


def data_keys(data: Mapping[str, str], field: str) -> list[Cause]:
    """Keys of Secrets and ConfigMaps become the names of files."""
    words = "a key is made of up to 253 letters, digits, '-', '_' and '.', and does not begin with '..'"
    return [
        cause("Invalid", f"{field}[{key}]", words, shown=shown(key))
        for key in data
        if not _DATA_KEY.fullmatch(key) or key in (".", "..") or key.startswith("..")
    ]


def data_size(size: int, field: str) -> list[Cause]:
    if size <= _DATA_LIMIT:
        return []
    return [Cause(field, "FieldValueTooLong", f"Too long: may not be more than {_DATA_LIMIT} bytes")]


def kept_data(new: Document, old: Document | None, *parts: str) -> list[Cause]:
    """What `immutable: true` means for a Secret or ConfigMap."""
    if old is None or not old.get("immutable"):
        return []
    words = "field is immutable when `immutable` is set"
    found = [] if new.get("immutable") else [cause("Forbidden", "immutable", words)]
    found += [
        cause("Forbidden", part, words) for part in parts if (new.get(part) or {}) != (old.get(part) or {})
    ]
    return found
