"""The values that a decision about a node can have.

Pure. What is decided for which node stands in the rules of the verbs (`rules`); `carrying_out` does what they say. `Step` is one
thing to ask of Ironic, the others end the call.
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
    SWITCH_ON = "switch the power on"
    SWITCH_OFF = "switch the power off"
    DELETE = "delete"
    FORGET = "forget"
    GO_ON = "go on with what was cut off"
    STRIKE = "strike what was noted of an order"
    STOP_RAMDISK = "stop the ramdisk"
    START = "start what is on the disk"
    RESTART = "restart what is on the disk"
    CHANGE_MEDIA = "change the virtual CD drive"
    NOTE = "note what is in the virtual CD drive"
    SUBSCRIBE = "change the subscriptions of the BMC"


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
    `remedy`: what a person does about it, where asking once more would not help.
    `undone_by`: the verb that the caller asks for next, where that is what helps.
    """

    headline: str
    ask_why: bool = True
    cause_says_it_all: bool = False
    remedy: str = ""
    undone_by: str = ""


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


def switching_sentence(node: Node) -> Wait:
    return Wait(f"switching the power {'on' if node.target_power_state == states.POWER_ON else 'off'}")


def busy(node: Node, now: datetime) -> Wait | Fail | None:
    """What to say of a node that Ironic works on; None when it does not."""
    if not states.is_busy(node.provision_state):
        return None
    if overdue(node, now):
        return Fail(overdue_sentence(node), ask_why=False)
    return progress(node)
