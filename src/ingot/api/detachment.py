"""Whether a host is to be let go by its back end without being touched, and what becomes of it when it is deleted meanwhile.

Pure, over the annotation `baremetalhost.metal3.io/detached`. Its value may be anything; JSON with `deleteAction` and `force` says
more, and what cannot be read as such means what an empty value means.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ingot.api.baremetalhost import Annotation, BareMetalHost, State

LET_GO_FROM: Final = frozenset({State.PROVISIONED, State.EXTERNALLY_PROVISIONED, State.AVAILABLE})
"""States in which nothing is under way at the machine, so that it can be let go at any moment."""


class Detachment(msgspec.Struct, frozen=True, rename="camel"):
    """What the annotation asks for."""

    delete_action: str = "delete"
    """`delay`: a deletion waits until the host is attached again. Anything else: the host goes as it is."""
    force: bool = False
    """Let it go in any state; what is under way there is given up."""

    @property
    def delays_deletion(self) -> bool:
        return self.delete_action == "delay"


def detachment(host: BareMetalHost) -> Detachment | None:
    """What is asked for; None when the host is to be managed."""
    text = host.metadata.annotations.get(Annotation.DETACHED)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=Detachment)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return Detachment()


def may_be_let_go(host: BareMetalHost) -> bool:
    """Whether it is asked for, and the host is where that can be done."""
    asked = detachment(host)
    return asked is not None and (asked.force or host.state in LET_GO_FROM)
