"""What comes next for a Machine that is to be mended, told from what is written; and how long its Node may take."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import Node
from ingot.api.machine import Annotation, Machine
from ingot.machines.remediation.startup import (
    TWENTY_MINUTES,
    MachineHealthCheck,
    duration,
    time_by,
)
from ingot.machines.remediation.steps import (
    GIVEN_UP,
    KEPT_OFF,
    BackUp,
    DeleteMachine,
    DeleteNode,
    Finish,
    GiveUp,
    Mark,
    Rest,
    Restore,
    SetDeadline,
    Sight,
    Step,
    Stuck,
    SwitchOff,
    SwitchOn,
    TakeBack,
    Wait,
    deadline_of,
    finished,
    given_up_for,
    is_kept_off_for_nobody,
    marked_off,
    next_step,
    why_kept,
)
from ingot.machines.vacancies import UNHEALTHY

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
ASKED = {Annotation.REMEDIATION: ""}
LATER = {Mark.POWERED_OFF: "", Mark.DEADLINE: "2026-11-16T12:20:00Z"}
PAST = {Mark.POWERED_OFF: "", Mark.DEADLINE: "2026-11-16T11:59:00Z"}
BACKUP = {Mark.NODE_LABELS: '{"zone":"a"}', Mark.NODE_ANNOTATIONS: '{"note":"x"}'}
GOING = {"deletionTimestamp": NOON, "finalizers": ["x"]}
CONTROLLED = [{"apiVersion": "v", "kind": "MachineSet", "name": "s", "uid": "u", "controller": True}]


def made(type_: type[Any], body: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body), type=type_)


def machine(*annotations: dict[Any, str], **metadata: Any) -> Machine:
    written = {str(name): value for part in annotations for name, value in part.items()}
    found: Machine = made(
        Machine, {"metadata": {"name": "m", "namespace": "ns", "annotations": written, **metadata}}
    )
    return found


def host(
    *, on: bool, kept_off: bool = False, state: str = "provisioned", status: Any = None, **spec: Any
) -> BareMetalHost:
    metadata = dict(spec.pop("metadata", {}))
    annotations = {**metadata.pop("annotations", {}), **({KEPT_OFF: ""} if kept_off else {})}
    found: BareMetalHost = made(
        BareMetalHost,
        {
            "metadata": {"name": "h", "namespace": "ns", "annotations": annotations, **metadata},
            "spec": {"online": True, **spec},
            "status": {"poweredOn": on, "provisioning": {"state": state}, **(status or {})},
        },
    )
    return found


def node(labels: dict[str, str], annotations: dict[str, str], **metadata: Any) -> Node:
    body = {"metadata": {"name": "n", "labels": labels, "annotations": annotations, **metadata}}
    found: Node = made(Node, body)
    return found


OLD_NODE = node({"zone": "a"}, {"note": "x"})
ON, OFF = host(on=True), host(on=False)
KEPT_ON, KEPT = host(on=True, kept_off=True), host(on=False, kept_off=True)


def step(of: Machine, its_host: BareMetalHost | None, its_node: Node | None, at: datetime = NOON) -> Step:
    return next_step(Sight(of, its_host, its_node, at))


@pytest.mark.parametrize(
    ("of", "its_host", "its_node", "expected"),
    [
        # Nobody asks.
        (machine(), ON, OLD_NODE, Rest()),
        (machine(ASKED, **GOING), ON, OLD_NODE, Rest()),
        # Off.
        (machine(ASKED), ON, OLD_NODE, SwitchOff()),
        (machine(ASKED), OFF, OLD_NODE, SwitchOff()),
        (machine(ASKED), ON, None, SwitchOff()),
        # The Node goes only when the host is off, and what it was like is written down before.
        (machine(ASKED), KEPT, OLD_NODE, BackUp('{"zone":"a"}', '{"note":"x"}')),
        (machine(ASKED, BACKUP), KEPT, OLD_NODE, DeleteNode()),
        (machine(ASKED, BACKUP), KEPT, node({"zone": "b"}, {}), BackUp('{"zone":"b"}', "{}")),
        # Its end is written down before the host is switched on.
        (machine(ASKED, BACKUP), KEPT, None, SetDeadline()),
        (machine(ASKED), KEPT, None, SetDeadline()),
        (machine(ASKED, BACKUP, LATER), KEPT, None, SwitchOn()),
        (machine(ASKED, BACKUP, PAST), KEPT, None, SetDeadline()),
        (machine(ASKED, {Mark.POWERED_OFF: ""}), KEPT, None, SetDeadline()),
        # Another process marks first and deletes then: the Node is still the old one.
        (machine(ASKED, BACKUP, LATER), KEPT, OLD_NODE, DeleteNode()),
        # It is back.
        (machine(ASKED, BACKUP, LATER), ON, node({}, {}), Restore({"zone": "a"}, {"note": "x"})),
        (machine(ASKED, BACKUP, LATER), ON, node({"zone": "b"}, {}), Restore({}, {"note": "x"})),
        (machine(ASKED, BACKUP, LATER), ON, node({"zone": "b"}, {"note": "y"}), Finish()),
        (machine(ASKED, BACKUP, PAST), ON, OLD_NODE, Finish()),
        (machine(ASKED, LATER), OFF, node({}, {}), Finish()),
        (machine(ASKED, LATER, {Mark.NODE_LABELS: "spoilt"}), ON, node({}, {}), Finish()),
        (machine(ASKED, {Mark.POWERED_OFF: ""}), ON, None, SetDeadline()),
        (machine(ASKED, {Mark.POWERED_OFF: "", Mark.DEADLINE: "soon"}), ON, None, SetDeadline()),
        # Nobody asks any more, in the middle of it.
        (machine(BACKUP, LATER), ON, node({}, {}), Restore({"zone": "a"}, {"note": "x"})),
        (machine(BACKUP, LATER), ON, OLD_NODE, Finish()),
        (machine(BACKUP), KEPT_ON, OLD_NODE, Finish()),
        (machine(PAST), ON, None, Finish()),
    ],
)
def test_the_next_step_follows_from_what_is_written(
    of: Machine, its_host: BareMetalHost | None, its_node: Node | None, expected: Step
) -> None:
    assert step(of, its_host, its_node) == expected


@pytest.mark.parametrize(
    ("of", "its_host", "its_node", "words"),
    [
        (machine(ASKED), KEPT_ON, OLD_NODE, "is being switched off"),
        (machine(ASKED, BACKUP), KEPT_ON, OLD_NODE, "is being switched off"),
        (machine(ASKED, BACKUP, LATER), KEPT_ON, None, "is being switched off"),
        (machine(ASKED, BACKUP), KEPT, node({}, {}, **GOING), "Node n is being deleted"),
        (machine(ASKED, BACKUP, LATER), ON, None, "has to be back by 2026-11-16T12:20:00Z"),
        (machine(ASKED, BACKUP, LATER), ON, node({}, {}, **GOING), "has to be back by"),
        (machine(BACKUP, PAST), ON, None, "not there yet"),
    ],
)
def test_there_is_something_to_wait_for(
    of: Machine, its_host: BareMetalHost, its_node: Node | None, words: str
) -> None:
    found = step(of, its_host, its_node)
    assert isinstance(found, Wait)
    assert words in found.why


@pytest.mark.parametrize("kept_off", [True, False])
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"metadata": {"annotations": {"baremetalhost.metal3.io/paused": ""}}}, "is paused"),
        ({"metadata": {"annotations": {"baremetalhost.metal3.io/detached": ""}}}, "is detached"),
        ({"status": {"operationalStatus": "detached"}}, "is detached"),
        ({"metadata": GOING}, "is being deleted"),
        ({"disablePowerOff": True}, "never to be switched off"),
        ({"state": "deprovisioning"}, "is deprovisioning"),
        (
            {"state": "dreaming"},
            "status.provisioning.state is 'dreaming', which is no state of a host. Set it to",
        ),
    ],
)
def test_a_host_that_nobody_would_switch_off_or_look_at_keeps_its_node(
    more: dict[str, Any], words: str, kept_off: bool
) -> None:
    found = step(machine(ASKED, BACKUP), host(on=False, kept_off=kept_off, **more), OLD_NODE)
    assert isinstance(found, Stuck)
    assert words in found.why


def test_a_machine_without_a_host_cannot_be_mended() -> None:
    assert isinstance(step(machine(ASKED), None, OLD_NODE), Stuck)


# Too late


def test_a_machine_whose_node_does_not_come_back_is_replaced_and_its_host_given_up_before() -> None:
    late = machine(ASKED, BACKUP, PAST, ownerReferences=CONTROLLED)
    assert step(late, ON, None) == GiveUp()
    for name in UNHEALTHY:
        found = step(late, host(on=True, metadata={"annotations": {name: "by somebody"}}), None)
        assert isinstance(found, DeleteMachine)
        assert "2026-11-16T11:59:00Z" in found.why
        assert "BareMetalHost ns/h is marked as unhealthy" in found.why
        assert f"remove its annotation {name}." in found.why


def test_a_node_that_comes_after_all_takes_back_what_its_machine_had_marked_and_nothing_else() -> None:
    late = machine(ASKED, BACKUP, PAST, ownerReferences=CONTROLLED)
    mine = host(on=True, metadata={"annotations": {GIVEN_UP: given_up_for(late)}})
    assert step(late, mine, OLD_NODE) == TakeBack()
    assert step(machine(PAST), mine, None) == TakeBack()
    assert step(late, ON, OLD_NODE) == Finish()
    assert (
        step(late, host(on=True, metadata={"annotations": {GIVEN_UP: "by a person"}}), OLD_NODE) == Finish()
    )


@pytest.mark.parametrize(
    ("metadata", "spec", "words"),
    [
        ({}, {}, "nobody would make another one"),
        ({"ownerReferences": [{**CONTROLLED[0], "controller": False}]}, {}, "nobody would make another one"),
        ({"ownerReferences": CONTROLLED}, {"externallyProvisioned": True}, "not provisioned from here"),
        (
            {
                "ownerReferences": CONTROLLED,
                "labels": {"machine.openshift.io/cluster-api-machine-role": "master"},
            },
            {},
            "it is a master",
        ),
    ],
)
def test_a_machine_that_is_not_to_be_replaced_stays_and_says_why(
    metadata: dict[str, Any], spec: dict[str, Any], words: str
) -> None:
    its_host = host(on=True, **spec)
    found = step(machine(ASKED, BACKUP, PAST, **metadata), its_host, None)
    assert isinstance(found, Stuck)
    assert words in found.why
    assert "delete the Machine by hand" in found.why


def test_a_worker_of_a_set_is_replaced() -> None:
    labels = {"machine.openshift.io/cluster-api-machine-role": "worker"}
    assert why_kept(machine(ownerReferences=CONTROLLED, labels=labels), ON) is None


# Hosts that are kept off


@pytest.mark.parametrize(
    ("its_host", "of", "for_nobody"),
    [
        (KEPT, machine(ASKED), False),
        (KEPT, machine(), True),
        (KEPT, machine(ASKED, **GOING), True),
        (KEPT, None, True),
        (OFF, None, False),
    ],
)
def test_a_host_is_kept_off_only_while_its_machine_is_mended(
    its_host: BareMetalHost, of: Machine | None, for_nobody: bool
) -> None:
    assert is_kept_off_for_nobody(its_host, of) is for_nobody


# What is written


def test_the_deadline_is_read_as_it_was_written() -> None:
    written = marked_off(NOON)["metadata"]["annotations"]
    assert written[Mark.DEADLINE] == "2026-11-16T12:00:00Z"
    assert deadline_of(machine(written)) == NOON
    assert deadline_of(machine({Mark.DEADLINE: "2026-11-16T13:00:00+01:00"})) == NOON


def test_in_the_end_nothing_is_left_on_the_machine() -> None:
    assert finished()["metadata"]["annotations"] == dict.fromkeys(
        [*map(str, Mark), str(Annotation.REMEDIATION)]
    )


# How long it may take


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 600),
        ("1h30m", 5400),
        ("1h0m0s", 3600),
        ("90s", 90),
        ("1.5m", 90),
        ("500ms", 0.5),
        ("0", None),
        ("0s", None),
        ("", None),
        ("10", None),
        ("m", None),
        ("10m x", None),
        ("-5m", None),
    ],
)
def test_a_duration_is_read_as_go_writes_it(text: str, seconds: float | None) -> None:
    assert duration(text) == (None if seconds is None else timedelta(seconds=seconds))


def check(name: str, selector: dict[str, Any], timeout: str) -> MachineHealthCheck:
    found: MachineHealthCheck = made(
        MachineHealthCheck,
        {"metadata": {"name": name}, "spec": {"selector": selector, "nodeStartupTimeout": timeout}},
    )
    return found


@pytest.mark.parametrize(
    ("checks", "minutes"),
    [
        ([], 20),
        ([check("a", {"matchLabels": {"role": "worker"}}, "7m")], 7),
        ([check("a", {"matchLabels": {"role": "other"}}, "7m")], 20),
        ([check("a", {"matchLabels": {"role": "worker"}}, "0")], 20),
        ([check("a", {}, "9m")], 9),
        ([check("b", {}, "9m"), check("a", {"matchLabels": {"role": "worker"}}, "8m")], 8),
        ([check("a", {"matchExpressions": [{"key": "x", "operator": "?"}]}, "7m"), check("b", {}, "5m")], 5),
    ],
)
def test_the_health_check_that_means_the_machine_says_how_long(
    checks: list[MachineHealthCheck], minutes: int
) -> None:
    assert time_by(checks, machine(labels={"role": "worker"})) == timedelta(minutes=minutes)
    assert timedelta(minutes=20) == TWENTY_MINUTES
