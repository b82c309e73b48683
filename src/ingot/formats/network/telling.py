"""Values in messages: shown to whoever gave a file on a command line, not repeated where they come out of a Secret.

The path of a field, which every message has, is enough to find it; and a Secret may hold something else than it should.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_LONGEST: Final = 60
_discreet: Final = ContextVar("discreet", default=False)


@contextmanager
def discreet() -> Iterator[None]:
    """Messages that are made in here do not repeat values."""
    token = _discreet.set(True)
    try:
        yield
    finally:
        _discreet.reset(token)


def shown(value: object) -> str:
    """A value for a message, never longer than a line has room for."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if _discreet.get():
        return "<text>" if isinstance(value, str) else "<value>"
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
