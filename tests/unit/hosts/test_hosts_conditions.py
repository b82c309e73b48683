"""Conditions say what Metal3's clients expect in every state."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from ingot.api.baremetalhost import BareMetalHostStatus, ErrorType, OperationalStatus, State
from ingot.api.meta import Condition
from ingot.hosts.conditions import conditions
from ingot.provisioner import Vitals

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def made(
    state: State,
    status: BareMetalHostStatus | None = None,
    *,
    vitals: Vitals | None = None,
    why: str = "",
    outlook: str = "",
) -> dict[str, Condition]:
    found = conditions(
        status or BareMetalHostStatus(),
        state,
        why=why,
        outlook=outlook,
        vitals=vitals,
        generation=3,
        at=NOON,
    )
    return {condition.type: condition for condition in found}


def words(found: dict[str, Condition]) -> dict[str, str]:
    return {kind: f"{condition.status} {condition.reason}" for kind, condition in found.items()}


NOT_YET = {
    "Manageable": "True Manageable",
    "AvailableForProvisioning": "False NotAvailable",
    "Provisioned": "False NotProvisioned",
    "Ready": "False NotProvisioned",
    "Healthy": "Unknown Unknown",
}
UNMANAGED = {"Manageable": "False NotManaged", "Progressing": "False NotProgressing"}
PROVISIONED = {
    "Provisioned": "True Provisioned",
    "Ready": "True Provisioned",
    "Progressing": "False NotProgressing",
}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("", UNMANAGED),
        ("unmanaged", UNMANAGED),
        ("registering", {"Manageable": "False Registering", "Progressing": "True Registering"}),
        ("inspecting", {"Progressing": "True Inspecting"}),
        ("preparing", {"Progressing": "True Preparing"}),
        ("available", {"AvailableForProvisioning": "True Available", "Progressing": "False NotProgressing"}),
        ("provisioning", {"Progressing": "True Provisioning"}),
        ("provisioned", PROVISIONED),
        ("externally provisioned", PROVISIONED),
        ("deprovisioning", {"Progressing": "True Deprovisioning"}),
        ("powering off before delete", {"Progressing": "True PoweringOffBeforeDelete"}),
        ("deleting", {"Progressing": "True Deleting"}),
    ],
)
def test_each_state_has_its_conditions(state: str, expected: dict[str, str]) -> None:
    assert words(made(State(state))) == NOT_YET | expected


def test_a_host_in_error_is_not_ready_and_says_why_and_when_it_is_tried_again() -> None:
    status = BareMetalHostStatus(
        operational_status=OperationalStatus.ERROR,
        error_type=ErrorType.POWER_MANAGEMENT,
        error_message="The BMC is on fire.",
    )
    ready = made(State.PROVISIONED, status, outlook="Next: it is tried again, at noon.")["Ready"]
    assert (ready.status, ready.reason) == ("False", "Error")
    assert ready.message == "The BMC is on fire. Next: it is tried again, at noon."


def test_a_host_that_cannot_be_registered_says_so() -> None:
    status = BareMetalHostStatus(operational_status=OperationalStatus.ERROR)
    assert words(made(State.REGISTERING, status))["Manageable"] == "False RegistrationFailed"


@pytest.mark.parametrize(
    ("state", "expected"),
    [(State.PROVISIONED, "False PowerFailure"), (State.REGISTERING, "False Registering")],
)
def test_lost_power_controls_make_a_managed_host_unmanageable(state: State, expected: str) -> None:
    vitals = Vitals(powered_on=None, power_failure=True)
    assert words(made(state, vitals=vitals))["Manageable"] == expected


def test_lost_power_controls_stay_lost_until_somebody_has_looked() -> None:
    lost = list(made(State.PROVISIONED, vitals=Vitals(powered_on=None, power_failure=True)).values())
    status = BareMetalHostStatus(conditions=lost)
    assert words(made(State.PROVISIONED, status))["Manageable"] == "False PowerFailure"
    assert (
        words(made(State.PROVISIONED, status, vitals=Vitals(powered_on=True)))["Manageable"]
        == "True Manageable"
    )


@pytest.mark.parametrize(
    ("health", "expected"),
    [("OK", "True Healthy"), ("Warning", "False Warning"), ("Critical", "False CriticalError")],
)
def test_health_is_what_the_machine_says(health: str, expected: str) -> None:
    assert words(made(State.AVAILABLE, vitals=Vitals(powered_on=True, health=health)))["Healthy"] == expected


def test_health_once_known_is_kept_when_the_machine_says_nothing() -> None:
    known = Condition(type="Healthy", status="True", reason="Healthy", message="", last_transition_time=NOON)
    found = made(State.AVAILABLE, BareMetalHostStatus(conditions=[known]), vitals=Vitals(powered_on=True))
    assert found["Healthy"] == known


def test_the_reason_for_waiting_is_in_the_progressing_condition() -> None:
    assert made(State.INSPECTING, why="the ramdisk boots")["Progressing"].message == "the ramdisk boots"


def test_what_comes_next_is_in_the_ready_condition() -> None:
    assert made(State.INSPECTING, outlook="Next: it is prepared.")["Ready"].message == "Next: it is prepared."


def test_the_time_of_the_last_change_stays_while_the_status_is_the_same() -> None:
    earlier = NOON - timedelta(hours=1)
    before = [
        replace(condition, last_transition_time=earlier) for condition in made(State.INSPECTING).values()
    ]
    found = made(State.AVAILABLE, BareMetalHostStatus(conditions=before))
    assert found["Manageable"].last_transition_time == earlier
    assert found["AvailableForProvisioning"].last_transition_time == NOON


def test_conditions_of_others_are_kept() -> None:
    other = Condition(
        type="example.com/Racked", status="True", reason="Yes", message="", last_transition_time=NOON
    )
    assert made(State.AVAILABLE, BareMetalHostStatus(conditions=[other]))["example.com/Racked"] == other
