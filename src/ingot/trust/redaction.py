"""Keeping secrets out of sight.

`Secret` holds a value that must be used but never shown: its repr and str say nothing, so it cannot slip into a log, an
exception, or an f-string by accident. `redact` cleans text that others wrote (Ironic's errors can hold an agent token in a
URL, see the tests for the shapes it knows) before it reaches a status or an event.
"""

from __future__ import annotations

import re
from typing import Final

HIDDEN: Final = "******"


class Secret:
    """A string to use, not to show. `reveal()` is the one way to its value."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))


_URL_USER: Final = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s:@]+:[^/\s@]+@")
_NAMED: Final = re.compile(
    # "secret:" in prose is the name of a Kubernetes object more often than a value follows it, so it needs a quote or a "=".
    r"(?P<name>[\w-]*(?:token|password|passwd|authorization|secret[\w-]*(?=[\"'=]))[\w-]*)(?P<sep>\"?'?\s*[=:]\s*\"?'?)"
    r"(?P<value>(?:(?:Basic|Bearer)\s+)?[^\s\"'&,;)}\]]+)",
    re.IGNORECASE,
)


def redact(text: str, *secrets: Secret) -> str:
    """`text` without the given secrets, without tokens and passwords in URLs, parameters or key-value pairs."""
    for secret in secrets:
        if secret:
            text = text.replace(secret.reveal(), HIDDEN)
    text = _URL_USER.sub(rf"\g<scheme>{HIDDEN}@", text)
    return _NAMED.sub(rf"\g<name>\g<sep>{HIDDEN}", text)
