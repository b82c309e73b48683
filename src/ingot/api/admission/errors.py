"""What a rule answers: a field, what is wrong with it, and what would be right."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any


class Kind(enum.StrEnum):
    """The sorts of wrong that Kubernetes tells apart."""

    REQUIRED = "Required"
    INVALID = "Invalid"
    FORBIDDEN = "Forbidden"
    NOT_SUPPORTED = "NotSupported"
    DUPLICATE = "Duplicate"


_WORDS = {
    Kind.REQUIRED: "Required value",
    Kind.INVALID: "Invalid value",
    Kind.FORBIDDEN: "Forbidden",
    Kind.NOT_SUPPORTED: "Unsupported value",
    Kind.DUPLICATE: "Duplicate value",
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that is wrong. `value` is what was found there and may be shown; None where nothing was found."""

    path: str
    kind: Kind
    value: Any
    message: str

    def __str__(self) -> str:
        found = (
            "" if self.kind in (Kind.REQUIRED, Kind.FORBIDDEN) else f": {json.dumps(self.value, default=str)}"
        )
        return f"{self.path}: {_WORDS[self.kind]}{found}: {self.message}"


def required(path: str, message: str) -> FieldError:
    return FieldError(path, Kind.REQUIRED, None, message)


def invalid(path: str, value: Any, message: str) -> FieldError:
    return FieldError(path, Kind.INVALID, value, message)


def forbidden(path: str, value: Any, message: str) -> FieldError:
    return FieldError(path, Kind.FORBIDDEN, value, message)


def not_supported(path: str, value: Any, message: str) -> FieldError:
    return FieldError(path, Kind.NOT_SUPPORTED, value, message)


def duplicate(path: str, value: Any, message: str) -> FieldError:
    return FieldError(path, Kind.DUPLICATE, value, message)
