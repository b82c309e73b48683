"""Telling an interruption from a failure.

A conductor that dies in the middle of something cannot go on with it: at its restart, or when another one takes its nodes
over, Ironic moves the node to the failed state of what was under way and says so. Nothing was wrong with the host, so nobody
is told and nothing is waited for: what was asked for is asked for again at once. Only where that happens many times in a row,
without anything being brought to its end in between, is it told like any failure: it may be this host that kills Ironic.

What was not even begun is another thing: where all workers of a conductor are taken, Ironic answers 503 and puts the node back
to where it was (`found_nobody`).

`was_interrupted` knows Ironic's words, `Interruptions` counts. Only memory: after a restart of ours the count begins anew.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Final

from ingot.api.meta import Key
from ingot.provisioner.ironic.model import HistoryEntry, Node
from ingot.provisioner.ironic.reasons import errors

MOST_IN_A_ROW: Final = 10
"""A deployment that failed is taken down before the next one, and the machine is wiped again for it. That must not come of an
Ironic that is restarted some times within a minute or two; one that crashes for this host comes here all the same."""

_STATE_WAS_CUT_OFF: Final = re.compile(
    r"state can't be resumed by conductor|Operation was aborted due to conductor take over"
)
_FOUND_NOBODY: Final = "No free conductor workers available"
_POWER_WAS_CUT_OFF: Final = re.compile(
    r"Pending power operation was aborted due to conductor (?:restart|take over)"
)
# What happens to the power never moves a node to another state, so it is never the reason why it is in this one.
_ABOUT_POWER: Final = re.compile(
    r"Failed to change power state|Pending power operation|During sync_power_state"
)


def history_is_needed(node: Node) -> bool:
    """Whether `last_error` does not tell why the node's state is a failed one: many things clear it or write over it."""
    return not node.last_error or _ABOUT_POWER.match(node.last_error) is not None


def was_interrupted(node: Node, history: Sequence[HistoryEntry] = ()) -> bool:
    """Whether the node is in its state because a conductor died. `history` starts with the newest entry."""
    told = [node.last_error or "", *errors(history)]
    reason = next((text for text in told if text and not _ABOUT_POWER.match(text)), "")
    return _STATE_WAS_CUT_OFF.search(reason) is not None


def found_nobody(node: Node) -> bool:
    """Whether what was asked of Ironic last was not begun, because none of its workers was free."""
    return node.last_error == _FOUND_NOBODY


def switching_was_interrupted(node: Node, history: Sequence[HistoryEntry] = ()) -> bool:
    """The same for switching the power."""
    reason = next((text for text in (node.last_error or "", *errors(history)) if text), "")
    return _POWER_WAS_CUT_OFF.search(reason) is not None


class Interruptions:
    """How often in a row each host was interrupted, for each kind of thing that was under way."""

    def __init__(self) -> None:
        self._seen: dict[tuple[Key, str], list[Hashable]] = {}

    def may_go_on(self, host: Key, what: str, which: Hashable) -> bool:
        """Whether this interruption is passed over. `which` tells one from the next: seen again, it counts once."""
        seen = self._seen.setdefault((host, what), [])
        if which not in seen:
            seen.append(which)
        return len(seen) <= MOST_IN_A_ROW

    def progressed(self, host: Key, what: str = "") -> None:
        """Something was brought to its end: of this kind, or of any."""
        for key in [key for key in self._seen if key[0] == host and what in ("", key[1])]:
            del self._seen[key]
