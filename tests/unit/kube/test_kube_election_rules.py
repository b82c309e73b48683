"""The rules of an election, on a clock that the test holds: who may lead, until when, and what is written."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingot.kube.election import Leadership, Timing
from ingot.kube.election.contest import Contest, Look, Wait, Write
from ingot.kube.election.record import NOBODY, Lease, Record, micro_time
from ingot.kube.errors import NotLeading

TIMING = Timing()


class Clock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Contender:
    """A contender whose API answers at once, unless the test says otherwise."""

    def __init__(self, name: str, api: Api, clock: Callable[[], float], timing: Timing = TIMING) -> None:
        self.name = name
        self.api = api
        self.clock = clock
        self.leadership = Leadership(clock)
        self.contest = Contest(name, timing, self.leadership, clock, wall_time=lambda: "any time")

    def attempt(self) -> Wait | Write:
        """One try, as the elector makes it; what it came to."""
        step: Look | Write | Wait = self.contest.begin()
        if isinstance(step, Look):
            step = self.contest.saw(*self.api.read())
        assert not isinstance(step, Look)
        if isinstance(step, Write):
            sent = self.clock()
            version = self.api.write(step)
            if version:
                self.contest.wrote(step.record, version, sent=sent)
            else:
                self.contest.refused()
        return step

    @property
    def held(self) -> bool:
        return self.leadership.held


@dataclass
class Api:
    """The Lease, written only by who knows its version."""

    record: Record | None = None
    version: int = 0
    history: list[Record] = field(default_factory=list)

    def read(self) -> tuple[Record | None, str]:
        return self.record, str(self.version) if self.record else ""

    def write(self, write: Write) -> str:
        expected = str(self.version) if self.record else ""
        if write.version != expected:
            return ""
        self.version += 1
        self.record = write.record
        self.history.append(write.record)
        return str(self.version)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def api() -> Api:
    return Api()


def contenders(api: Api, clock: Clock, *names: str) -> list[Contender]:
    return [Contender(name, api, clock) for name in names]


def test_the_first_one_leads_and_the_second_stands_by(api: Api, clock: Clock):
    a, b = contenders(api, clock, "a", "b")
    a.attempt()
    assert b.attempt() == Wait("a")
    assert (a.held, b.held) == (True, False)


def test_who_renews_leads_for_as_long_as_it_does(api: Api, clock: Clock):
    a, b = contenders(api, clock, "a", "b")
    for _ in range(100):
        a.attempt()
        assert b.attempt() == Wait("a")
        clock.now += 9
        assert a.held
    assert {record.acquired for record in api.history} == {"any time"}
    assert [record.transitions for record in api.history] == [0] * 100


def test_without_a_renewal_work_ends_at_the_deadline_and_others_begin_at_the_duration(api: Api, clock: Clock):
    a, b = contenders(api, clock, "a", "b")
    a.attempt()
    b.attempt()
    clock.now += 9.999
    assert a.held
    clock.now += 0.001
    assert not a.held
    assert a.leadership.over
    clock.now += 4.999
    assert b.attempt() == Wait("a")
    clock.now += 0.001
    b.attempt()
    assert b.held
    assert api.history[-1].transitions == 1


def test_leadership_counts_from_when_the_renewal_was_sent(api: Api, clock: Clock):
    [a] = contenders(api, clock, "a")
    step = a.contest.saw(None)
    assert isinstance(step, Write)
    sent = clock.now
    clock.now += 9
    a.contest.wrote(step.record, "1", sent=sent)
    assert a.held
    clock.now += 1
    assert not a.held


def test_an_answer_that_comes_after_the_deadline_gives_no_leadership(api: Api, clock: Clock):
    [a] = contenders(api, clock, "a")
    step = a.contest.saw(None)
    assert isinstance(step, Write)
    sent = clock.now
    clock.now += 10
    a.contest.wrote(step.record, "1", sent=sent)
    assert not a.held
    assert not a.leadership.over


def test_what_was_lost_does_not_come_back_with_a_late_answer(api: Api, clock: Clock):
    [a] = contenders(api, clock, "a")
    a.attempt()
    clock.now += 8
    step = a.contest.begin()
    assert isinstance(step, Write)
    sent = clock.now
    clock.now += 4
    a.contest.wrote(step.record, "2", sent=sent)
    assert not a.held
    with pytest.raises(NotLeading, match="not renewed in time"):
        a.leadership.check()


def test_expiry_is_judged_by_when_we_saw_the_change_whatever_times_the_lease_tells(api: Api, clock: Clock):
    past = Record(
        holder="x",
        duration=15,
        acquired="1999-01-01T00:00:00.000000Z",
        renewed="1999-01-01T00:00:00.000000Z",
        transitions=7,
    )
    api.record, api.version = past, 4
    [a] = contenders(api, clock, "a")
    assert a.attempt() == Wait("x")
    clock.now += 14
    assert a.attempt() == Wait("x")
    api.record, api.version = replace(past, renewed="1999-01-01T00:00:01.000000Z"), 5
    clock.now += 14
    assert a.attempt() == Wait("x")
    clock.now += 15
    a.attempt()
    assert a.held
    assert api.record.transitions == 8


def test_a_lease_says_itself_how_long_it_is_good(api: Api, clock: Clock):
    api.record, api.version = Record(holder="x", duration=60, acquired="", renewed=""), 1
    [a] = contenders(api, clock, "a")
    a.attempt()
    clock.now += 59
    assert a.attempt() == Wait("x")
    clock.now += 1
    a.attempt()
    assert a.held


def test_a_version_that_a_restored_api_gives_out_again_is_a_new_one(api: Api, clock: Clock):
    api.record, api.version = Record(holder="x", duration=15, acquired="", renewed="a"), 7
    [a] = contenders(api, clock, "a")
    a.attempt()
    clock.now += 15
    api.record = Record(holder="y", duration=15, acquired="", renewed="b")
    assert a.attempt() == Wait("y")


def test_of_two_who_reach_for_it_together_one_is_refused(api: Api, clock: Clock):
    a, b = contenders(api, clock, "a", "b")
    first, second = a.contest.saw(*api.read()), b.contest.saw(*api.read())
    assert isinstance(first, Write)
    assert isinstance(second, Write)
    assert api.write(first)
    a.contest.wrote(first.record, "1", sent=clock.now)
    assert not api.write(second)
    b.contest.refused()
    assert b.attempt() == Wait("a")
    assert not b.held


def test_a_renewal_whose_answer_was_lost_is_found_again(api: Api, clock: Clock):
    [a] = contenders(api, clock, "a")
    a.attempt()
    step = a.contest.begin()
    assert isinstance(step, Write)
    api.write(step)
    clock.now += 5
    a.attempt()
    assert isinstance(a.contest.begin(), Look)
    a.attempt()
    clock.now += 9
    assert a.held
    assert api.record is not None
    assert api.record.transitions == 0


def test_a_lease_that_was_taken_away_ends_the_work_at_once(api: Api, clock: Clock):
    [a] = contenders(api, clock, "a")
    a.attempt()
    assert api.record is not None
    api.record, api.version = replace(api.record, holder="somebody"), 9
    a.attempt()
    assert a.attempt() == Wait("somebody")
    assert not a.held
    assert "somebody took it away" in a.leadership.why_over


def test_a_lease_that_was_deleted_is_made_anew_by_who_holds_it(api: Api, clock: Clock):
    a, b = contenders(api, clock, "a", "b")
    a.attempt()
    b.attempt()
    api.record = None
    assert b.attempt() == Wait("a"), "who leads may not have noticed"
    a.attempt()
    a.attempt()
    assert a.held
    assert b.attempt() == Wait("a")


def test_a_lease_that_was_deleted_is_free_once_it_would_have_expired(api: Api, clock: Clock):
    a, b = contenders(api, clock, "a", "b")
    a.attempt()
    b.attempt()
    api.record = None
    clock.now += 15
    b.attempt()
    assert (a.held, b.held) == (False, True)


def test_a_release_lets_the_next_one_in_at_once(api: Api, clock: Clock):
    a, b = contenders(api, clock, "a", "b")
    a.attempt()
    b.attempt()
    a.leadership.end("stopping")
    write = a.contest.release()
    assert write is not None
    assert api.write(write)
    assert api.record is not None
    assert (api.record.holder, api.record.duration) == (NOBODY, 1)
    b.attempt()
    assert (a.held, b.held) == (False, True)
    assert api.record.transitions == 1


def test_who_does_not_hold_it_has_nothing_to_release(api: Api, clock: Clock):
    a, b = contenders(api, clock, "a", "b")
    assert b.contest.release() is None
    a.attempt()
    b.attempt()
    assert b.contest.release() is None


def test_a_machine_that_slept_leads_no_more_when_it_wakes(api: Api, clock: Clock):
    a, b = contenders(api, clock, "a", "b")
    a.attempt()
    b.attempt()
    clock.now += 3600
    assert not a.held
    b.attempt()
    assert b.held


def test_a_standby_that_slept_does_not_take_what_was_renewed_meanwhile(api: Api, clock: Clock):
    a, b = contenders(api, clock, "a", "b")
    a.attempt()
    b.attempt()
    for _ in range(10):
        clock.now += 5
        a.attempt()
    assert b.attempt() == Wait("a")
    assert a.held


@pytest.mark.parametrize(
    ("duration", "renew_deadline", "retry"),
    [(15, 15, 2), (15, 20, 2), (15, 10, 9), (15, 10, 0), (0.5, 0.4, 0.1), (10, 2.4, 2)],
)
def test_times_that_cannot_work_are_refused(duration: float, renew_deadline: float, retry: float):
    with pytest.raises(ValueError, match="the Lease's times do not fit"):
        Timing(duration=duration, renew_deadline=renew_deadline, retry=retry)


def test_a_fraction_of_a_second_is_promised_to_others_as_a_whole_one(api: Api, clock: Clock):
    a = Contender("a", api, clock, Timing(duration=1.5, renew_deadline=1.0, retry=0.2))
    a.attempt()
    assert api.record is not None
    assert api.record.duration == 2


def test_times_are_written_with_six_digits():
    assert len(micro_time()) == len("2026-11-16T01:02:03.000000Z")
    assert micro_time().endswith("Z")


def test_a_lease_with_holes_can_be_read():
    assert Record.of(Lease()) == Record(holder=NOBODY, duration=0, acquired="", renewed="")


# The law


@dataclass(order=True)
class Arrival:
    """Something that happens at a real moment: a request reaches the API, or an answer a contender."""

    at: float
    number: int
    act: Callable[[], None] = field(compare=False)


class Process(Contender):
    """A contender with a clock and a fortune of its own: an unlucky one is slow, cut off, and held up at the worst moments."""

    def __init__(self, world: World, name: str) -> None:
        self.luck = world.random
        trouble = world.trouble if self.luck.random() < 0.5 else CALM
        self.losses, self.slowest, self.longest_stall = trouble
        speed = self.luck.uniform(1 - world.drift, 1 + world.drift)
        offset = self.luck.uniform(-1e6, 1e6)
        super().__init__(name, world.api, lambda: offset + speed * world.now)

    def loses(self) -> bool:
        return self.luck.random() < self.losses

    def delay(self) -> float:
        return self.luck.choice([0.0, 0.01, self.luck.uniform(0, self.slowest)])

    def pause(self) -> float:
        """Until its next try. Its thread may get no time for longer than the deadline, or than the duration."""
        return self.luck.choice([2.0, 2.4, self.luck.uniform(2, max(2.4, self.longest_stall))])


Trouble = tuple[float, float, float]
"""What share of messages is lost, how long one is under way, how long a process stands still."""
CALM: Trouble = (0.0, 0.05, 0.0)


class World:
    """Processes that contend, one moment after the other; between any two moments it is looked who leads."""

    def __init__(
        self, seed: int, count: int, *, drift: float = 0.0, trouble: Trouble = CALM, stops: float = 0.0
    ) -> None:
        self.random = random.Random(seed)
        self.stops = stops
        self.drift = drift
        self.trouble = trouble
        self.now = 0.0
        self.api = Api()
        self.queue: list[Arrival] = []
        self.number = 0
        self.terms = 0
        self.who = [Process(self, f"first-{index}") for index in range(count)]

    def run(self, until: float) -> None:
        for process in self.who:
            self._at(self.random.uniform(0, 5), partial(self._try, process))
        while self.queue and self.queue[0].at < until:
            arrival = heapq.heappop(self.queue)
            self._look_between(arrival.at)
            self.now = arrival.at
            arrival.act()
            self._check()

    def _at(self, delay: float, act: Callable[[], None]) -> None:
        self.number += 1
        heapq.heappush(self.queue, Arrival(self.now + delay, self.number, act))

    def _try(self, process: Process) -> None:
        """One try, in pieces: the process may stand still and the network be slow between any two of them."""
        if process.leadership.over:
            # It is restarted as somebody new.
            self.who.remove(process)
            self.who.append(process := Process(self, f"later-{self.number}"))
        self._at(process.pause(), lambda: self._try(process))
        step = process.contest.begin()
        if isinstance(step, Write) and self.random.random() < self.stops:
            # It is stopped, and hands the Lease over: the write may be under way for long, or get lost.
            process.leadership.end("stopped")
            released = process.contest.release()
            assert released is not None
            self._send(process, released)
        elif isinstance(step, Write):
            self._send(process, step)
        elif not process.loses():
            self._at(process.delay(), lambda: self._read(process))

    def _read(self, process: Process) -> None:
        found = self.api.read()
        if not process.loses():
            self._at(process.delay(), lambda: self._seen(process, found))

    def _seen(self, process: Process, found: tuple[Record | None, str]) -> None:
        step = process.contest.saw(*found)
        if isinstance(step, Write):
            self._send(process, step)

    def _send(self, process: Process, write: Write) -> None:
        sent = process.clock()
        if not process.loses():
            self._at(process.delay(), lambda: self._arrive(process, write, sent))

    def _arrive(self, process: Process, write: Write, sent: float) -> None:
        version = self.api.write(write)
        if not process.loses():
            self._at(process.delay(), lambda: self._answer(process, write, version, sent))

    def _answer(self, process: Process, write: Write, version: str, sent: float) -> None:
        before = process.held
        if version:
            process.contest.wrote(write.record, version, sent=sent)
        else:
            process.contest.refused()
        self.terms += process.held and not before

    def _look_between(self, until: float) -> None:
        start = self.now
        for step in range(1, 4):
            self.now = start + (until - start) * step / 4
            self._check()

    def _check(self) -> None:
        leading = [process.name for process in self.who if process.held]
        assert len(leading) <= 1, f"at {self.now:.3f} s {leading} lead together"


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(2, 5),
    drift=st.sampled_from([0.0, 0.05, 0.15]),
    trouble=st.tuples(
        st.sampled_from([0.0, 0.1, 0.4]),
        st.sampled_from([0.5, 5.0, 12.0, 30.0]),
        st.sampled_from([0.0, 12.0, 40.0]),
    ),
)
def test_never_do_two_lead_at_the_same_time(seed: int, count: int, drift: float, trouble: Trouble):
    World(seed, count, drift=drift, trouble=trouble, stops=0.1).run(until=200)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_on_a_good_day_somebody_leads_and_goes_on(seed: int):
    world = World(seed, 3)
    world.run(until=200)
    assert world.terms == 1
    assert len([process for process in world.who if process.held]) == 1
