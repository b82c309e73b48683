"""The queue: its promises hold after any sequence of calls."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ingot.api.meta import Key
from ingot.kube.queue import KeyQueue

ROW = 2
KEYS = [Key("default", name) for name in "abcdef"]
ANY_KEY = st.sampled_from(KEYS)


class QueuePromises(RuleBasedStateMachine):
    """A model that knows only what was asked for: who must be handed out, and until when a timer may wait."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = KeyQueue(row=ROW)
        self.now = 0.0
        self.passed_over = 0
        """How often in a row an urgent key was handed out while a low one waited."""
        self.held: set[Key] = set()
        self.owed: dict[Key, bool] = {}
        """Woken and not handed out since; the value says whether any of the wakes was urgent."""
        self.timers: dict[Key, float] = {}

    def _fire(self) -> None:
        for key, due in list(self.timers.items()):
            if due <= self.now:
                del self.timers[key]
                self.owed[key] = True

    @rule(key=ANY_KEY, low=st.booleans())
    def wake(self, key: Key, low: bool) -> None:
        self._fire()
        self.queue.wake(key, self.now, low=low)
        self.timers.pop(key, None)
        self.owed[key] = self.owed.get(key, False) or not low

    @rule(key=ANY_KEY, delay=st.integers(0, 20))
    def later(self, key: Key, delay: int) -> None:
        self._fire()
        self.queue.later(key, self.now, delay=delay)
        if key not in self.owed:
            self.timers[key] = self.now + delay

    @rule(seconds=st.integers(1, 10))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        self._fire()
        taken = self.queue.pop(self.now)
        free = {key for key in self.owed if key not in self.held}
        if taken is None:
            assert not free, "a key that is due was not handed out"
            return
        key, waited = taken
        assert key in free, "handed out a key that is held, or that nobody asked for"
        assert waited >= 0
        urgent = {other for other in free if self.owed[other]}
        low = free - urgent
        if key in urgent and low:
            self.passed_over += 1
            assert self.passed_over <= ROW, "a low key starves"
        elif key in low:
            assert not urgent or self.passed_over == ROW, "a low key was handed out before an urgent one"
            self.passed_over = 0
        else:
            self.passed_over = 0
        del self.owed[key]
        self.held.add(key)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.held)))
        self.held.discard(key)
        self._fire()
        self.queue.done(key, self.now)

    @invariant()
    def the_books_agree(self) -> None:
        assert self.queue.active == self.held

    def teardown(self) -> None:
        """Nothing is lost: in the end everything that was asked for has been handed out."""
        for key in self.held:
            self.queue.done(key, self.now)
        self.held.clear()
        self.now += 1000
        self._fire()
        handed_out = set()
        while (taken := self.queue.pop(self.now)) is not None:
            handed_out.add(taken[0])
        assert handed_out == set(self.owed)
        assert len(self.queue) == 0
        assert self.queue.next_due() is None


TestQueuePromises = QueuePromises.TestCase
TestQueuePromises.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)

A, B, C, D, *_ = KEYS


def drained(queue: KeyQueue, now: float = 0.0) -> list[Key]:
    keys = []
    while (taken := queue.pop(now)) is not None:
        keys.append(taken[0])
        queue.done(taken[0], now)
    return keys


def test_waking_many_times_is_waking_once():
    queue = KeyQueue()
    for _ in range(5):
        queue.wake(A, 0)
    assert drained(queue) == [A]


def test_changes_go_before_the_initial_list_and_in_their_order():
    queue = KeyQueue()
    for key in (A, B, C):
        queue.wake(key, 0, low=True)
    queue.wake(D, 0)
    queue.wake(C, 0)
    assert drained(queue) == [D, C, A, B]


def test_a_low_wake_does_not_demote_an_urgent_one():
    queue = KeyQueue()
    queue.wake(A, 0, low=True)
    queue.wake(B, 0)
    queue.wake(B, 0, low=True)
    assert drained(queue) == [B, A]


def test_a_key_woken_in_flight_is_handed_out_after_it_not_during():
    queue = KeyQueue()
    queue.wake(A, 0)
    assert queue.pop(0) == (A, 0)
    queue.wake(A, 1)
    assert queue.pop(1) is None
    assert queue.done(A, 2)
    assert queue.pop(2) == (A, 0)


def test_a_later_timer_replaces_an_earlier_one_and_the_other_way_round():
    queue = KeyQueue()
    queue.later(A, 0, delay=5)
    queue.later(A, 0, delay=50)
    assert queue.next_due() == 50
    queue.later(A, 0, delay=7)
    assert queue.next_due() == 7
    assert queue.waiting == 1
    assert drained(queue, 60) == [A]


def test_a_wake_ends_the_waiting():
    queue = KeyQueue()
    queue.later(A, 0, delay=50)
    queue.wake(A, 1)
    assert queue.next_due() is None
    assert drained(queue, 100) == [A]


def test_the_time_in_the_queue_counts_from_the_moment_it_was_due():
    queue = KeyQueue()
    queue.later(A, 0, delay=5)
    assert queue.pop(8) == (A, 3)
    queue.wake(B, 10, low=True)
    queue.wake(B, 11)
    assert queue.pop(12) == (B, 2)


def test_cancelled_timers_do_not_pile_up():
    queue = KeyQueue()
    for number in range(10_000):
        queue.later(A, 0, delay=1000 + number)
        queue.wake(A, 0)
        assert drained(queue) == [A]
    assert len(queue._heap) < 200


def test_cancelled_timers_do_not_pile_up_behind_one_that_waits():
    queue = KeyQueue()
    queue.later(B, 0, delay=500)
    for number in range(10_000):
        queue.later(A, 0, delay=1000 + number)
        queue.wake(A, 0)
        assert drained(queue) == [A]
    queue.later(A, 0, delay=700)
    assert len(queue._heap) < 200
    assert queue.next_due() == 500
    assert (queue.pop(500), queue.pop(700)) == ((B, 0), (A, 0))


def test_low_keys_have_their_turn_while_urgent_ones_keep_coming():
    queue = KeyQueue(row=3)
    for key in (A, B):
        queue.wake(key, 0, low=True)
    handed_out = []
    for _ in range(10):
        queue.wake(C, 0)
        taken = queue.pop(0)
        assert taken is not None
        handed_out.append(taken[0])
        queue.done(taken[0], 0)
    assert handed_out == [C, C, C, A, C, C, C, B, C, C]
