"""The controller: who runs when, by a clock that tests can wind."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable

import pytest
from prometheus_client import REGISTRY

from ingot.api.meta import Key
from ingot.kube import Again, Backoff, Conflict, Controller, Done, Unavailable

A, B = Key("rack", "a"), Key("rack", "b")
EXACT = Backoff(first=1.0, limit=60.0)


class Running:
    """A controller at work; use it with `async with`."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller

    async def __aenter__(self) -> Controller:
        self.task = asyncio.create_task(self.controller.run())
        await asyncio.sleep(0)
        return self.controller

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        assert self.task.cancelled(), self.task.exception()


class Diary:
    """A reconcile that notes when it ran and answers from a script; after the script it is done."""

    def __init__(self, *answers: Done | Again | BaseException) -> None:
        self.answers = list(answers)
        self.runs: list[tuple[str, float]] = []

    async def __call__(self, key: Key) -> Done | Again:
        self.runs.append((key.name, asyncio.get_running_loop().time()))
        answer = self.answers.pop(0) if self.answers else Done()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    @property
    def gaps(self) -> list[float]:
        times = [at for _, at in self.runs]
        return [round(later - earlier, 6) for earlier, later in itertools.pairwise(times)]


@pytest.mark.looptime
async def test_a_wake_leads_to_one_reconcile():
    diary = Diary()
    async with Running(Controller("t", diary)) as controller:
        controller.wake(A)
        controller.wake(A)
        controller.wake(B)
        await asyncio.sleep(100)
    assert [name for name, _ in diary.runs] == ["a", "b"]


@pytest.mark.looptime
async def test_what_was_woken_before_the_start_is_not_lost():
    diary = Diary()
    controller = Controller("t", diary)
    controller.wake(A)
    async with Running(controller):
        await asyncio.sleep(1)
    assert [name for name, _ in diary.runs] == ["a"]


@pytest.mark.looptime
async def test_again_looks_again_after_that_time_and_a_little():
    diary = Diary(Again(100, "the disk is being written"))
    async with Running(Controller("t", diary)) as controller:
        controller.wake(A)
        await asyncio.sleep(1000)
    assert len(diary.gaps) == 1
    assert 100 <= diary.gaps[0] <= 110


@pytest.mark.looptime
async def test_a_wake_does_not_wait_for_the_timer_and_ends_it():
    diary = Diary(Again(100, "waiting"))
    async with Running(Controller("t", diary)) as controller:
        controller.wake(A)
        await asyncio.sleep(5)
        controller.wake(A)
        await asyncio.sleep(1000)
    assert len(diary.runs) == 2
    assert diary.gaps[0] == pytest.approx(5, abs=0.1)


@pytest.mark.looptime
async def test_a_thousand_timers_do_not_fall_due_together():
    times: dict[Key, list[float]] = {}

    async def poll(key: Key) -> Done | Again:
        times.setdefault(key, []).append(asyncio.get_running_loop().time())
        return Again(30, "poll") if len(times[key]) < 2 else Done()

    async with Running(Controller("t", poll)) as controller:
        for number in range(1000):
            controller.wake(Key("rack", str(number)))
        await asyncio.sleep(60)
    second = [runs[1] - runs[0] for runs in times.values()]
    assert len(second) == 1000
    assert max(second) - min(second) > 2


@pytest.mark.looptime
async def test_failures_in_a_row_double_the_wait_up_to_the_limit():
    diary = Diary(*[ValueError("boom")] * 10)
    async with Running(Controller("t", diary, backoff=EXACT)) as controller:
        controller.wake(A)
        await asyncio.sleep(1000)
    expected = [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    assert len(diary.gaps) == len(expected)
    for gap, longest in zip(diary.gaps, expected, strict=True):
        assert 0.75 * longest <= gap <= longest + 0.01


@pytest.mark.looptime
async def test_success_resets_the_wait():
    diary = Diary(
        ValueError("1"), ValueError("2"), ValueError("3"), Again(500, "well"), ValueError("4"), Done()
    )
    async with Running(Controller("t", diary, backoff=EXACT)) as controller:
        controller.wake(A)
        await asyncio.sleep(2000)
    assert diary.gaps[-1] <= 1.01


@pytest.mark.looptime
async def test_one_key_that_fails_does_not_hold_up_another():
    async def reconcile(key: Key) -> Done | Again:
        if key == A:
            raise ValueError("boom")
        done.append(asyncio.get_running_loop().time())
        return Done()

    done: list[float] = []
    async with Running(Controller("t", reconcile, workers=1)) as controller:
        controller.wake(A)
        await asyncio.sleep(300)
        start = asyncio.get_running_loop().time()
        controller.wake(B)
        await asyncio.sleep(300)
    assert done == [pytest.approx(start, abs=0.1)]


@pytest.mark.looptime
async def test_a_conflict_runs_again_at_once_and_quietly(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    diary = Diary(Conflict(409, "Conflict", "the object has been modified"))
    async with Running(Controller("t", diary)) as controller:
        controller.wake(A)
        await asyncio.sleep(1)
    assert diary.gaps == [0]
    assert caplog.text == ""


@pytest.mark.looptime
async def test_a_row_of_conflicts_is_slowed_down():
    diary = Diary(*[Conflict(409, "Conflict", "modified")] * 4)
    async with Running(Controller("t", diary, backoff=EXACT)) as controller:
        controller.wake(A)
        await asyncio.sleep(100)
    assert diary.gaps[0] == 0
    assert all(gap >= 1.5 for gap in diary.gaps[1:])
    assert len(diary.runs) == 5


@pytest.mark.looptime
async def test_an_error_is_logged_with_its_key_and_without_secrets(caplog: pytest.LogCaptureFixture):
    diary = Diary(ValueError("login with password=hunter2 failed"))
    async with Running(Controller("hosts", diary)) as controller:
        controller.wake(A)
        await asyncio.sleep(1)
    assert "hosts rack/a: failed 1 in a row" in caplog.text
    assert "Traceback" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.looptime
async def test_what_the_api_said_is_one_line(caplog: pytest.LogCaptureFixture):
    diary = Diary(Unavailable(503, "ServiceUnavailable", "starting up"))
    async with Running(Controller("hosts", diary)) as controller:
        controller.wake(A)
        await asyncio.sleep(1)
    assert "starting up (HTTP 503 ServiceUnavailable)" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.looptime
async def test_a_cancellation_that_slips_out_of_a_reconcile_is_a_failure_like_others():
    diary = Diary(asyncio.CancelledError())
    async with Running(Controller("t", diary, workers=1)) as controller:
        controller.wake(A)
        await asyncio.sleep(1)
    assert len(diary.runs) == 2


@pytest.mark.looptime
async def test_never_two_workers_on_one_key_and_a_wake_in_flight_runs_after():
    busy: set[Key] = set()
    runs: list[Key] = []

    async def reconcile(key: Key) -> Done | Again:
        assert key not in busy
        busy.add(key)
        await asyncio.sleep(1)
        busy.discard(key)
        runs.append(key)
        return Done()

    async with Running(Controller("t", reconcile, workers=4)) as controller:
        for _ in range(8):
            controller.wake(A)
            controller.wake(B)
            await asyncio.sleep(0.3)
        await asyncio.sleep(10)
    assert runs.count(A) == runs.count(B)
    assert 3 <= runs.count(A) <= 4


@pytest.mark.looptime
async def test_a_burst_uses_all_workers_and_not_one_more():
    now_running = highest = 0

    async def reconcile(key: Key) -> Done | Again:
        nonlocal now_running, highest
        now_running += 1
        highest = max(highest, now_running)
        await asyncio.sleep(1)
        now_running -= 1
        return Done()

    async with Running(Controller("t", reconcile, workers=5)) as controller:
        start = asyncio.get_running_loop().time()
        for number in range(20):
            controller.wake(Key("rack", str(number)))
        await asyncio.sleep(0.5)
        assert highest == 5
        await asyncio.sleep(3.6)
        assert now_running == 0
        assert asyncio.get_running_loop().time() - start < 4.5
    assert highest == 5


async def test_timers_that_fall_due_together_use_all_workers():
    seen: set[Key] = set()
    running: set[Key] = set()
    release = asyncio.Event()

    async def reconcile(key: Key) -> Done | Again:
        if key not in seen:
            seen.add(key)
            return Again(0.1, "soon")
        running.add(key)
        await release.wait()
        return Done()

    async with Running(Controller("t", reconcile, workers=4)) as controller:
        for number in range(4):
            controller.wake(Key("rack", str(number)))
        await asyncio.sleep(0.02)
        # The loop is held up until all four are overdue: one ring of the alarm for all of them.
        time.sleep(0.3)  # noqa: ASYNC251
        async with asyncio.timeout(60):
            while len(running) < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        release.set()


async def test_reconciles_that_never_wait_leave_the_loop_to_others():
    async def reconcile(key: Key) -> Done | Again:
        busy_until = time.perf_counter() + 0.001
        while time.perf_counter() < busy_until:
            pass
        done.append(key)
        return Done()

    done: list[Key] = []
    seen_by_others: list[int] = []
    controller = Controller("t", reconcile, workers=8)
    for number in range(300):
        controller.wake(Key("rack", str(number)))
    async with Running(controller):
        while len(done) < 300:
            seen_by_others.append(len(done))
            await asyncio.sleep(0)
    # Others had a turn again and again, not only when all was done; how often is the machine's affair.
    assert len(set(seen_by_others)) >= 10


@pytest.mark.looptime
async def test_a_reconcile_in_flight_may_end_when_the_controller_stops():
    ended: list[Key] = []

    async def reconcile(key: Key) -> Done | Again:
        await asyncio.sleep(3)
        ended.append(key)
        return Done()

    controller = Controller("t", reconcile, workers=1)
    async with Running(controller):
        controller.wake(A)
        controller.wake(B)
        await asyncio.sleep(1)
    assert ended == [A]


@pytest.mark.looptime
async def test_one_that_does_not_end_is_stopped_and_runs_again_with_the_next_start():
    started: list[Key] = []

    async def reconcile(key: Key) -> Done | Again:
        started.append(key)
        await asyncio.sleep(1000)
        return Done()

    controller = Controller("t", reconcile, grace=5)
    begin = asyncio.get_running_loop().time()
    async with Running(controller):
        controller.wake(A)
        await asyncio.sleep(1)
    assert asyncio.get_running_loop().time() - begin == pytest.approx(6, abs=0.2)
    async with Running(controller):
        await asyncio.sleep(1)
    assert started == [A, A]


@pytest.mark.looptime
async def test_the_queue_length_is_a_metric():
    hold = asyncio.Event()

    async def reconcile(key: Key) -> Done | Again:
        await hold.wait()
        return Done()

    def length() -> float | None:
        return REGISTRY.get_sample_value("workqueue_depth", {"name": "measured"})

    async with Running(Controller("measured", reconcile, workers=1)) as controller:
        for number in range(5):
            controller.wake(Key("rack", str(number)))
        await asyncio.sleep(1)
        assert length() == 4
        hold.set()
        await asyncio.sleep(1)
        assert length() == 0


@pytest.mark.parametrize(
    ("failures", "longest"), [(1, 0.005), (2, 0.01), (5, 0.08), (14, 40.96), (15, 60), (10_000, 60)]
)
def test_the_default_back_off_is_five_milliseconds_doubling_to_a_minute(failures: int, longest: float):
    backoff = Backoff()
    assert backoff.longest(failures) == pytest.approx(longest)
    delays: Callable[[], float] = lambda: backoff.delay(failures)  # noqa: E731
    assert all(0.75 * longest <= delays() <= longest for _ in range(50))
