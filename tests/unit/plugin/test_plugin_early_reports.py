"""Inspection data that come before Ironic waits for them are taken a little later."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from ingot_ironic import early_reports

STARTING, WAITS = "inspecting", "inspect wait"
MACS = ["52:54:00:00:00:01"]


class ComeAgain(Exception):
    pass


def hooked(*states: str | None, patience: float = 60) -> tuple[Callable[..., Any], list[str | None]]:
    """The look-up of an Ironic whose node is in one of these states after the other, and those still to come."""
    to_come = list(states)

    def lookup_node(
        context: str, mac_addresses: list[str], bmc_addresses: list[str], node_uuid: str | None = None
    ) -> tuple[object, ...]:
        return context, mac_addresses, bmc_addresses, node_uuid

    module = SimpleNamespace(lookup_node=lookup_node)
    early_reports.hook(module, lambda *_: to_come.pop(0), STARTING, ComeAgain, patience=patience)
    return module.lookup_node, to_come


def test_a_report_waits_until_ironic_waits_for_it() -> None:
    look_up, to_come = hooked(STARTING, STARTING, WAITS)
    assert look_up("context", MACS, ["10.0.0.1"], node_uuid="u") == ("context", MACS, ["10.0.0.1"], "u")
    assert to_come == []


def test_an_agent_that_comes_much_too_early_is_told_to_come_again() -> None:
    look_up, _ = hooked(STARTING, patience=0)
    with pytest.raises(ComeAgain):
        look_up("context", MACS, [])


@pytest.mark.parametrize("state", [WAITS, "clean wait", "available", None])
def test_a_report_that_is_due_or_that_nobody_wants_does_not_wait(state: str | None) -> None:
    look_up, to_come = hooked(state, STARTING)
    assert look_up("context", MACS, []) == ("context", MACS, [], None)
    assert to_come == [STARTING]


def test_an_ironic_that_looks_nodes_up_in_another_way_is_left_alone() -> None:
    def lookup_node(inventory: object) -> None:
        raise NotImplementedError

    module = SimpleNamespace(lookup_node=lookup_node)
    with pytest.raises(AttributeError, match="takes other things than"):
        early_reports.hook(module, lambda *_: None, STARTING, ComeAgain)
    assert module.lookup_node is lookup_node
