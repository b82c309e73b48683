"""What a deletion leaves of an object: nothing, or the object marked as ending while somebody still holds on to it."""

from __future__ import annotations

import copy
from typing import Final

from ingot.embedded.server.documents import Document
from ingot.embedded.server.kinds.builtins import NAMESPACES
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.storage.objects import is_terminating
from ingot.embedded.server.writes import ending

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
_PROPAGATION: Final = {"Orphan": ORPHAN, "Foreground": FOREGROUND}


def left_of(kind: Kind, old: Document, *, propagation: str, grace: int | None) -> tuple[Document, bool]:
    """The last state of the object, and whether it stays for now."""
    new = copy.deepcopy(old)
    if not is_terminating(old):
        kind.leave(new)
    metadata = new["metadata"]
    finalizer = _PROPAGATION.get(propagation)
    if finalizer and finalizer not in metadata.get("finalizers", ()):
        metadata["finalizers"] = [*metadata.get("finalizers", ()), finalizer]
    seconds = ending.seconds_left(kind, old, grace)
    stays = bool(metadata.get("finalizers")) or kind is NAMESPACES or seconds != 0
    marked = stays or kind.grace is not None
    if marked and seconds is not None and not (is_terminating(old) and ending.is_over(old)):
        ending.mark(new, seconds)
        if kind is NAMESPACES:
            new["status"] = {**new.get("status", {}), "phase": "Terminating"}
    return new, stays
