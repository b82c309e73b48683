"""Text that is handed on as it is: one line of it, without anything that whoever shows or parses it could take for more."""

from __future__ import annotations

from typing import Final

MOST_SHOWN: Final = 80


def is_one_line(text: str) -> bool:
    """Printable characters only: no line break, no control character, nothing that changes the direction of writing."""
    return text.isprintable()


def shown(text: str) -> str:
    """What may stand in a message: on one line, and not too much of it."""
    plain = ascii(text)[1:-1] if not text.isprintable() else text
    return plain if len(plain) <= MOST_SHOWN else f"{plain[: MOST_SHOWN - 1]}…"
