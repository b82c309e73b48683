"""Applying the patches, once, and knowing which of them hold.

Each patch is a module that checks itself and raises when this version of Ironic is not what it was written for. Then it is
left out, the log says so, and every message to the operator does too, which falls back to listing. Ironic runs on either way.
What most of them check is here, too: that something is there (`needs`), and what a function is told (`takes`).
"""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

LOG: Final = logging.getLogger(__name__)

Patch = Callable[[], None]


def needs(owner: Any, *names: str) -> None:
    """All of these are functions of the owner, a class or a module. Raises where one is missing."""
    if missing := [name for name in names if not callable(getattr(owner, name, None))]:
        raise AttributeError(f"{owner.__name__} has no {' or '.join(missing)}")


def takes(function: Callable[..., Any], *parameters: str, more: bool = False) -> None:
    """The function takes these and no others, or (`more`) these first. Raises where it takes other things."""
    known = list(inspect.signature(function).parameters)
    if (known[: len(parameters)] if more else known) != list(parameters):
        raise AttributeError(
            f"{function.__qualname__} takes other things than {', '.join(parameters)}: {', '.join(known)}"
        )


class Patches:
    """The patches of this process, and what became of each."""

    def __init__(self) -> None:
        self._once = threading.Lock()
        self._held: dict[str, bool] = {}

    def apply(self, patches: Mapping[str, Patch]) -> None:
        """Apply those that were not tried yet. Ironic makes two driver instances; the second finds nothing to do."""
        with self._once:
            for name, patch in patches.items():
                if name not in self._held:
                    self._held[name] = _applied(name, patch)

    def held(self) -> dict[str, bool]:
        return dict(self._held)

    def holds(self, name: str) -> bool:
        return self._held.get(name, False)


def _applied(name: str, patch: Patch) -> bool:
    try:
        patch()
    except Exception as error:  # whatever another version of Ironic does differently, it must still run
        LOG.error(
            "The patch %s does not fit this version of Ironic and is left out: %s: %s. Ironic runs on without it; "
            "a version of ingot-ironic made for this Ironic brings it back.",
            name,
            type(error).__name__,
            error,
        )
        return False
    return True
