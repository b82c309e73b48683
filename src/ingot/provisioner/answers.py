"""How a back end answers, and what it asks before it destroys.

Answers are values:

    Ready(value)        done; the value is what came of it
    Busy(why)           under way; `changes()` will name the host when there is something new to see
    Failed(message)     the back end tried and could not; told once, and then tried anew when called with `again=True`
    NotRegistered(why)  the back end does not know the host (any more): register it first

What is not an answer is an exception: `BackendUnavailable` for weather (nobody answers, answers 5xx, is starting up).

**Destroying.** Verbs that can destroy (`Act`) take a `Permit`. The back end reads its own record of the host afresh, says in a
`Sight` what it sees there, and asks the permit directly before it acts. The permit reads the API object afresh and answers with
a `Refusal` or with None. So both sides have been looked at just before anything is lost, and neither knows the other's words.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Ready(Generic[T_co]):
    value: T_co


@dataclass(frozen=True, slots=True)
class Busy:
    why: str
    """The phase, as a sentence: what is going on."""
    detail: str = ""
    """Where in that phase. It may change every second, so nobody is woken or written for it alone."""
    begun: bool = False
    """The order that was told is what is going on, and will not be begun a second time. False: something else has to end
    first, or that is not known. Those who note what they ordered may do so from here on; at `Ready` at the latest."""


@dataclass(frozen=True, slots=True)
class Failed:
    message: str
    """What went wrong, as a sentence without a full stop."""
    refused_credentials: bool = False
    """It is the user name or the password that was refused."""
    needs_person: bool = False
    """Something stands there that may be in use and is not the host's to remove: nothing is undone for it, and the message says
    what a person does."""


@dataclass(frozen=True, slots=True)
class NotRegistered:
    why: str


class BackendError(Exception):
    """Something between us and the back end went wrong."""


class BackendUnavailable(BackendError):
    """Nobody answers, or not yet. Try again later; nothing is known about the host."""


# Before destroying


class Act(enum.Enum):
    """What can cost somebody a running machine or its data."""

    CLEAN = "clean"
    """Boot a ramdisk that changes disks, RAID volumes or firmware of a machine without a system."""
    DEPLOY = "deploy"
    UNDEPLOY = "undeploy"
    SERVICE = "service"
    """Stop the system of a machine that is in use, change its firmware, and start it again."""
    POWER_OFF = "power off"
    """Also a reboot, and everything else that stops what runs."""
    DELETE = "delete"
    FORGET = "forget"
    """Drop the back end's record of a host, to make it anew. The machine is not touched, but for a while nobody manages it."""
    DETACH = "detach"
    """Drop that record because somebody asked for the host to be left alone. The machine is not touched."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What the back end sees at the host right now, in words that any back end can use."""

    backend_id: str
    state: str
    """The back end's own word for the state; for messages only."""
    holds_instance: bool
    """An operating system was deployed or adopted here and has not been removed."""
    powered_on: bool | None
    deployed_for: str | None = None
    """The name of the provisioning that put it there (`Deployment.name`), as the back end has noted it; None: it is not known."""


@dataclass(frozen=True, slots=True)
class Refusal:
    why: str
    needs_person: bool = False
    """As in `Failed`: waiting does not help."""


def answer_to(refusal: Refusal) -> Busy | Failed:
    """What a back end says that was refused something."""
    return Failed(refusal.why, needs_person=True) if refusal.needs_person else Busy(refusal.why)


BEGIN_ANEW: Final = (
    "To begin anew with the machine, whatever it runs: `ingot host detach --force`, then `ingot host attach`. To keep what runs: "
    "detach the host, delete it, and create it again with spec.externallyProvisioned"
)
"""What a person does about a machine in use that a host of ours takes for an empty one."""


Permit = Callable[[Act, Sight], Awaitable[Refusal | None]]
