"""The image in a machine's virtual CD drive.

Ironic fetches the image and serves it to the BMC under a name of its own, so what the BMC shows does not tell which image it
is. That is noted with the node: before the drive is changed that it is being changed, and afterwards to what. Whoever finds
the first note after a restart changes the drive once more, which does no harm.

Ironic holds the node's lock while it is at it, and says what went wrong in `last_error`; there is no event that can be relied
on, so the host is looked at again after a moment. The drive is the one that ramdisks boot from: it is left alone while Ironic
does anything with the node.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from ingot.provisioner import Busy, Failed, HostRef, NotRegistered, Ready
from ingot.provisioner.ironic.attempts import Retry, Scope
from ingot.provisioner.ironic.carrying_out import carry_out
from ingot.provisioner.ironic.client import LISTS_VIRTUAL_MEDIA
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, Wait
from ingot.provisioner.ironic.errors import Refused, ServerError
from ingot.provisioner.ironic.model import FullNode, VirtualMedium, add, remove
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.reasons import explain
from ingot.provisioner.ironic.rules import HINDRANCES, Fact, Verb, elsewhere, facts_of
from ingot.provisioner.ironic.transitions import clear_maintenance

MARK: Final = "ingot_data_image"
"""In the node's `extra`: which image is in the drive."""
CHANGING: Final = "changing"
LOOK_AGAIN: Final = 1.0
_DISCS: Final = frozenset({"CD", "DVD"})
_DID_NOT_WORK: Final = re.compile(r"Could not (?:attach|detach) device")


def mark_for(url: str) -> str:
    """Tells images apart. Not the URL itself, which can hold a password."""
    return hashlib.sha256(url.encode()).hexdigest()[:32] if url else ""


def is_loaded(media: list[VirtualMedium]) -> bool:
    """Whether something is in a CD drive."""
    return any(medium.inserted and _DISCS & {kind.upper() for kind in medium.media_types} for medium in media)


@dataclass(frozen=True, slots=True)
class Drive:
    """The virtual CD drive as it is."""

    loaded: bool
    mark: str
    asked_before: bool
    """We asked for a change, and it has not come to what we wanted."""
    changing: bool = False
    """Ironic holds the node's lock, or did when the drive was looked at."""


DATA_IMAGE: Final = Verb(
    name="data image",
    rules=(
        elsewhere(when=(Fact.ASKED, Fact.CHANGING), then=Wait("changing the image in the virtual CD drive")),
        elsewhere(when=Fact.AS_WANTED, then=Done()),
        *HINDRANCES,
        elsewhere(
            when=(Fact.ASKED, Fact.REFUSED),
            unless=Fact.TOLD,
            then=Fail("the image in the virtual CD drive cannot be changed"),
        ),
        elsewhere(when=(Fact.ASKED, Fact.SHOWN), unless=Fact.TOLD, then=Step.NOTE),
        elsewhere(
            when=Fact.ASKED,
            unless=Fact.TOLD,
            then=Fail(
                "Ironic changed the image in the virtual CD drive, and the BMC does not show it",
                ask_why=False,
            ),
        ),
        # An empty drive is an empty drive, whoever emptied it.
        elsewhere(when=Fact.EMPTY, then=Step.NOTE),
        elsewhere(then=Step.CHANGE_MEDIA),
    ),
)


def facts_of_drive(drive: Drive, wanted: str) -> dict[Fact, bool]:
    """`wanted`: the mark of the image that should be in the drive, "" for none."""
    shown = drive.loaded == bool(wanted)
    return {
        Fact.ASKED: drive.asked_before,
        Fact.CHANGING: drive.changing,
        Fact.SHOWN: shown,
        Fact.AS_WANTED: shown and drive.mark == wanted,
        Fact.EMPTY: not drive.loaded and not wanted,
    }


async def set_data_image(
    nodes: Nodes, host: HostRef, url: str, *, again: bool
) -> Ready[None] | Busy | Failed | NotRegistered:
    if (version := await nodes.client.version()) < LISTS_VIRTUAL_MEDIA:
        return Failed(
            f"this Ironic (API 1.{version}) cannot tell what is in a virtual drive, so data images need a newer one: "
            f"API 1.{LISTS_VIRTUAL_MEDIA}"
        )
    # Ironic lets a node's lock go without a word, so what was read a moment ago may not hold although nothing was heard.
    node = await nodes.fresh(host, within=0)
    if node is None:
        return NotRegistered(nodes.gone(host))
    # What is seen while Ironic is at it says nothing of what comes of it.
    changing = node.reservation is not None
    try:
        media = await nodes.client.virtual_media(node.uuid)
    except (Refused, ServerError) as error:
        return Failed(f"the virtual drives of the host cannot be looked at: {explain(error.text, node)}")
    wanted, loaded = mark_for(url), is_loaded(media)

    def decide(node: FullNode, retry: Retry) -> Decision:
        mark = node.extra.get(MARK)
        drive = Drive(
            loaded=loaded,
            mark=mark if isinstance(mark, str) else "",
            asked_before=nodes.attempts.was_started(node.uuid, Scope.MEDIA),
            changing=changing or node.reservation is not None,
        )
        order = facts_of_drive(drive, wanted) | {
            Fact.REFUSED: _DID_NOT_WORK.search(node.last_error or "") is not None,
            Fact.TOLD: retry.allowed,
        }
        return DATA_IMAGE.decide(node, facts_of(node, nodes.now(), order))

    async def note(node: FullNode) -> None:
        await _note(nodes, node, wanted)
        nodes.attempts.done(node.uuid, Scope.MEDIA)

    async def change(node: FullNode) -> Busy:
        await _note(nodes, node, CHANGING)
        if url:
            await nodes.client.attach_cd(node.uuid, url)
        else:
            await nodes.client.detach_cd(node.uuid)
        nodes.attempts.started(node.uuid, Scope.MEDIA)
        return Busy(f"{'inserting the image into' if url else 'emptying'} the virtual CD drive")

    outcome = await carry_out(
        nodes,
        host,
        DATA_IMAGE,
        decide,
        {
            Step.NOTE: note,
            Step.CHANGE_MEDIA: change,
            Step.CLEAR_MAINTENANCE: clear_maintenance(nodes),
        },
        again=again,
        scope=Scope.MEDIA,
    )
    if isinstance(outcome, Busy):
        nodes.look_again(host, LOOK_AGAIN)
    return Ready(None) if isinstance(outcome, FullNode) else outcome


async def _note(nodes: Nodes, node: FullNode, mark: str) -> None:
    if mark:
        await nodes.patch(node, [add(f"/extra/{MARK}", mark)] if node.extra.get(MARK) != mark else [])
    else:
        await nodes.patch(node, [remove(f"/extra/{MARK}")] if MARK in node.extra else [])
