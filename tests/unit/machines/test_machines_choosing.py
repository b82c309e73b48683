"""Which hosts can be had, by whom, and which of them a claimant gets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hostselector import HostSelector, HostSelectorRequirement
from ingot.api.meta import ObjectReference
from ingot.machines.choosing import FAILURE_DOMAIN, Tally, Wish, choose
from ingot.machines.demands import UnusableSelector, demands_of
from ingot.machines.vacancies import belongs_to, needs_cleaning, why_taken

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANY = demands_of(HostSelector(), path="spec.hostSelector")


def host(name: str = "h", **more: Any) -> BareMetalHost:
    """A host that can be had, but for what is said otherwise: spec, status, annotations, labels, metadata."""
    status = {
        "provisioning": {"state": "available", "ID": "1"},
        "operationalStatus": "OK",
        **more.get("status", {}),
    }
    metadata = {
        "name": name,
        "namespace": "racks",
        "uid": f"uid-{name}",
        "labels": more.get("labels", {}),
        "annotations": more.get("annotations", {}),
        **more.get("metadata", {}),
    }
    body = {"metadata": metadata, "spec": {"online": False, **more.get("spec", {})}, "status": status}
    return msgspec.json.decode(msgspec.json.encode(body), type=BareMetalHost)


def demands(*expressions: tuple[str, str, list[str]], **labels: str) -> Any:
    selector = HostSelector(
        match_labels=labels,
        match_expressions=[HostSelectorRequirement(key=k, operator=o, values=v) for k, o, v in expressions],
    )
    return demands_of(selector, path="spec.hostSelector")


@pytest.mark.parametrize(
    ("expression", "met", "not_met"),
    [
        (("rack", "=", ["a"]), {"rack": "a"}, {"rack": "b"}),
        (("rack", "==", ["a"]), {"rack": "a"}, {}),
        (("rack", "!=", ["a"]), {"rack": "b"}, {"rack": "a"}),
        (("rack", "!=", ["a"]), {}, {"rack": "a"}),
        (("rack", "In", ["a", "b"]), {"rack": "b"}, {"rack": "c"}),
        (("rack", "NotIn", ["a", "b"]), {}, {"rack": "b"}),
        (("rack", "exists", []), {"rack": ""}, {}),
        (("rack", "!", []), {}, {"rack": "a"}),
        (("slots", "gt", ["4"]), {"slots": "5"}, {"slots": "4"}),
        (("slots", "Gt", ["4"]), {"slots": "10"}, {"slots": "many"}),
        (("slots", "lt", ["4"]), {"slots": "-1"}, {}),
    ],
)
def test_demands_mean_what_label_selectors_mean(
    expression: tuple[str, str, list[str]], met: dict[str, str], not_met: dict[str, str]
) -> None:
    asked = demands(expression)
    assert asked(met)
    assert not asked(not_met)


def test_all_demands_have_to_be_met() -> None:
    asked = demands(("rack", "exists", []), disk="nvme")
    assert asked({"rack": "a", "disk": "nvme", "else": "x"})
    assert not asked({"rack": "a"})
    assert not asked({"disk": "nvme"})
    assert ANY({})


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        (("rack", "like", ["a"]), r"matchExpressions\[0\]\.operator.*like"),
        (("rack", "in", []), r"matchExpressions\[0\]\.values"),
        (("rack", "exists", ["a"]), r"matchExpressions\[0\]\.values"),
        (("-rack", "exists", []), r"matchExpressions\[0\]\.key"),
        (
            ("slots", "gt", ["x"]),
            r"matchExpressions\[0\]\.values: 'gt' compares with exactly one whole number",
        ),
        (("slots", "gt", ["1", "2"]), "exactly one whole number"),
    ],
)
def test_demands_that_mean_nothing_are_refused_by_name(
    expression: tuple[str, str, list[str]], said: str
) -> None:
    with pytest.raises(UnusableSelector, match=said):
        demands(expression)


IN_ERROR = {
    "provisioning": {"state": "available"},
    "errorMessage": "the BMC is away",
    "errorType": "registration error",
}


def condition(type: str, status: str, reason: str) -> dict[str, Any]:
    """A host with this condition besides what it says of itself."""
    ready = {"type": "Ready", "status": "False", "reason": "NotProvisioned"}
    found = [{"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "", **one} for one in (ready, {})]
    return {"conditions": [found[0], {**found[1], "type": type, "status": status, "reason": reason}]}


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ({}, None),
        ({"status": {"provisioning": {"state": "ready"}}}, None),
        (
            {"spec": {"consumerRef": {"kind": "Machine", "namespace": "m", "name": "w-0"}}},
            "belongs to Machine m/w-0",
        ),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "is being deleted"),
        ({"status": IN_ERROR}, "is in error"),
        ({"annotations": {"baremetalhost.metal3.io/paused": ""}}, "is paused"),
        ({"annotations": {"baremetalhost.metal3.io/detached": "x"}}, "is detached"),
        (
            {"status": {"operationalStatus": "detached", "provisioning": {"state": "available"}}},
            "is detached",
        ),
        ({"annotations": {"capi.metal3.io/unhealthy": ""}}, "is marked as unhealthy"),
        ({"annotations": {"capm3.metal3.io/unhealthy": ""}}, "is marked as unhealthy"),
        (
            {"status": condition("Healthy", "False", "CriticalError")},
            "is reported as critical by the BMC",
        ),
        (
            {"status": condition("Manageable", "False", "PowerFailure")},
            "is without a BMC that answers",
        ),
        ({"status": condition("Healthy", "False", "Warning")}, None),
        ({"status": condition("Healthy", "Unknown", "Unknown")}, None),
        ({"status": condition("Healthy", "True", "Healthy")}, None),
        ({"status": condition("Manageable", "True", "Manageable")}, None),
        ({"status": condition("example.com/Fan", "False", "CriticalError")}, None),
        ({"spec": {"externallyProvisioned": True}}, "is provisioned by somebody else"),
        ({"spec": {"image": {"url": "https://images/x"}}}, "is told already what to run"),
        ({"spec": {"image": {"url": "", "format": "coreos"}}}, "is told already what to run"),
        ({"spec": {"customDeploy": {"method": "install_coreos"}}}, "is told already what to run"),
        ({"spec": {"image": {"url": ""}}}, None),
        ({"status": {"provisioning": {"state": "inspecting"}}}, "is inspecting"),
        ({"status": {"provisioning": {"state": ""}}}, "is new"),
    ],
)
def test_a_host_can_be_had_or_it_is_said_why_not(what: dict[str, Any], why: str | None) -> None:
    assert why_taken(host(**what)) == why


def test_a_host_belongs_to_whom_group_kind_and_names_say() -> None:
    owner = ObjectReference(
        api_version="machine.openshift.io/v1beta1", kind="Machine", namespace="m", name="w-0", uid="1"
    )
    reference = {"apiVersion": "machine.openshift.io/v1", "kind": "Machine", "namespace": "m", "name": "w-0"}
    assert belongs_to(host(spec={"consumerRef": reference}), owner)
    for field, other in {
        "apiVersion": "metal3.io/v1",
        "kind": "HostClaim",
        "namespace": "n",
        "name": "w-1",
    }.items():
        assert not belongs_to(host(spec={"consumerRef": {**reference, field: other}}), owner)
    assert not belongs_to(host(), owner)


@pytest.mark.parametrize(
    ("history", "mode", "dirty"),
    [
        ({}, "metadata", True),
        ({}, "disabled", False),
        ({"deprovision": {"end": 2}}, "metadata", False),
        ({"deprovision": {"end": 2}, "inspect": {"start": 1}}, "metadata", False),
        ({"deprovision": {"end": 2}, "inspect": {"start": 3}}, "metadata", True),
        ({"deprovision": {"end": 2}, "register": {"start": 3}}, "metadata", True),
    ],
)
def test_what_was_cleaned_and_not_touched_since_needs_no_cleaning(
    history: dict[str, dict[str, int]], mode: str, dirty: bool
) -> None:
    times = {
        operation: {which: (NOON + timedelta(hours=at)).isoformat() for which, at in when.items()}
        for operation, when in history.items()
    }
    found = host(
        spec={"automatedCleaningMode": mode},
        status={"provisioning": {"state": "available"}, "operationHistory": times},
    )
    assert needs_cleaning(found) is dirty


CLEAN = {"automatedCleaningMode": "disabled"}


def test_the_failure_domain_counts_most_and_then_that_nothing_has_to_be_cleaned() -> None:
    here, there = {FAILURE_DOMAIN: "here"}, {FAILURE_DOMAIN: "there"}
    hosts = [
        host("dirty-here", labels=here),
        host("clean-there", labels=there, spec=CLEAN),
        host("clean-here", labels=here, spec=CLEAN),
        host("dirty-there", labels=there),
    ]
    chosen = []
    while hosts:
        found = choose(hosts, Wish(claimant="c", demands=ANY, failure_domain="here"))
        assert found is not None
        chosen.append(found.metadata.name)
        hosts.remove(found)
    assert chosen == ["clean-here", "dirty-here", "clean-there", "dirty-there"]
    only_there = choose(
        [host("clean-there", labels=there)], Wish(claimant="c", demands=ANY, failure_domain="here")
    )
    assert only_there is not None


@pytest.mark.parametrize("claimant", ["a", "b", "c", "d"])
def test_a_host_of_which_its_bmc_warns_is_the_last_of_its_equals(claimant: str) -> None:
    here, there = {FAILURE_DOMAIN: "here"}, {FAILURE_DOMAIN: "there"}
    warns = condition("Healthy", "False", "Warning")
    hosts = [
        host("ailing-clean-here", labels=here, spec=CLEAN, status=warns),
        host("well-clean-here", labels=here, spec=CLEAN, status=condition("Healthy", "True", "Healthy")),
        host("ailing-dirty-here", labels=here, status=warns),
        host("well-dirty-here", labels=here),
        host("well-clean-there", labels=there, spec=CLEAN),
        host("ailing-clean-there", labels=there, spec=CLEAN, status=warns),
    ]
    for order in (hosts, hosts[::-1]):
        left, chosen = list(order), []
        while left:
            found = choose(left, Wish(claimant=claimant, demands=ANY, failure_domain="here"))
            assert found is not None
            chosen.append(found.metadata.name)
            left.remove(found)
        assert chosen == [
            "well-clean-here",
            "ailing-clean-here",
            "well-dirty-here",
            "ailing-dirty-here",
            "well-clean-there",
            "ailing-clean-there",
        ]


def test_where_none_can_be_had_it_is_said_what_there_is() -> None:
    taken = {"consumerRef": {"kind": "Machine", "namespace": "m", "name": "w"}}
    hosts = [
        host("a", spec=taken),
        host("b", spec=taken),
        host("c", status=IN_ERROR),
        host("d", labels={"rack": "b"}),
        host("e", status=condition("Healthy", "False", "CriticalError")),
    ]
    asked = Wish(claimant="c", demands=demands(("rack", "!=", ["b"])))
    tally = Tally()
    assert choose(hosts, asked, tally=tally) is None
    assert (
        tally.sentence()
        == "2 hosts are claimed already; 1 host is in error; 1 host is reported as critical by the BMC; "
        "1 host is not what is asked for"
    )
    empty = Tally()
    assert choose([], asked, tally=empty) is None
    assert empty.sentence() == "there are no hosts"


def test_coreos_is_not_for_hosts_with_software_raid() -> None:
    mirrored = host("mirrored", spec={"raid": {"softwareRAIDVolumes": [{"level": "1"}]}})
    removed = host("removed", spec={"raid": {"softwareRAIDVolumes": []}})
    coreos = Wish(claimant="c", demands=ANY, coreos=True)
    tally = Tally()
    assert choose([mirrored], coreos, tally=tally) is None
    assert tally.sentence() == "1 host is not what is asked for"
    assert choose([mirrored, removed], coreos) is removed
    assert choose([mirrored], Wish(claimant="c", demands=ANY)) is mirrored


def test_a_thousand_claimants_do_not_all_want_the_same_host() -> None:
    hosts = [host(f"h-{number}") for number in range(100)]
    wishes = [Wish(claimant=f"claim-{number}", demands=ANY) for number in range(100)]
    chosen = [found.metadata.name for wish in wishes if (found := choose(hosts, wish)) is not None]
    assert len(chosen) == 100
    assert len(set(chosen)) > 50


@given(st.permutations([f"h-{number}" for number in range(6)]), st.text(max_size=80))
def test_a_claimant_chooses_the_same_host_in_whatever_order_they_come(
    names: list[str], claimant: str
) -> None:
    wish = Wish(claimant=claimant, demands=ANY)
    in_order = choose([host(name) for name in sorted(names)], wish)
    as_they_come = choose([host(name) for name in names], wish)
    assert in_order == as_they_come
