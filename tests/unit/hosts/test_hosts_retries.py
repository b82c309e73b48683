"""A failed host is tried again after a growing pause, and at once when its cause changes."""

import pytest

from ingot.api.meta import Key
from ingot.hosts.retries import Retries, pause

HOST = Key("rack", "h1")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("failures", "minutes"),
    [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (8, 256), (9, 512), (10, 512), (99, 512)],
)
def test_the_pause_doubles_up_to_a_limit_and_is_shortened_by_up_to_a_half(
    failures: int, minutes: int
) -> None:
    assert pause(failures, chance=lambda: 0.0) == minutes * 60
    assert pause(failures, chance=lambda: 1.0) == minutes * 30


def test_a_host_that_never_failed_is_due() -> None:
    assert Retries(Clock()).remaining(HOST, grounds=("1",)) == 0


def test_a_failed_host_is_not_due_before_its_time() -> None:
    clock = Clock()
    retries = Retries(clock, chance=lambda: 0.0)
    assert retries.failed(HOST, failures=1, grounds=("1",)) == 120
    clock.now += 119
    assert retries.remaining(HOST, grounds=("1",)) == 1
    clock.now += 1
    assert retries.remaining(HOST, grounds=("1",)) == 0


def test_a_failed_host_is_due_at_once_when_what_it_depends_on_changes() -> None:
    retries = Retries(Clock())
    retries.failed(HOST, failures=9, grounds=("1", "secret@7"))
    assert retries.remaining(HOST, grounds=("1", "secret@8")) == 0
    assert retries.remaining(HOST, grounds=("1", "secret@7")) > 0


def test_a_host_that_succeeded_is_forgotten() -> None:
    retries = Retries(Clock())
    retries.failed(HOST, failures=1, grounds=("1",))
    retries.forget(HOST)
    assert retries.remaining(HOST, grounds=("1",)) == 0
