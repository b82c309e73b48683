"""The laws of the controller: never two workers on a key, no wake is lost, no worker sleeps through work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from ingot.api.meta import Key
from ingot.kube import Again, Backoff, Conflict, Controller, Done

KEYS = [Key("rack", name) for name in "abcde"]
ENDINGS = st.sampled_from(["done", "again", "later", "conflict", "failure", "cancelled"])
RUN = st.tuples(ENDINGS, st.integers(0, 3))
"""How one reconcile ends, and how often it waits before that: not at all, or for some turns of the loop."""
STEP = st.one_of(
    st.tuples(st.just("wake"), st.sampled_from(KEYS), st.booleans()),
    st.tuples(st.just("turns"), st.integers(1, 4), st.just(False)),
    st.tuples(st.just("stop and start"), st.booleans(), st.just(False)),
)


@dataclass
class Shift:
    """A controller at work, and a book of who was woken and looked at since."""

    runs: list[tuple[str, int]]
    busy: set[Key] = field(default_factory=set)
    owed: set[Key] = field(default_factory=set)
    in_two_hands: set[Key] = field(default_factory=set)

    async def reconcile(self, key: Key) -> Done | Again:
        # Noted, because an assertion in here would be a failure of the reconcile, which is tried again.
        self.in_two_hands |= {key} & self.busy
        self.busy.add(key)
        self.owed.discard(key)
        ending, turns = self.runs.pop() if self.runs else ("done", 0)
        try:
            for _ in range(turns):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.owed.add(key)  # it did not come to its end, so it is owed again
            raise
        finally:
            self.busy.discard(key)
        return self.end(key, ending)

    def end(self, key: Key, ending: str) -> Done | Again:
        if ending == "done":
            return Done()
        self.owed.add(key)
        match ending:
            case "conflict":
                raise Conflict(409, "Conflict", "modified")
            case "failure":
                raise ValueError("a bad day")
            case "cancelled":
                raise asyncio.CancelledError
        return Again(0 if ending == "again" else 0.001, "not yet")


async def live(workers: int, runs: list[tuple[str, int]], steps: list[tuple[str, object, bool]]) -> None:
    shift = Shift(runs)
    controller = Controller("laws", shift.reconcile, workers=workers, backoff=Backoff(0.0, 0.0), grace=0.0)
    task = asyncio.create_task(controller.run())
    for what, how, low in steps:
        match what, how:
            case "wake", Key() as key:
                controller.wake(key, low=low)
                shift.owed.add(key)
            case "turns", int(turns):
                for _ in range(turns):
                    await asyncio.sleep(0)
            case "stop and start", _:
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled(), task.exception()
                task = asyncio.create_task(controller.run())
    async with asyncio.timeout(60):
        while shift.owed or shift.busy:  # noqa: ASYNC110 - the end of all work has no event of its own
            await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled(), task.exception()
    assert not shift.in_two_hands


@settings(max_examples=150, deadline=None)
@given(
    workers=st.integers(1, 4),
    runs=st.lists(RUN, max_size=20),
    steps=st.lists(STEP, min_size=1, max_size=25),
)
def test_every_wake_is_answered_and_no_key_is_in_two_hands(
    workers: int, runs: list[tuple[str, int]], steps: list[tuple[str, object, bool]]
):
    asyncio.run(live(workers, runs, steps))
