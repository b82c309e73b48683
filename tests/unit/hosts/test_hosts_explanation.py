"""Every state explains itself: why, since when, what comes next and when, and what a person should do."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from rack import Rack

from ingot.api.baremetalhost import (
    Annotation,
    BareMetalHost,
    BareMetalHostSpec,
    BareMetalHostStatus,
    ErrorType,
    Image,
    OperationalStatus,
    OperationHistory,
    OperationTimes,
    ProvisionStatus,
    State,
)
from ingot.api.meta import Condition, ObjectMeta
from ingot.hosts.explanation import NOTHING_TO_DO, explain, outlook, since

EARLY = datetime(2026, 11, 16, 4, 0, tzinfo=UTC)
LATE = datetime(2026, 11, 16, 5, 0, tzinfo=UTC)


def host(
    state: str = "available",
    *,
    annotations: dict[str, str] | None = None,
    deleted: datetime | None = None,
    **more: object,
) -> BareMetalHost:
    status = {"operational_status": OperationalStatus.OK, "last_updated": LATE} | {
        key: value for key, value in more.items() if key not in ("online", "image")
    }
    return BareMetalHost(
        metadata=ObjectMeta(
            name="h1", namespace="rack", annotations=annotations or {}, deletion_timestamp=deleted
        ),
        spec=BareMetalHostSpec(online=bool(more.get("online", True)), image=more.get("image")),
        status=BareMetalHostStatus(provisioning=ProvisionStatus(state=state), **status),
    )


@pytest.mark.parametrize("state", [state for state in State if state not in ("match profile", "ready")])
def test_every_state_says_what_comes_next_and_when_and_what_to_do(state: State) -> None:
    found = explain(host(state))
    assert all((found.next, found.when, found.do))
    assert found.why == "nobody has looked at it yet"
    assert outlook(host(state)).startswith("Next: ")


def test_why_is_the_sentence_that_the_last_pass_left() -> None:
    told = Condition(
        type="Progressing",
        status="True",
        reason="Inspecting",
        message="the ramdisk boots",
        last_transition_time=LATE,
    )
    assert explain(host("inspecting", conditions=[told])).why == "the ramdisk boots"


@pytest.mark.parametrize(
    ("state", "history"),
    [
        ("registering", OperationHistory(register=OperationTimes(start=LATE))),
        ("inspecting", OperationHistory(inspect=OperationTimes(start=LATE))),
        ("provisioning", OperationHistory(provision=OperationTimes(start=LATE))),
        ("provisioned", OperationHistory(provision=OperationTimes(start=EARLY, end=LATE))),
        ("deprovisioning", OperationHistory(deprovision=OperationTimes(start=LATE))),
        (
            "available",
            OperationHistory(
                register=OperationTimes(start=EARLY, end=EARLY), inspect=OperationTimes(start=EARLY, end=LATE)
            ),
        ),
    ],
)
def test_since_when_is_known_from_the_history(state: str, history: OperationHistory) -> None:
    assert since(host(state, operation_history=history)) == LATE


def test_a_failed_host_says_when_it_is_tried_again_and_what_brings_it_sooner() -> None:
    failed = host(
        "registering",
        operational_status=OperationalStatus.ERROR,
        error_type=ErrorType.REGISTRATION,
        error_message="the BMC is away.",
        error_count=2,
        next_try=LATE,
    )
    found = explain(failed)
    assert (found.error, found.failures, found.when) == ("the BMC is away.", 2, "at 2026-11-16T05:00:00Z")
    assert "ingot host retry" in found.do


def test_a_host_that_waits_for_a_person_says_so() -> None:
    blocked = host("registering", error_type=ErrorType.REGISTRATION, error_message="no Secret.")
    assert "changes what the error names" in explain(blocked).when


def test_a_paused_host_names_the_annotation_to_remove() -> None:
    found = explain(host("provisioned", annotations={Annotation.PAUSED: ""}))
    assert Annotation.PAUSED in found.do
    assert "paused" in found.why


def test_a_detached_host_names_the_annotation_to_remove() -> None:
    found = explain(host("provisioned", operational_status=OperationalStatus.DETACHED))
    assert Annotation.DETACHED in found.do


def test_a_host_with_an_image_that_is_to_be_off_names_the_field_to_set() -> None:
    assert explain(host(image=Image(url="https://x/a"), online=False)).do == "set spec.online to true"


def test_a_host_that_is_busy_asks_nothing_of_anybody() -> None:
    assert explain(host("provisioning")).do == NOTHING_TO_DO


@pytest.mark.parametrize(
    ("state", "coming"),
    [
        ("deprovisioning", "it is switched off and forgotten"),
        ("powering off before delete", "the back end forgets it"),
        ("deleting", "it is gone"),
    ],
)
def test_a_host_that_is_deleted_is_not_said_to_become_available(state: str, coming: str) -> None:
    assert explain(host(state, deleted=LATE)).next == coming


def test_a_deletion_that_waits_for_the_host_to_be_attached_names_the_annotation() -> None:
    waits = host(
        "provisioned",
        deleted=LATE,
        annotations={Annotation.DETACHED: '{"deleteAction": "delay"}'},
        operational_status=OperationalStatus.DETACHED,
    )
    assert explain(waits).do == f"remove the annotation {Annotation.DETACHED} to have it deleted"


def test_a_host_that_found_no_place_waits_for_one() -> None:
    found = explain(host("inspecting", operational_status=OperationalStatus.DELAYED))
    assert (found.when, found.do) == ("as soon as fewer hosts boot over the network", NOTHING_TO_DO)


async def test_who_has_only_kubectl_reads_it_in_the_ready_condition(rack: Rack) -> None:
    found = await rack.until_state(await rack.host(), "available")
    told = next(one.message for one in found.status.conditions if one.type == "Ready")
    assert told == outlook(found)
