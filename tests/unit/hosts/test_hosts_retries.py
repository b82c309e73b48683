"""A failed host is tried again after a growing pause, and at once when its cause changes."""

import pytest

from ingot.api.meta import Key
from ingot.hosts.retries import Grounds, Retries, pause

HOST = Key("rack", "h1")
CAUSES = Grounds(("1", "secret@7"))


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
    retries = Retries(Clock())
    assert retries.remaining(HOST, grounds=CAUSES) == 0
    assert not retries.starts_over(HOST, grounds=CAUSES)


def test_a_failed_host_is_not_due_before_its_time() -> None:
    clock = Clock()
    retries = Retries(clock, chance=lambda: 0.0)
    retries.failed(HOST, retries.pause(1), grounds=CAUSES)
    clock.now += 119
    assert retries.remaining(HOST, grounds=CAUSES) == 1
    clock.now += 1
    assert retries.remaining(HOST, grounds=CAUSES) == 0
    assert not retries.starts_over(HOST, grounds=CAUSES)


@pytest.mark.parametrize(
    "changed", [("2", "secret@7"), ("1", "secret@8"), ("1", "reboot.metal3.io=", "secret@7")]
)
def test_a_failed_host_starts_over_at_once_when_what_it_depends_on_changes(changed: tuple[str, ...]) -> None:
    retries = Retries(Clock())
    retries.failed(HOST, 3600, grounds=CAUSES)
    assert retries.remaining(HOST, grounds=Grounds(changed)) == 0
    assert retries.starts_over(HOST, grounds=Grounds(changed))
    assert retries.remaining(HOST, grounds=CAUSES) > 0
    assert not retries.starts_over(HOST, grounds=CAUSES)


def test_a_failed_host_that_is_deleted_is_due_at_once_and_its_failures_go_on_counting() -> None:
    retries = Retries(Clock())
    retries.failed(HOST, 3600, grounds=CAUSES)
    deleted = Grounds(("2", "secret@7"), deleting=True)
    assert retries.remaining(HOST, grounds=deleted) == 0
    assert not retries.starts_over(HOST, grounds=deleted)


def test_a_host_that_succeeded_is_forgotten() -> None:
    retries = Retries(Clock())
    retries.failed(HOST, 60, grounds=CAUSES)
    retries.forget(HOST)
    assert retries.remaining(HOST, grounds=CAUSES) == 0
