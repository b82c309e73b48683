"""Documents that users write as YAML or JSON, made into plain values.

YAML can refer to what it said before, so a few lines can mean a billion values. Values are counted as they are written out, and
there is an end to it.
"""

from __future__ import annotations

from typing import Final

from ingot.api.inputs.documents import DEEPEST

LARGEST: Final = 1 << 20
"""No Secret is larger."""
MOST_VALUES: Final = 20_000


def is_within_bounds(document: object) -> bool:
    """Whether a parsed document is small enough to be written out."""
    left = MOST_VALUES
    waiting: list[tuple[object, int]] = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        left -= 1
        if left < 0 or depth > DEEPEST:
            return False
        if isinstance(value, dict):
            waiting += [(one, depth + 1) for one in value.values()]
        elif isinstance(value, list | tuple | set):
            waiting += [(one, depth + 1) for one in value]
    return True
