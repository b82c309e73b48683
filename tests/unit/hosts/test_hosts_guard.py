"""The guard refuses whatever nobody asked for, and lets through what somebody did."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from ingot.api.baremetalhost import BareMetalHost
from ingot.hosts import guard
from ingot.provisioner import Act, Sight

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
        (host("provisioning", image=URL), Act.DEPLOY, False),
        (host("provisioning", image=URL), Act.UNDEPLOY, True),
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
