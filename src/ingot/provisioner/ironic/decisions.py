"""The values that a decision about a node can have, and the decisions that all verbs share.

A verb is a pure function from (node, order) to one of these; `carrying_out` does what they say. `Step` is one thing to ask of
Ironic, the others end the call.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.deadlines import overdue, overdue_sentence
from ingot.provisioner.ironic.model import Node


class Step(enum.Enum):
    """What to ask of Ironic next."""

    CLEAR_MAINTENANCE = "clear maintenance"
    MANAGE = "manage"
    PROVIDE = "provide"
    INSPECT = "inspect"
    CLEAN = "clean"
    SERVICE = "service"
    ABORT = "abort"
    DEPLOY = "deploy"
    UNDEPLOY = "undeploy"
    ADOPT = "adopt"
    SWITCH = "switch power"
    DELETE = "delete"
    FORGET = "forget"
    GO_ON = "go on with what was cut off"
    STRIKE = "strike what was noted of an order"
    STOP_RAMDISK = "stop the ramdisk"
    START = "start what is on the disk"
    CHANGE_MEDIA = "change the virtual CD drive"
    NOTE = "note what is in the virtual CD drive"


@dataclass(frozen=True, slots=True)
class Wait:
    """Ironic is at it; an event will tell. `detail` may change while `why` stays. `begun`: as in the answer `Busy`."""

    why: str
    detail: str = ""
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    pass


@dataclass(frozen=True, slots=True)
class Fail:
    """It did not work.

    `ask_why`: Ironic knows the reason, and it follows the headline.
    `cause_says_it_all`: a cause that has a sentence of its own needs no headline before it.
    """

    headline: str
    ask_why: bool = True
    cause_says_it_all: bool = False


@dataclass(frozen=True, slots=True)
class Unregistered:
    """Ironic has a record, but has not taken the host under management."""

    why: str


Decision = Step | Wait | Done | Fail | Unregistered


def progress(node: Node, afterwards: str = "") -> Wait:
    """What Ironic is doing, how far it is, and what comes when that is over."""
    details = ["waiting for the ramdisk"] if states.waits_for_ramdisk(node.provision_state) else []
    details += [f"step {node.step}"] if node.step else []
    phase = states.PREPARING if cleans_by_hand(node) else states.sentence(node.provision_state)
    return Wait(f"{phase}; {afterwards}" if afterwards else phase, ", ".join(details))


def cleans_by_hand(node: Node) -> bool:
    """Whether Ironic cleans by our own steps: then it is to end where it began."""
    by_hand = node.target_provision_state == states.MANAGEABLE
    return by_hand and node.provision_state in (states.CLEANING, states.CLEAN_WAIT)


def busy(node: Node, now: datetime) -> Wait | Fail | None:
    """What to say of a node that Ironic works on; None when it does not."""
    if not states.is_busy(node.provision_state):
        return None
    if overdue(node, now):
        return Fail(overdue_sentence(node), ask_why=False)
    return progress(node)


def hindrance(node: Node, now: datetime) -> Decision | None:
    """What stands in the way of any change of state, whatever is wanted."""
    if answer := busy(node, now):
        return answer
    match node.provision_state:
        case states.ENROLL:
            return Unregistered("Ironic knows the host, but has not taken it under management yet")
        case states.RESCUE | states.RESCUE_FAILED | states.UNRESCUE_FAILED:
            return None
    if node.fault == states.POWER_FAULT:
        return Wait(
            "Ironic cannot reach the power controls of the BMC; it tries again by itself every few minutes"
        )
    # What went wrong in a failed state has to be told first; in any other it is over.
    if node.maintenance and (node.fault is None or node.provision_state not in states.FAILED):
        return Step.CLEAR_MAINTENANCE
    return None


def after_failed_cleaning(
    node: Node, *, again: bool, headline: str = "cleaning the disks failed"
) -> Step | Fail:
    """Cleaning failed: told once; then maintenance is lifted and the node goes back to where cleaning can start anew."""
    if not again:
        return Fail(headline)
    return Step.CLEAR_MAINTENANCE if node.maintenance else Step.MANAGE
