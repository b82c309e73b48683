"""What to do next for a Machine whose node does not answer: switch its host off, take the Node out, switch it on again. Pure.

Everything that was done can be told from what is written: on the host whether it is kept off, on the Machine what its Node was
like, that the host was off with the Node gone, and until when the Node has to be back. So a process that is killed anywhere goes
on where it was, and so does another one that knows these annotations.

A Node is deleted only while its host is off: deleting it tells the cluster that nothing runs there any more.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from ingot.api.baremetalhost import Annotation as HostAnnotation
from ingot.api.baremetalhost import BareMetalHost, OperationalStatus, UnknownState
from ingot.api.core import Node
from ingot.api.installed import RUNS_A_SYSTEM
from ingot.api.machine import MACHINES, Annotation, Machine
from ingot.api.meta import ObjectReference
from ingot.machines.vacancies import UNHEALTHY

KEPT_OFF: Final = "reboot.metal3.io/capbm-requested-power-off"
"""On a host: keep it off, for remediation."""
AT_ONCE: Final = '{"mode":"hard"}'
"""Its value: a machine that does not answer will not shut down if it is asked to."""
GIVEN_UP: Final = UNHEALTHY[0]
"""On a host: nobody is given it. The value says who gave it up."""
_ROLE: Final = "machine.openshift.io/cluster-api-machine-role"
_MASTER: Final = "master"


class Mark(enum.StrEnum):
    """What is written on the Machine about how far it came."""

    NODE_LABELS = "remediation.metal3.io/node-labels-backup"
    NODE_ANNOTATIONS = "remediation.metal3.io/node-annotations-backup"
    POWERED_OFF = "remediation.metal3.io/powered-off-for-remediation"
    """The host was off, and the Node gone."""
    DEADLINE = "remediation.metal3.io/power-on-will-timeout-at"


@dataclass(frozen=True, slots=True)
class Sight:
    """What is known. The host is the Machine's own, or none."""

    machine: Machine
    host: BareMetalHost | None
    node: Node | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Rest:
    """There is nothing to do."""


@dataclass(frozen=True, slots=True)
class Wait:
    """For something that happens by itself."""

    why: str


@dataclass(frozen=True, slots=True)
class Stuck:
    """Until somebody does something, which the sentence names."""

    why: str


@dataclass(frozen=True, slots=True)
class SwitchOff:
    """Have the host switched off, and kept so."""


@dataclass(frozen=True, slots=True)
class BackUp:
    """Write down what the Node is like."""

    labels: str
    annotations: str


@dataclass(frozen=True, slots=True)
class DeleteNode:
    """Take the Node out of the cluster."""


@dataclass(frozen=True, slots=True)
class SetDeadline:
    """Write down that the host is off and the Node gone, and until when it has to be back."""


@dataclass(frozen=True, slots=True)
class SwitchOn:
    """Do not keep the host off any more."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Give the Node back what it had and does not have now."""

    labels: dict[str, str]
    annotations: dict[str, str]


@dataclass(frozen=True, slots=True)
class Finish:
    """Take everything off the Machine that was written for this."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Mark the host, so that nobody is given it before a person has looked at it: it would be installed for ever, in vain."""


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The Node came after all: take that mark off the host again."""


@dataclass(frozen=True, slots=True)
class DeleteMachine:
    """The Node did not come back: have another host installed in its place."""

    why: str


Step = (
    Rest
    | Wait
    | Stuck
    | SwitchOff
    | BackUp
    | DeleteNode
    | SetDeadline
    | SwitchOn
    | Restore
    | Finish
    | GiveUp
    | TakeBack
    | DeleteMachine
)


def next_step(sight: Sight) -> Step:
    machine, host = sight.machine, sight.host
    if not is_asked_for(machine):
        return _if_withdrawn(sight)
    if host is None:
        return Stuck("The Machine has no host that could be switched off and on.")
    if KEPT_OFF in host.metadata.annotations:
        return _while_kept_off(sight, host)
    if Mark.POWERED_OFF in machine.metadata.annotations:
        return _while_starting(sight, host)
    if why := _out_of_hands(host):
        return Stuck(f"{why}. It is switched off as soon as that has changed.")
    return SwitchOff()


def is_asked_for(machine: Machine) -> bool:
    """A Machine that is being deleted is not mended any more."""
    return (
        Annotation.REMEDIATION in machine.metadata.annotations and machine.metadata.deletion_timestamp is None
    )


def is_concerned(machine: Machine) -> bool:
    """Whether anything of this is written on the Machine."""
    annotations = machine.metadata.annotations
    return Annotation.REMEDIATION in annotations or any(mark in annotations for mark in Mark)


def is_kept_off_for_nobody(host: BareMetalHost, machine: Machine | None) -> bool:
    """Whether the host is kept off for a remediation that is none: its Machine is gone, going, or well again.

    `machine` is the one that the host belongs to; None where it belongs to none that exists.
    """
    return KEPT_OFF in host.metadata.annotations and (machine is None or not is_asked_for(machine))


def is_machine(consumer: ObjectReference) -> bool:
    group = consumer.api_version.rpartition("/")[0]
    return (consumer.kind, group) == (MACHINES.kind, MACHINES.group)


# The parts of the way


def _while_kept_off(sight: Sight, host: BareMetalHost) -> Step:
    annotations, node = sight.machine.metadata.annotations, sight.node
    if why := _out_of_hands(host):
        return Stuck(f"{why}. Whether it is off cannot be told until that has changed.")
    if host.status.powered_on:
        return Wait(f"BareMetalHost {host.key} is being switched off")
    if node is not None:
        if node.metadata.deletion_timestamp is not None:
            return Wait(f"Node {node.metadata.name} is being deleted")
        backup = BackUp(_written(node.metadata.labels), _written(node.metadata.annotations))
        if (backup.labels, backup.annotations) != _backup(annotations):
            return backup
        return DeleteNode()
    deadline = deadline_of(sight.machine)
    # Where nobody was there to switch it on, the time that was left for it begins anew.
    if Mark.POWERED_OFF not in annotations or deadline is None or deadline <= sight.at:
        return SetDeadline()
    return SwitchOn()


def _while_starting(sight: Sight, host: BareMetalHost) -> Step:
    if sight.node is not None and sight.node.metadata.deletion_timestamp is None:
        return _restoring(sight, sight.node)
    deadline = deadline_of(sight.machine)
    if deadline is None:
        return SetDeadline()
    if sight.at < deadline:
        return Wait(f"BareMetalHost {host.key} starts, and its Node has to be back by {_time(deadline)}")
    if why := why_kept(sight.machine, host):
        return Stuck(
            f"The Node was not back by {_time(deadline)}, and the Machine is not replaced, because {why}. Look at the console "
            f"of BareMetalHost {host.key}; delete the Machine by hand if it is to have another host."
        )
    if not is_marked(host):
        return GiveUp()
    return DeleteMachine(
        f"The Node was not back by {_time(deadline)}: the Machine is deleted, so that another one takes its place. "
        f"BareMetalHost {host.key} is marked as unhealthy, and nobody is given it: look at it, then remove its annotation "
        f"{_mark_on(host)}."
    )


def _if_withdrawn(sight: Sight) -> Step:
    """Nobody asks any more: nothing is switched off or deleted, and what the Node had is given back to it when it is there."""
    machine = sight.machine
    if machine.metadata.deletion_timestamp is not None or not is_concerned(machine):
        return Rest()
    if not any(_backup(machine.metadata.annotations)):
        return _finishing(sight)
    if sight.node is None or sight.node.metadata.deletion_timestamp is not None:
        return Wait("the Node is not there yet")
    return _restoring(sight, sight.node)


def _restoring(sight: Sight, node: Node) -> Step:
    labels, annotations = _backup(sight.machine.metadata.annotations)
    missing = Restore(
        _missing(_read(labels), node.metadata.labels), _missing(_read(annotations), node.metadata.annotations)
    )
    return missing if missing.labels or missing.annotations else _finishing(sight)


def _finishing(sight: Sight) -> Step:
    mine = given_up_for(sight.machine)
    is_mine = sight.host is not None and sight.host.metadata.annotations.get(GIVEN_UP) == mine
    return TakeBack() if is_mine else Finish()


def why_kept(machine: Machine, host: BareMetalHost) -> str | None:
    """Why the Machine is not deleted although its Node does not come back; None if it is."""
    if host.spec.externally_provisioned:
        return "its host was not provisioned from here"
    if not any(owner.controller for owner in machine.metadata.owner_references):
        return "nobody would make another one in its place"
    if machine.metadata.labels.get(_ROLE) == _MASTER:
        return f"it is a {_MASTER}"
    return None


def _out_of_hands(host: BareMetalHost) -> str | None:
    """Why nobody would switch the host off, or see that it is off."""
    annotations = host.metadata.annotations
    if host.metadata.deletion_timestamp is not None:
        return f"BareMetalHost {host.key} is being deleted"
    if HostAnnotation.PAUSED in annotations:
        return f"BareMetalHost {host.key} is paused"
    if HostAnnotation.DETACHED in annotations or host.status.operational_status is OperationalStatus.DETACHED:
        return f"BareMetalHost {host.key} is detached"
    if host.spec.disable_power_off:
        return f"BareMetalHost {host.key} is never to be switched off (spec.disablePowerOff)"
    try:
        state = host.state
    except UnknownState as error:
        return str(error).rstrip(".")
    if state not in RUNS_A_SYSTEM:
        return f"BareMetalHost {host.key} is {state or 'new'} and runs nothing yet"
    return None


# What is written on a host that is given up


def given_up_for(machine: Machine) -> str:
    return f"the Node of Machine {machine.key} did not come back"


def is_marked(host: BareMetalHost) -> bool:
    """Whether nobody is given it, whoever saw to that."""
    return any(name in host.metadata.annotations for name in UNHEALTHY)


def _mark_on(host: BareMetalHost) -> str:
    return next(name for name in UNHEALTHY if name in host.metadata.annotations)


# What is written on the Machine


def deadline_of(machine: Machine) -> datetime | None:
    """Until when the Node has to be back; None where nothing is written, or nothing that can be read."""
    try:
        read = datetime.fromisoformat(machine.metadata.annotations.get(Mark.DEADLINE, ""))
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)


def marked_off(deadline: datetime) -> dict[str, Any]:
    return _annotations({Mark.POWERED_OFF: "", Mark.DEADLINE: _time(deadline)})


def backed_up(step: BackUp) -> dict[str, Any]:
    return _annotations({Mark.NODE_LABELS: step.labels, Mark.NODE_ANNOTATIONS: step.annotations})


def finished() -> dict[str, Any]:
    return _annotations(dict.fromkeys([*Mark, Annotation.REMEDIATION]))


def _annotations(values: dict[Any, str | None]) -> dict[str, Any]:
    return {"metadata": {"annotations": {str(name): value for name, value in values.items()}}}


def _backup(annotations: dict[str, str]) -> tuple[str, str]:
    return annotations.get(Mark.NODE_LABELS, ""), annotations.get(Mark.NODE_ANNOTATIONS, "")


def _written(values: dict[str, str]) -> str:
    return msgspec.json.encode(values, order="sorted").decode()


def _read(text: str) -> dict[str, str]:
    """What was backed up. What somebody spoilt cannot be given back, and keeps nothing else from going on."""
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except msgspec.DecodeError:
        return {}


def _missing(had: dict[str, str], has: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in had.items() if name not in has}


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
