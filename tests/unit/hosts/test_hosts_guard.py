"""The guard refuses whatever nobody asked for, and lets through what somebody did."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ingot.api.baremetalhost import (
    Annotation,
    BareMetalHost,
    ErrorType,
    OperationalStatus,
    OperationHistory,
)
from ingot.hosts import guard
from ingot.provisioner import Act, Refusal, Sight

URL = "https://images.example/a.raw"
OTHER = "https://images.example/b.raw"


def host(
    state: str, *, image: str = "", installed: str = "", online: bool = True, deleted: bool = False
) -> BareMetalHost:
    body: dict[str, Any] = {
        "metadata": {"name": "h", "namespace": "rack", "uid": "u1"},
        "spec": {"online": online} | ({"image": {"url": image}} if image else {}),
        "status": {
            "provisioning": {"state": state, "ID": "n"}
            | ({"image": {"url": installed}} if installed else {}),
            "lastAttemptedImage": {"url": image or URL},
        },
    }
    if deleted:
        body["metadata"]["deletionTimestamp"] = datetime.now(UTC)
    return msgspec.convert(body, BareMetalHost)


def asked(found: BareMetalHost | None, act: Act, *, holds: bool = False, uid: str = "u1") -> bool:
    """Whether the guard lets it through."""
    sight = Sight("n", "some state", holds_instance=holds, powered_on=True)
    return guard.refusal(found, uid=uid, act=act, sight=sight) is None


@pytest.mark.parametrize("act", [act for act in Act if act is not Act.FORGET])
@pytest.mark.parametrize("state", ["provisioned", "externally provisioned"])
def test_nothing_is_done_to_a_host_that_runs_what_is_wanted(act: Act, state: str) -> None:
    assert not asked(host(state, image=URL, installed=URL), act, holds=True)


@pytest.mark.parametrize("state", ["provisioned", "externally provisioned"])
def test_the_record_of_a_host_that_runs_may_be_made_anew_because_it_is_taken_over_as_it_is(
    state: str,
) -> None:
    assert asked(host(state, image=URL, installed=URL), Act.FORGET, holds=True)


@pytest.mark.parametrize(
    "state", ["", "registering", "inspecting", "preparing", "available", "provisioning", "deprovisioning"]
)
def test_the_record_of_a_host_that_may_not_run_is_only_forgotten_when_it_is_deleted(state: str) -> None:
    assert not asked(host(state, image=URL), Act.FORGET, holds=True)
    assert asked(host(state, image=URL, deleted=True), Act.FORGET, holds=True)


@pytest.mark.parametrize("act", Act)
@pytest.mark.parametrize("state", ["", "registering", "available"])
def test_nothing_is_done_to_a_host_that_was_moved_before_its_status_was_taken_over(
    act: Act, state: str
) -> None:
    found = host(state, image=URL, online=False)
    annotations = {
        "baremetalhost.metal3.io/status": "{}",
        "baremetalhost.metal3.io/detached": '{"force": true}',
    }
    moved = replace(found, metadata=replace(found.metadata, annotations=annotations))
    assert not asked(moved, act)


@pytest.mark.parametrize("act", Act)
def test_nothing_is_done_for_a_host_that_is_gone(act: Act) -> None:
    assert not asked(None, act)


@pytest.mark.parametrize("act", Act)
def test_nothing_is_done_to_a_host_of_the_same_name_that_is_another_one(act: Act) -> None:
    assert not asked(host("deleting", deleted=True), act, uid="the one before")


@pytest.mark.parametrize(
    ("found", "act", "holds"),
    [
        (host("provisioned", image=URL, installed=URL, online=False), Act.POWER_OFF, True),
        (host("provisioned", image=OTHER, installed=URL), Act.UNDEPLOY, True),
        (host("provisioned", installed=URL), Act.UNDEPLOY, True),
        (host("provisioned", image=URL, installed=URL, deleted=True), Act.UNDEPLOY, True),
        (host("deprovisioning", installed=URL), Act.UNDEPLOY, True),
        (host("deprovisioning", installed=URL), Act.CLEAN, True),
        (host("deprovisioning", image=URL), Act.CLEAN, False),
        (host("provisioning", image=URL), Act.CLEAN, False),
        (host("preparing"), Act.CLEAN, False),
        (host("provisioning", image=URL), Act.DEPLOY, False),
        (host("powering off before delete", deleted=True), Act.POWER_OFF, False),
        (host("available", online=False), Act.POWER_OFF, False),
        (host("registering"), Act.POWER_OFF, False),
        (host("inspecting"), Act.POWER_OFF, False),
        (host("deleting", deleted=True), Act.DELETE, False),
    ],
)
def test_what_somebody_asked_for_is_done(found: BareMetalHost, act: Act, holds: bool) -> None:
    assert asked(found, act, holds=holds)


@pytest.mark.parametrize(
    ("found", "act", "holds"),
    [
        pytest.param(host("available", image=URL), Act.DEPLOY, False, id="deploying is written down first"),
        pytest.param(host("provisioning", image=URL), Act.DEPLOY, True, id="something is installed already"),
        pytest.param(
            host("provisioning", image=URL), Act.CLEAN, True, id="cleaning would wipe what is installed"
        ),
        pytest.param(
            host("provisioning", image=URL, deleted=True), Act.DEPLOY, False, id="it is being deleted"
        ),
        pytest.param(host("inspecting"), Act.CLEAN, False, id="inspecting cleans nothing"),
        pytest.param(host("available"), Act.CLEAN, False, id="preparing is written down first"),
        pytest.param(host("preparing"), Act.CLEAN, True, id="preparing would wipe what is installed"),
        pytest.param(host("preparing", deleted=True), Act.CLEAN, False, id="what goes is not prepared"),
        pytest.param(host("preparing", deleted=True), Act.CLEAN, True, id="nor wiped while it is prepared"),
        pytest.param(host("available"), Act.POWER_OFF, False, id="it is to be online"),
        pytest.param(host("inspecting"), Act.POWER_OFF, True, id="something runs on it"),
        pytest.param(host("available"), Act.DELETE, False, id="it is not being deleted"),
        pytest.param(host("inspecting"), Act.UNDEPLOY, True, id="nobody asked to remove it"),
        pytest.param(host("provisioning", image=URL), Act.FORGET, True, id="it is not known to run"),
    ],
)
def test_what_nobody_asked_for_is_refused_with_the_host_and_the_reason(
    found: BareMetalHost, act: Act, holds: bool
) -> None:
    refused = guard.refusal(
        found, uid="u1", act=act, sight=Sight("n", "active", holds_instance=holds, powered_on=True)
    )
    assert refused is not None
    assert "rack/h" in refused.why
    assert act.value in refused.why
    assert "'active'" in refused.why


# Whose system it is

BEGAN, EARLIER, LATER = "2026-01-01T10:00:00Z", "2025-12-31T10:00:00Z", "2026-01-01T10:30:00Z"
OF_THIS, OF_ANOTHER = "2026-01-01T10:00:00+00:00", "2026-01-01T09:00:00+00:00"
EMPTIED_LATER = {
    "provision": {"start": BEGAN, "end": LATER},
    "deprovision": {"start": "2026-01-02T10:00:00Z"},
}
UNDOES_AN_ATTEMPT = {"provision": {"start": BEGAN, "end": LATER}, "deprovision": {"start": LATER}}
IN_THE_MIDDLE = {"provision": {"start": BEGAN}, "deprovision": {"start": EARLIER, "end": EARLIER}}


def undeploy_is_refused(
    state: str,
    history: dict[str, Any],
    deployed_for: str | None,
    *,
    deleted: bool = False,
    holds: bool = True,
) -> Refusal | None:
    found = host(state, image=URL, deleted=deleted)
    times = msgspec.convert(history, OperationHistory, strict=False)
    found = replace(found, status=replace(found.status, operation_history=times))
    sight = Sight("n", "active", holds_instance=holds, powered_on=True, deployed_for=deployed_for)
    return guard.refusal(found, uid="u1", act=Act.UNDEPLOY, sight=sight)


@pytest.mark.parametrize(
    ("state", "history"),
    [
        ("provisioning", IN_THE_MIDDLE),
        ("deprovisioning", UNDOES_AN_ATTEMPT),
        ("deprovisioning", EMPTIED_LATER),
    ],
)
def test_a_provisioning_takes_down_what_it_has_put_there_itself_and_nothing_else(
    state: str, history: dict[str, Any]
) -> None:
    assert undeploy_is_refused(state, history, OF_THIS) is None
    refused = undeploy_is_refused(state, history, OF_ANOTHER)
    assert refused is not None
    assert refused.needs_person
    for words in ("rack/h", "'active'", "ingot host detach --force", "spec.externallyProvisioned"):
        assert words in refused.why


@pytest.mark.parametrize(
    ("state", "history"), [("provisioning", IN_THE_MIDDLE), ("deprovisioning", UNDOES_AN_ATTEMPT)]
)
def test_what_nobody_noted_is_not_of_an_attempt_of_ours(state: str, history: dict[str, Any]) -> None:
    refused = undeploy_is_refused(state, history, None)
    assert refused is not None
    assert refused.needs_person
    assert undeploy_is_refused(state, history, None, holds=False) is None


def test_a_host_that_was_provisioned_is_emptied_also_where_nobody_noted_who_did_it() -> None:
    assert undeploy_is_refused("deprovisioning", EMPTIED_LATER, None) is None
    assert undeploy_is_refused("deprovisioning", {"deprovision": {"start": BEGAN}}, None) is None


def test_who_deletes_a_host_has_said_that_what_runs_there_may_go() -> None:
    assert undeploy_is_refused("deprovisioning", UNDOES_AN_ATTEMPT, OF_ANOTHER, deleted=True) is None


# Reboots and servicing

PLAIN, HELD = "reboot.metal3.io", "reboot.metal3.io/a"
FORCED = '{"force": true}'


def in_use(
    state: str = "provisioned",
    *,
    annotations: dict[str, str] | None = None,
    no_power_off: bool = False,
    operational: str = "OK",
    error: str = "",
) -> BareMetalHost:
    found = host(state, image=URL, installed=URL)
    return msgspec.structs.replace(
        found,
        metadata=msgspec.structs.replace(found.metadata, annotations=annotations or {}),
        spec=msgspec.structs.replace(found.spec, disable_power_off=no_power_off),
        status=msgspec.structs.replace(
            found.status, operational_status=OperationalStatus(operational), error_type=ErrorType(error)
        ),
    )


@pytest.mark.parametrize(
    "found",
    [
        in_use(annotations={PLAIN: ""}),
        in_use(annotations={HELD: ""}),
        in_use("externally provisioned", annotations={PLAIN: ""}),
        in_use(annotations={PLAIN: ""}, no_power_off=True),
        host("available", online=False),
        in_use("available", annotations={PLAIN: FORCED}),
        in_use("available", annotations={HELD: FORCED}),
    ],
)
def test_an_annotation_that_asks_for_a_reboot_lets_the_power_off_through_and_nothing_else(
    found: BareMetalHost,
) -> None:
    holds = found.state != "available"
    assert asked(found, Act.POWER_OFF, holds=holds)
    for act in Act:
        if act not in (Act.POWER_OFF, Act.FORGET):
            assert not asked(found, act, holds=True), act


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(in_use(annotations={"reboot.metal3.iox": ""}), id="another annotation"),
        pytest.param(in_use(annotations={HELD: ""}, no_power_off=True), id="it must never be off"),
        pytest.param(in_use("available", annotations={PLAIN: ""}), id="without force it waits"),
    ],
)
def test_a_power_off_that_no_annotation_asks_for_is_refused(found: BareMetalHost) -> None:
    assert not asked(found, Act.POWER_OFF, holds=True)


@pytest.mark.parametrize("state", ["provisioned", "externally provisioned"])
def test_a_host_in_use_is_serviced_once_that_is_written_down(state: str) -> None:
    assert not asked(in_use(state), Act.SERVICE, holds=True)
    assert asked(in_use(state, operational="servicing"), Act.SERVICE, holds=True)
    assert asked(in_use(state, operational="error", error="servicing error"), Act.SERVICE, holds=True)


def test_a_host_that_is_kept_as_it_is_because_what_is_wanted_cannot_be_installed_is_serviced_like_others() -> (
    None
):
    changed = msgspec.structs.replace(in_use(operational="servicing"), spec=host("", image="https://b").spec)
    assert asked(changed, Act.SERVICE, holds=True)
    assert not asked(msgspec.structs.replace(changed, status=in_use().status), Act.SERVICE, holds=True)


def test_a_host_whose_firmware_is_being_changed_is_not_switched_off_before_that_is_over() -> None:
    for annotations in ({}, {PLAIN: ""}, {HELD: '{"mode": "hard"}'}):
        assert not asked(in_use(operational="servicing", annotations=annotations), Act.POWER_OFF, holds=True)
    failed = in_use(operational="error", error="servicing error", annotations={PLAIN: ""})
    assert asked(failed, Act.POWER_OFF, holds=True)


@pytest.mark.parametrize("state", ["available", "preparing", "provisioning", "deprovisioning"])
def test_a_host_that_is_not_in_use_is_not_serviced(state: str) -> None:
    assert not asked(in_use(state, operational="servicing"), Act.SERVICE)


# Detaching


def annotated(found: BareMetalHost, value: str | None) -> BareMetalHost:
    annotations = {} if value is None else {"baremetalhost.metal3.io/detached": value}
    return msgspec.structs.replace(
        found, metadata=msgspec.structs.replace(found.metadata, annotations=annotations)
    )


@pytest.mark.parametrize(
    ("state", "value", "allowed"),
    [
        ("provisioned", "", True),
        ("externally provisioned", "", True),
        ("available", "", True),
        ("ready", "", True),
        ("provisioned", None, False),
        ("available", None, False),
        ("inspecting", "", False),
        ("provisioning", '{"deleteAction": "delay"}', False),
        ("inspecting", '{"force": true}', True),
        ("deprovisioning", '{"force": true}', True),
        ("deprovisioning", None, False),
    ],
)
def test_a_host_is_let_go_only_while_somebody_asks_for_it_where_it_can_be(
    state: str, value: str | None, allowed: bool
) -> None:
    found = annotated(host(state, image=URL, installed=URL), value)
    assert asked(found, Act.DETACH, holds=True) is allowed


@pytest.mark.parametrize("act", [act for act in Act if act not in (Act.DETACH, Act.FORGET)])
def test_a_wish_to_be_let_go_permits_nothing_else(act: Act) -> None:
    assert not asked(
        annotated(host("provisioned", image=URL, installed=URL), '{"force": true}'), act, holds=True
    )


# What a host that was deleted by force left behind


def leftover_goes(*live: BareMetalHost | None, act: Act = Act.DELETE, uid: str = "the one before") -> bool:
    sight = Sight("n", "some state", holds_instance=True, powered_on=True)
    return guard.refusal_for_leftover(live, uid=uid, act=act, sight=sight) is None


def unregistered(found: BareMetalHost) -> BareMetalHost:
    provisioning = msgspec.structs.replace(found.status.provisioning, id="")
    return msgspec.structs.replace(
        found, status=msgspec.structs.replace(found.status, provisioning=provisioning)
    )


def test_the_record_of_a_host_that_is_gone_is_removed() -> None:
    assert leftover_goes(None, None)
    assert leftover_goes(host("deleting", deleted=True), uid="u1")


def test_a_new_host_of_that_name_that_is_not_registered_yet_loses_nothing() -> None:
    assert leftover_goes(unregistered(host("")), None)


def test_the_record_of_a_live_host_is_not_removed() -> None:
    assert not leftover_goes(host("provisioned", image=URL, installed=URL), None)
    assert not leftover_goes(None, host("available")), "whatever its name is"


@pytest.mark.parametrize("act", [act for act in Act if act is not Act.DELETE])
def test_nothing_but_the_record_is_touched_for_a_host_that_is_gone(act: Act) -> None:
    assert not leftover_goes(None, None, act=act)


@pytest.mark.parametrize("act", Act)
@pytest.mark.parametrize("state", ["preparing", "provisioning", "provisioned", "deprovisioning", "deleting"])
def test_nothing_is_done_to_a_host_that_was_paused_meanwhile(act: Act, state: str) -> None:
    found = host(state, image=URL, deleted=state == "deleting")
    meta = replace(found.metadata, annotations={Annotation.PAUSED: "metal3.io/capm3"})
    assert not asked(replace(found, metadata=meta), act)


@pytest.mark.parametrize("act", list(Act))
def test_a_machine_that_two_hosts_are_registered_as_is_not_touched_but_its_record_may_go(act: Act) -> None:
    one = host("provisioning", image=URL)
    other = replace(one, metadata=replace(one.metadata, name="copy"))
    sight = Sight("n", "some state", holds_instance=False, powered_on=True)
    refused = guard.refusal_for_shared(one, [one, other], act=act, sight=sight)
    if act in (Act.DELETE, Act.FORGET, Act.DETACH):
        assert refused is None
    else:
        assert refused is not None
        assert "rack/copy is registered as the same machine" in refused.why
    assert guard.refusal_for_shared(one, [one], act=act, sight=sight) is None
    assert guard.refusal_for_shared(one, [one, unregistered(other)], act=act, sight=sight) is None
    nameless = Sight("", "some state", holds_instance=False, powered_on=True)
    assert guard.refusal_for_shared(one, [one, unregistered(other)], act=act, sight=nameless) is None
