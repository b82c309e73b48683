"""Keeping the node cache true: push first, a slow list as the safety net.

Owns the one background loop. It lists all nodes at the start and after anything that may have been missed (a gap, a sender
nobody heard before, Ironic gone and back), and otherwise once a minute; while something is in flight and nobody pushes (a
foreign Ironic, or push is broken), every two seconds. There is no polling of single nodes anywhere. A node that is busy for
longer than it should be has no event either: it is announced when its deadline passes.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, Protocol

from ingot.provisioner import EVERYTHING, BackendError
from ingot.provisioner.changes import Changes
from ingot.provisioner.ironic.cache import NodeCache, in_flight
from ingot.provisioner.ironic.deadlines import overdue
from ingot.provisioner.ironic.metrics import LISTS, PATCHES, PUSH_GAPS, PUSH_IS_HEARD
from ingot.provisioner.ironic.model import Node
from ingot.provisioner.ironic.names import host_key
from ingot.provisioner.ironic.push import PushLedger, PushMessage

SAFETY_NET: Final = 60.0
WITHOUT_PUSH: Final = 2.0
PUSH_IS_SILENT_AFTER: Final = 30.0
RETRY: Final = 2.0
A_MOMENT: Final = 0.001
"""What is left of a pause when its clock has coarse ticks; to wait for less would be to wait for nothing, again and again."""

log = logging.getLogger(__name__)


class Lister(Protocol):
    """The part of the client that the watch needs."""

    def pages_of_nodes(self) -> AsyncIterator[list[Node]]: ...


class Watch:
    """The loop, and the door for push messages."""

    def __init__(
        self,
        client: Lister,
        cache: NodeCache,
        changes: Changes,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        after_list: Callable[[], Awaitable[None]] | None = None,
        started_anew: Callable[[], None] = lambda: None,
        moved_on: Callable[[], None] = lambda: None,
    ) -> None:
        """`after_list`: what is done each time that all nodes are known.

        `started_anew`: called where Ironic may have another database than before, for instance one from a backup.
        `moved_on`: called when more is known of the nodes than before.
        """
        self._moved_on = moved_on
        self._started_anew = started_anew
        self._now = now
        self._after_list = after_list
        self._client = client
        self._cache = cache
        self._changes = changes
        self._ledger = PushLedger()
        self._heard_at: float | None = None
        self._began: float | None = None
        self._complete = True
        self._patches: dict[str, bool] = {}
        self._list_wanted = asyncio.Event()
        self._missed = True
        self._told_overdue: set[tuple[str, str]] = set()
        self.listed = asyncio.Event()
        """Set once all nodes were listed for the first time."""

    @property
    def push_is_heard(self) -> bool:
        """Whether push can be relied on right now."""
        return self._is_recent and self._complete

    @property
    def _is_recent(self) -> bool:
        return self._heard_at is not None and _clock() - self._heard_at < PUSH_IS_SILENT_AFTER

    @property
    def notice(self) -> str:
        """What push lacks, as a sentence; "" while it is as it should be."""
        if self._began is None or _clock() - self._began < PUSH_IS_SILENT_AFTER:
            # Whoever has just started has not had the time to hear anything.
            return ""
        if not self._is_recent:
            return (
                "Ironic does not push: its nodes are listed every 2 s while something is in flight. Look whether the plugin "
                "ingot-ironic is loaded there, and whether Ironic can reach the operator"
            )
        lost = sorted(name for name, holds in self._patches.items() if not holds)
        if not lost:
            return ""
        slow = (
            ", and its nodes are listed every 2 s while something is in flight" if not self._complete else ""
        )
        return (
            f"the plugin inside Ironic works in part: {', '.join(lost)} did not take hold{slow}. This version of Ironic "
            "may be one that Ingot does not know; its log says more"
        )

    def take(self, message: PushMessage) -> None:
        """A push message: note what it says and wake whom it concerns."""
        # One whose hook is missing stays as it is with each message; what matters is whether it was away, or has it again.
        mended = message.complete and not self._complete
        was_silent = self._heard_at is not None and (mended or not self._is_recent)
        heard_before = self._heard_at is not None
        self._heard_at = _clock()
        self._complete = message.complete
        self._note_patches(message.patches)
        PUSH_IS_HEARD.set(self.push_is_heard)
        news = self._ledger.enter(message)
        for event in news.events:
            if event.deleted:
                before = self._cache.removed(event.uuid)
                self._announce(event.name or (before.name if before else None))
                continue
            node = self._cache.pushed(event.uuid, event.name, event.fields)
            self._announce(node.name if node else event.name)
        self._moved_on()
        if news.stranger and heard_before:
            self._started_anew()
        if news.missed or was_silent:
            PUSH_GAPS.inc()
            self.want_list(missed=True)

    def _note_patches(self, patches: dict[str, bool]) -> None:
        if not patches or patches == self._patches:
            return
        self._patches = dict(patches)
        for name, holds in patches.items():
            PATCHES.labels(name).set(holds)

    def want_list(self, *, missed: bool) -> None:
        if missed:
            self._missed = True
            self._cache.doubt_all()
        self._list_wanted.set()

    async def run(self) -> None:
        """Lists, for ever. Ironic being away is weather and only logged once."""
        away = False
        self._began = _clock()
        while True:
            self._list_wanted.clear()
            if away and not self.push_is_heard:
                # Where push is heard, a sender that is new tells of a start.
                self._started_anew()
            try:
                await self._list()
            except BackendError as error:
                if not away:
                    log.warning("Ironic's nodes cannot be listed: %s", error)
                away = self._missed = True
                self._cache.doubt_all()
                await asyncio.sleep(_jitter(RETRY))
                continue
            if away:
                log.info("Ironic answers again")
            away = False
            if self._after_list is not None:
                await self._after_list()
            await self._pause()

    async def _list(self) -> None:
        LISTS.inc()
        PUSH_IS_HEARD.set(self.push_is_heard)
        missed, self._missed = self._missed, False
        began = self._cache.moment()
        page_began, uuids, changed = began, set[str](), list[Node]()
        try:
            async for page in self._client.pages_of_nodes():
                uuids.update(node.uuid for node in page)
                changed += [node for node in page if self._cache.learned(node, page_began)]
                page_began = self._cache.moment()
        except BackendError:
            self._missed = missed
            raise
        changed += self._cache.listed(uuids, began)
        self.listed.set()
        if missed:
            self._changes.announce(EVERYTHING)
        for node in [*changed, *self._newly_overdue()]:
            self._announce(node.name)
        self._moved_on()

    def _announce(self, name: str | None) -> None:
        """Nodes of others have no name of ours, and nobody waits for them."""
        if key := host_key(name):
            self._changes.announce(key)

    def _newly_overdue(self) -> list[Node]:
        now = self._now()
        late = {(node.uuid, node.provision_state): node for node in self._cache if overdue(node, now)}
        new = [node for mark, node in late.items() if mark not in self._told_overdue]
        self._told_overdue = set(late)
        return new

    def _something_in_flight(self) -> bool:
        # What is doubted may be in flight: something was asked of it and nobody has told what came of it.
        return any(in_flight(node) or self._cache.is_doubted(node.uuid) for node in self._cache)

    async def _pause(self) -> None:
        """Until the next list is due: a missed event, the safety net, or the short step of a world without push."""
        until = _clock() + _jitter(SAFETY_NET)
        while (left := until - _clock()) > A_MOMENT:
            heard = self.push_is_heard
            busy = not heard and self._something_in_flight()
            try:
                async with asyncio.timeout(min(left, WITHOUT_PUSH)):
                    await self._list_wanted.wait()
                return
            except TimeoutError:
                if busy or (heard and not self.push_is_heard):
                    return


def _clock() -> float:
    return asyncio.get_running_loop().time()


def _jitter(seconds: float) -> float:
    return seconds * random.uniform(0.9, 1.1)  # noqa: S311 - spreads load, guards nothing
