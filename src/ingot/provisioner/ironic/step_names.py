"""Steps in what Ironic says, by their names.

Ironic repeats a step whole, as Python writes a mapping, with everything that it was told: a password of the firmware, the user
data of a host. A mapping is followed to its end, quotes and all, so that nothing of it is left over; one without an end goes with
all that comes after it.
"""

from __future__ import annotations

import re
from typing import Final

_BEGINS: Final = re.compile(r"\{['\"](?:interface|step|args|priority|abortable|argsinfo)['\"]: ")
_INTERFACE: Final = re.compile(r"['\"]interface['\"]: ['\"](?P<name>[\w-]+)['\"]")
_STEP: Final = re.compile(r"['\"]step['\"]: ['\"](?P<name>[\w-]+)['\"]")
_WORTH_A_LOOK: Final = re.compile(r"[{}'\"\\]")


def with_steps_named(text: str) -> str:
    """The text, with INTERFACE.STEP in place of each step."""
    made, at = [], 0
    while (begins := _BEGINS.search(text, at)) is not None:
        end = _end(text, begins.start())
        made += [text[at : begins.start()], _name(text[begins.start() : end])]
        at = end
    return "".join([*made, text[at:]])


def _end(text: str, start: int) -> int:
    """Behind the brace that closes the one at `start`."""
    depth, quote, at = 0, "", start
    while (found := _WORTH_A_LOOK.search(text, at)) is not None:
        sign, at = found[0], found.end()
        if sign == "\\":
            at += 1
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        else:
            depth += 1 if sign == "{" else -1
            if not depth:
                return at
    return len(text)


def _name(step: str) -> str:
    interface, name = _INTERFACE.search(step), _STEP.search(step)
    return ".".join(found["name"] for found in (interface, name) if found is not None) or "{…}"
