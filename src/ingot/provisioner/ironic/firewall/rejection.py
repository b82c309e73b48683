"""How something is turned away: which field, what was found there, what is expected."""

from __future__ import annotations

from ingot.api.inputs.text import shown


class Rejected(ValueError):
    """What a user asks for is not handed on to Ironic. The text is a sentence without a full stop."""


def reject(field: str, found: str | None, expected: str) -> Rejected:
    """`found`: what may be shown of it; None for a secret."""
    sentence = expected.rstrip(".")
    return Rejected(f"{field}: {sentence}" if found is None else f"{field} is '{shown(found)}': {sentence}")
