"""What a state's handler says when it is done for now.

A handler returns one of these values and never sleeps, retries or writes a state itself. The `why` is the sentence that the
user reads in the host's conditions, so it says what is being waited for in words that need no knowledge of the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ingot.api.baremetalhost import ErrorType, EventReason, State

LOOK_AGAIN: Final = 300.0
"""Seconds after which a waiting host is looked at although nobody said that it changed. What is waited for has an event;
this is for the event that never comes because what should have sent it is dead."""


SOON: Final = 5.0
"""Seconds after which a host is looked at that waits for nothing but another pass."""


@dataclass(frozen=True, slots=True)
class Stay:
    """The host is where it should be; only a change of it or of its machine matters."""

    why: str


@dataclass(frozen=True, slots=True)
class Advance:
    """Go on in this state, in the same pass."""

    state: State


@dataclass(frozen=True, slots=True)
class Wait:
    """Something is under way and will make itself heard."""

    why: str
    detail: str = ""
    """Where in the phase that `why` names. A change of it alone is written at most every `QUIET` seconds."""
    look_again: float = LOOK_AGAIN


@dataclass(frozen=True, slots=True)
class Delay:
    """There is no room for it now; whoever keeps the places calls when there is."""

    why: str
    kind: str
    """Under which name it is counted."""


@dataclass(frozen=True, slots=True)
class Fail:
    """It did not work. It is tried again after a while, or at once when somebody changes what it depends on."""

    kind: ErrorType
    message: str


@dataclass(frozen=True, slots=True)
class Block:
    """It cannot work until a person changes something. Told once; nothing is tried until that change."""

    kind: ErrorType
    message: str
    event: EventReason | None = None
    """How it is told, where the kind of the error is told otherwise."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The last finalizer of ours is off; nothing is left to write to."""


Outcome = Stay | Advance | Wait | Delay | Fail | Block | Gone
