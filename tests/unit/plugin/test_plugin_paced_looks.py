"""Looks at the power of many hosts do not begin all at once."""

from __future__ import annotations

import queue
from typing import Any

import pytest

from ingot_ironic import paced_looks
from ingot_ironic.paced_looks import LONGEST, SHARE


class Manager:
    """Looks at what is in the queue, as one of Ironic's workers does."""

    def _sync_power_state_nodes_task(self, context: str, nodes: Any) -> list[int]:
        looked: list[int] = []
        while True:
            try:
                looked.append(nodes.get_nowait())
            except queue.Empty:
                return looked


def looks(hosts: int, *, interval: float) -> tuple[list[int], list[float]]:
    """Which were looked at, and how long each had to wait for the ones before it, on a clock that stands still."""
    waits: list[float] = []
    manager = type("Manager", (Manager,), {})
    paced_looks.hook(manager, interval=lambda: interval, clock=lambda: 0.0, sleep=waits.append)
    nodes: queue.Queue[int] = queue.Queue()
    for number in range(hosts):
        nodes.put_nowait(number)
    return manager()._sync_power_state_nodes_task("context", nodes), waits


def test_a_round_of_many_hosts_is_spread_over_most_of_the_time_until_the_next() -> None:
    looked, waits = looks(3_000, interval=120)
    assert looked == list(range(3_000))
    assert len(waits) == 3_000
    # Nobody slept, so that the last one has to wait for all the others.
    assert waits[-1] == pytest.approx(SHARE * 120, rel=0.1)


def test_a_round_of_few_hosts_is_over_soon() -> None:
    looked, waits = looks(3, interval=120)
    assert looked == [0, 1, 2]
    assert waits[0] == 0
    assert LONGEST < waits[-1] <= 2 * LONGEST


def test_a_round_without_hosts_waits_for_nothing() -> None:
    assert looks(0, interval=120) == ([], [])


def test_an_ironic_that_hands_hosts_out_in_another_way_is_left_alone() -> None:
    class Another:
        def _sync_power_state_nodes_task(self, node: str) -> None:
            raise NotImplementedError

    original = Another._sync_power_state_nodes_task
    with pytest.raises(AttributeError, match="takes other things than"):
        paced_looks.hook(Another, interval=lambda: 1.0)
    assert Another._sync_power_state_nodes_task is original
