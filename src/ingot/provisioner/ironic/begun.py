"""Which named orders were begun: kept in Ironic's own record of the host, so that whoever comes after us knows.

Pure. The note is written before Ironic is asked, because its record cannot be changed afterwards; so a note alone does not say
that anything was begun. It therefore holds the moment of the node as it was then (its state, and since when): as long as the
node still shows that moment, nothing came of it, and the order is begun again. A node that has moved on has begun it, unless
it was put back because no worker was free.

Until it is done a note also keeps what the order was made of. Whoever asks under its name later may ask for less, because the
rest counts as done: where Ironic is interrupted in the middle, all of it is begun again (`begin_again`). It goes when the order
is done (`without_plan`): a URL in it can hold a password, and Ironic shows its record to everybody who may look.

Memory does not hold the notes, so a verb that wants to know of one reads the node (`not_from_memory`).

What failed was not done: the note goes when a node leaves the failed state for another order's sake (`struck_when_managed`),
and an order that failed is begun again from there.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.decisions import Fail
from ingot.provisioner.ironic.interruptions import found_nobody
from ingot.provisioner.ironic.model import FullNode, Json, Node, PatchOperation, add, remove

_CUT_OFF: Final = "cut off"
_LONGEST: Final = timedelta(hours=6)
"""Several updates of firmware one after the other, with some to spare."""


class Kind(enum.Enum):
    """Where the note is, in the node's `extra`."""

    INSPECTION = "ingot_inspection"
    PREPARATION = "ingot_preparation"
    SERVICE = "ingot_service"


@dataclass(frozen=True, slots=True)
class Note:
    name: str
    rounds: int
    """How many rounds of the order were, or are about to be, begun."""
    moment: str
    plan: Json = None
    at: float = 0.0
    """When the round was about to be begun, in seconds since 1970; 0 where an older Ingot wrote the note."""


def note_of(node: FullNode, kind: Kind) -> Note | None:
    """The note as it stands; None where there is none that we could have written."""
    try:
        return msgspec.convert(node.extra.get(kind.value), Note)
    except msgspec.ValidationError:
        return None


def rounds_begun(node: FullNode, kind: Kind, name: str) -> int:
    """How many rounds of the order of this name were begun; 0 for none."""
    note = note_of(node, kind)
    if note is None or note.name != name:
        return 0
    not_taken = note.moment == moment(node) or (found_nobody(node) and note.moment != _CUT_OFF)
    return note.rounds - 1 if not_taken else note.rounds


def is_about_to_begin(node: FullNode, kind: Kind) -> bool:
    """A note was written for the node as it is now, and nothing came of it: whoever wrote it knew how it is."""
    note = note_of(node, kind)
    return note is not None and note.moment == moment(node)


def takes_too_long(node: FullNode, kind: Kind, now: datetime) -> bool:
    """Whether the round is under way for longer than any takes, although Ironic shows progress.

    Ironic counts the ramdisk's reports as progress, also while it waits for a setting that the machine never takes.
    """
    note = note_of(node, kind)
    return note is not None and note.at > 0 and now.timestamp() - note.at > _LONGEST.total_seconds()


def too_long(headline: str) -> Fail:
    hours = int(_LONGEST.total_seconds() // 3600)
    return Fail(
        f"{headline}: it is under way for more than {hours} hours. The machine may not take a setting that it was given",
        ask_why=False,
    )


def write(
    node: FullNode, kind: Kind, name: str, now: datetime, *, rounds: int = 1, plan: Json = None
) -> PatchOperation:
    """The note that this round is about to be begun."""
    return _write(kind, Note(name, rounds, moment(node), plan, now.timestamp()))


def begin_again(node: FullNode, kind: Kind) -> list[PatchOperation]:
    """The last round that was begun was cut off: it counts as not begun. Said twice it means the same."""
    note = note_of(node, kind)
    if note is None or note.moment == _CUT_OFF:
        return []
    return [_write(kind, replace(note, rounds=note.rounds - 1, moment=_CUT_OFF))]


def _write(kind: Kind, note: Note) -> PatchOperation:
    return add(f"/extra/{kind.value}", msgspec.to_builtins(note))


def without_plan(node: FullNode, kind: Kind) -> list[PatchOperation]:
    """The note, without what the order was made of; nothing to do where that is gone already."""
    note = note_of(node, kind)
    return [] if note is None or note.plan is None else [_write(kind, replace(note, plan=None))]


def strike(node: FullNode, kind: Kind) -> list[PatchOperation]:
    """Takes the note away; nothing to do where there is none."""
    return [remove(f"/extra/{kind.value}")] if kind.value in node.extra else []


def not_from_memory(_node: Node, _now: datetime) -> None:
    """For `carry_out`: what is under way is not told from memory."""


def struck_when_managed(node: FullNode) -> list[PatchOperation]:
    """What has to go before the node leaves its failed state without the failed order having been done."""
    match node.provision_state:
        case states.CLEAN_FAILED:
            return strike(node, Kind.PREPARATION)
        case states.INSPECT_FAILED:
            return strike(node, Kind.INSPECTION)
    return []


def moment(node: Node) -> str:
    """In which state the node is, and since when: a restart of Ironic does not change that, whatever comes next does."""
    since = node.provision_updated_at.isoformat() if node.provision_updated_at else "ever"
    return f"{node.provision_state} since {since}"
