"""The rules of an election by Lease: what a contender does next, given what it knows. No I/O, and the clock is handed in.

A record of somebody else is good for as long as it says, counted on our own clock from when we saw it change: never from the
times written in it. We lead until `renew_deadline` after the moment in which our last successful write was *sent*. Others saw
that write no sooner than it was sent, and wait the longer `duration` from then on. So however long requests and answers are
under way, get lost, or processes stand still, no two lead at the same time, as long as the clocks of two machines do not differ
in speed by more than the deadline differs from the duration (a third, by default). Every write names the version it was decided
on: of two who reach for an expired Lease, one is refused.

Beyond reach of any rule: a person who deletes the Lease, or writes another name into it, takes it away from who leads.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ingot.kube.election.leadership import Leadership
from ingot.kube.election.record import NOBODY, Record, micro_time

JITTER: Final = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds. What stands in a Lease is `duration`; the other two are this process's own business."""

    duration: float = 15.0
    """How long others wait after a renewal before they take over."""
    renew_deadline: float = 10.0
    """How long after a renewal we go on working without another one."""
    retry: float = 2.0
    """How long between two tries, to renew or to acquire; up to a fifth more, so that contenders do not march in step."""

    def __post_init__(self) -> None:
        if not (self.retry > 0 and self.retry * JITTER < self.renew_deadline < self.duration >= 1):
            raise ValueError(
                f"the Lease's times do not fit: duration {self.duration:g} s must be at least 1 and more than the renew "
                f"deadline {self.renew_deadline:g} s, and that more than {JITTER:g} times the retry period {self.retry:g} s"
            )

    def pause(self) -> float:
        return self.retry * random.uniform(1.0, JITTER)  # noqa: S311 - jitter


@dataclass(frozen=True, slots=True)
class Look:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Write:
    """Put this record in place of the version named; none: there is no Lease yet, make it."""

    record: Record
    version: str


@dataclass(frozen=True, slots=True)
class Wait:
    """It is somebody else's turn."""

    holder: str


@dataclass(frozen=True, slots=True)
class _Seen:
    record: Record
    version: str
    at: float
    """When we saw this version first."""


class Contest:
    """One contender. A try begins with `begin` and goes on with what `saw` answers; `wrote` and `refused` tell how it ended."""

    def __init__(
        self,
        identity: str,
        timing: Timing,
        leadership: Leadership,
        clock: Callable[[], float],
        *,
        wall_time: Callable[[], str] = micro_time,
    ) -> None:
        self._identity = identity
        self._timing = timing
        self._leadership = leadership
        self._clock = clock
        self._wall_time = wall_time
        self._seen: _Seen | None = None

    def begin(self) -> Look | Write:
        """Who leads knows the Lease: nobody else writes it. Everybody else looks first."""
        seen = self._seen
        if seen is not None and seen.record.holder == self._identity and self._leadership.held:
            return self._write(seen)
        return Look()

    def saw(self, record: Record | None, version: str = "") -> Write | Wait:
        """What the Lease says: at this version, or that there is none."""
        before = self._seen
        if record is None:
            if before is not None and self._bound(before):
                # Somebody removed it. Who leads may not have noticed, and works for as long as was promised.
                return Wait(before.record.holder)
            self._seen = None
            return self._write(None)
        # The record too: an API that was restored from a backup gives the same version to something else.
        if before is None or (before.version, before.record) != (version, record):
            self._seen = _Seen(record, version, self._clock())
        assert self._seen is not None
        if record.holder not in (self._identity, NOBODY) and self._leadership.held:
            self._leadership.end(f"the Lease is held by {record.holder}: somebody took it away")
        if self._bound(self._seen):
            return Wait(record.holder)
        return self._write(self._seen)

    def wrote(self, record: Record, version: str, *, sent: float) -> None:
        """Our write was accepted; `sent` is when it left, on our clock."""
        self._seen = _Seen(record, version, sent)
        if record.holder == self._identity:
            self._leadership.grant(sent + self._timing.renew_deadline)

    def refused(self) -> None:
        """Our write was not accepted, because the Lease is not what we thought: look at it first."""
        if self._seen is not None and self._seen.record.holder == self._identity:
            self._seen = None

    def release(self) -> Write | None:
        """What hands the Lease to the others at once; None for who has nothing to hand over. Work must have stopped before."""
        seen = self._seen
        if seen is None or seen.record.holder != self._identity:
            return None
        time = self._wall_time()
        return Write(
            replace(seen.record, holder=NOBODY, duration=1, acquired=time, renewed=time), seen.version
        )

    def _bound(self, seen: _Seen) -> bool:
        """Whether somebody else may still be working under this record."""
        if seen.record.holder in (self._identity, NOBODY):
            return False
        return self._clock() < seen.at + (seen.record.duration or self._timing.duration)

    def _write(self, seen: _Seen | None) -> Write:
        """Ours: a renewal keeps since when and how often; anything else is a change of who leads."""
        time = self._wall_time()
        fresh = Record(
            holder=self._identity, duration=math.ceil(self._timing.duration), acquired=time, renewed=time
        )
        if seen is None:
            return Write(fresh, "")
        was = seen.record
        if was.holder == self._identity:
            return Write(replace(fresh, acquired=was.acquired, transitions=was.transitions), seen.version)
        return Write(replace(fresh, transitions=was.transitions + 1), seen.version)
