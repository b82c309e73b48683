"""What is decided about a Machine, without any API: what it wants, how it stands to hosts, what its status and its Node say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ingot.api.baremetalhost import BareMetalHost, CustomDeploy, HardwareDetails, Image
from ingot.api.core import Node
from ingot.api.hardwaredata import NIC
from ingot.api.installed import mark_of
from ingot.api.machine import FINALIZER, BareMetalMachineProviderSpec, Machine, MachineStatus
from ingot.api.meta import SecretReference
from ingot.machines.choosing import FAILURE_DOMAIN
from ingot.machines.defaults import NoTarget, Resolved
from ingot.machines.machine.leaving import hooked, why_kept
from ingot.machines.machine.news import news_of
from ingot.machines.machine.nodes import node_patch
from ingot.machines.machine.standing import (
    Free,
    Given,
    Has,
    Means,
    decision,
    intention,
    possession,
    says_replaced,
    says_whose,
    standing_of,
    stands,
)
from ingot.machines.machine.telling import (
    Found,
    Leaving,
    Lost,
    Outcome,
    Unusable,
    Waiting,
    addresses_of,
    status_of,
    status_patch,
)
from ingot.machines.machine.wanting import Wanted, is_another_target, keeping, wanted_of
from ingot.machines.targets import emptying

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
IMAGE = Image(url="https://images.example/a.qcow2", checksum="0" * 64)
MINE = {"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": "m1", "namespace": "m"}
ID = "baremetalhost:///m/h/u-1"
MEANT = {"metal3.io/BareMetalHost": "m/h", "ingot.metal3.io/host-version": "7"}


def read(kind: Any, body: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body), type=kind)


def machine(*, status: dict[str, Any] | None = None, **metadata: Any) -> Machine:
    spec = metadata.pop("spec", {})
    body = {"metadata": {"name": "m1", "namespace": "m", "uid": "m-1", **metadata}, "spec": spec}
    found: Machine = read(Machine, {**body, "status": status or {}})
    return found


def host(state: str = "available", *, uid: str = "u-1", **spec: Any) -> BareMetalHost:
    found: BareMetalHost = read(
        BareMetalHost,
        {
            "metadata": {"name": "h", "namespace": "m", "uid": uid, "resourceVersion": "7"},
            "spec": {"online": False, **spec},
            "status": {"provisioning": {"state": state}, "poweredOn": True},
        },
    )
    return found


def node(**metadata: Any) -> Node:
    spec = metadata.pop("spec", {})
    found: Node = read(Node, {"metadata": {"name": "n1", "uid": "n-1", **metadata}, "spec": spec})
    return found


# What it wants


def installs(spec: BareMetalMachineProviderSpec) -> Resolved:
    return Resolved(IMAGE, None, "cluster")


def wants(value: dict[str, Any] | None, **metadata: Any) -> Wanted | Unusable:
    return wanted_of(machine(spec={"providerSpec": {"value": value}}, **metadata), installs)


def test_what_a_machine_wants() -> None:
    found = wants(
        {
            "hostSelector": {"matchLabels": {"a": "b"}},
            "userData": {"name": "u"},
            "customDeploy": {"method": "x"},
        },
        labels={FAILURE_DOMAIN: "rack-3"},
    )
    assert isinstance(found, Wanted)
    assert found.source == "cluster"
    assert (found.wish.claimant, found.wish.failure_domain) == ("m-1", "rack-3")
    assert found.wish.demands({"a": "b"})
    assert not found.wish.demands({})
    assert found.target.image == IMAGE
    assert found.target.online
    assert found.target.user_data == SecretReference(name="u", namespace="m")
    assert (found.target.consumer.name, found.target.consumer.namespace) == ("m1", "m")


def test_a_host_keeps_its_network() -> None:
    found = wants({"customDeploy": {"method": "x"}})
    assert isinstance(found, Wanted)
    target = keeping(host(networkData={"name": "net"}), found)
    assert target.network_data == SecretReference(name="net")
    assert target.meta_data is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "spec.providerSpec.value is empty"),
        ({"kind": "AWSMachineProviderConfig"}, "AWSMachineProviderConfig"),
        ({"customDeploy": {"method": "x"}, "hots": 1}, "hots"),
        (
            {"customDeploy": {"method": "x"}, "userData": {"name": "u", "namespace": "n"}},
            "Put the Secret into m",
        ),
        (
            {
                "customDeploy": {"method": "x"},
                "hostSelector": {"matchExpressions": [{"key": "a", "operator": "gt", "values": ["x"]}]},
            },
            "exactly one whole number",
        ),
    ],
)
def test_what_it_cannot_want(value: dict[str, Any] | None, words: str) -> None:
    found = wants(value)
    assert isinstance(found, Unusable)
    assert words in found.why


def test_without_anything_to_install_nothing_is_wanted() -> None:
    def nothing(spec: BareMetalMachineProviderSpec) -> Resolved:
        raise NoTarget("Nothing says what to install.")

    value = {"customDeploy": {"method": "x"}}
    found = wanted_of(machine(spec={"providerSpec": {"value": value}}), nothing)
    assert found == Unusable("Nothing says what to install.")


@pytest.mark.parametrize(
    ("before", "after", "another"),
    [
        ({"image": {"url": "a"}}, {"image": {"url": "b"}}, True),
        ({"image": {"url": "a"}}, {"customDeploy": {"method": "x"}}, True),
        ({}, {"userData": {"name": "u"}}, True),
        ({"hostSelector": {}}, {"hostSelector": {"matchLabels": {"a": "b"}}}, False),
        (None, {}, False),
    ],
)
def test_which_changes_are_about_what_is_installed(
    before: dict[str, Any] | None, after: dict[str, Any] | None, another: bool
) -> None:
    one, other = (machine(spec={"providerSpec": {"value": value}}) for value in (before, after))
    assert is_another_target(one, other) is another


# How it stands to the hosts

HELD = host("provisioned", consumerRef=MINE)
VACANT = host()
TAKEN = host(consumerRef={**MINE, "name": "m2"})


@pytest.mark.parametrize(
    ("provider", "annotations", "linked", "given", "standing"),
    [
        ("", {}, None, [], Free()),
        ("", {}, None, [HELD], Given(HELD)),
        ("", MEANT, VACANT, [], Means(VACANT)),
        # A binding intention goes before what somebody else gave it.
        ("", MEANT, VACANT, [HELD], Means(VACANT)),
        ("", MEANT, TAKEN, [], Free()),
        ("", MEANT, TAKEN, [HELD], Given(HELD)),
        ("", MEANT, None, [], Free()),
        ("", MEANT, HELD, [HELD], Has(HELD)),
        (ID, MEANT, HELD, [HELD], Has(HELD)),
        (ID, {}, HELD, [HELD], Has(HELD)),
    ],
)
def test_how_a_machine_stands_to_the_hosts(
    provider: str,
    annotations: dict[str, str],
    linked: BareMetalHost | None,
    given: Sequence[BareMetalHost],
    standing: object,
) -> None:
    found = machine(annotations=annotations, spec={"providerID": provider})
    assert standing_of(found, linked, given) == standing


@pytest.mark.parametrize(
    ("provider", "linked", "words"),
    [
        (ID, None, "BareMetalHost m/h does not exist any more"),
        (ID, host("provisioned", uid="u-2", consumerRef=MINE), "is another one than the Machine had"),
        (ID, TAKEN, "BareMetalHost m/h belongs to Machine m/m2"),
        (ID, VACANT, "BareMetalHost m/h belongs to nobody"),
        ("aws:///i-1", None, "aws:///i-1, the Machine's provider ID, does not name a BareMetalHost"),
    ],
)
def test_a_machine_with_a_provider_id_never_takes_another_host(
    provider: str, linked: BareMetalHost | None, words: str
) -> None:
    lost = standing_of(machine(spec={"providerID": provider}), linked, [HELD])
    assert isinstance(lost, Lost)
    assert words in lost.why
    assert lost.why.endswith("Delete the Machine; if it belongs to a MachineSet, another one is made.")


def test_an_intention_stands_while_the_host_has_the_version_that_it_names() -> None:
    assert stands(machine(annotations=MEANT), host())
    assert not stands(machine(annotations={**MEANT, "ingot.metal3.io/host-version": "6"}), host())
    assert not stands(machine(annotations={**MEANT, "metal3.io/BareMetalHost": "m/i"}), host())
    assert not stands(machine(), host())


def test_what_a_machine_writes_down() -> None:
    source = {"ingot.metal3.io/image-source": "cluster"}
    assert intention(machine(finalizers=["other"]), host(), "cluster") == {
        "metadata": {"annotations": {**MEANT, **source}, "finalizers": ["other", FINALIZER]}
    }
    meant = machine(annotations={**MEANT, **source}, finalizers=[FINALIZER])
    assert intention(meant, host(), "cluster") == {}
    has = possession(meant, host("provisioning"))
    assert has == {
        "metadata": {
            "annotations": {
                "ingot.metal3.io/host-version": None,
                "machine.openshift.io/instance-state": "provisioning",
            }
        },
        "spec": {"providerID": ID},
    }
    assert says_whose(has)


def test_news_of_the_host_do_not_say_whose_it_is() -> None:
    annotations = {"metal3.io/BareMetalHost": "m/h", "machine.openshift.io/instance-state": "provisioning"}
    known = machine(annotations=annotations, finalizers=[FINALIZER], spec={"providerID": ID})
    assert possession(known, host("provisioning")) == {}
    patch = possession(known, host("provisioned"))
    assert patch
    assert not says_whose(patch)
    # One that is being deleted is not held any longer than it is.
    going = machine(
        annotations=annotations, deletionTimestamp="2026-01-01T00:00:00Z", spec={"providerID": ID}
    )
    assert possession(going, host("provisioning")) == {}


def test_what_a_host_was_told_is_noted_with_the_possession_and_compared_from_then_on() -> None:
    told, other = {"image": {"url": "https://x/a"}}, {"image": {"url": "https://x/b"}}
    mark, another = mark_of(Image(url="https://x/a"), None), mark_of(Image(url="https://x/b"), None)
    meant = machine(annotations=MEANT, finalizers=[FINALIZER])
    first = possession(meant, host("provisioning", **told))
    assert first["metadata"]["annotations"]["ingot.metal3.io/target"] == mark
    assert not says_replaced(first)
    known = {
        "metal3.io/BareMetalHost": "m/h",
        "machine.openshift.io/instance-state": "provisioned",
        "ingot.metal3.io/target": mark,
    }
    has = machine(annotations=known, finalizers=[FINALIZER], spec={"providerID": ID})
    assert possession(has, host("provisioned", **told)) == {}
    replaced = possession(has, host("provisioned", **other))
    assert replaced == {"metadata": {"annotations": {"ingot.metal3.io/target-replaced": another}}}
    assert says_replaced(replaced)
    assert not says_whose(replaced)
    # One that is emptied, or that somebody else provisions, was told nothing else.
    assert possession(has, host("provisioned")) == {}
    assert possession(has, host("provisioned", externallyProvisioned=True, **other)) == {}
    # It is said once; and not any more when it was put back.
    knows = {**known, "ingot.metal3.io/target-replaced": another}
    knowing = machine(annotations=knows, finalizers=[FINALIZER], spec={"providerID": ID})
    assert possession(knowing, host("provisioned", **other)) == {}
    assert not says_replaced(possession(knowing, host("provisioned", **told)))
    assert possession(knowing, host("provisioned", **told))


def test_what_a_host_is_told_again_is_noted_where_it_is_something_else() -> None:
    annotations = {"ingot.metal3.io/target": "a"}
    has = machine(annotations=annotations, finalizers=[FINALIZER], spec={"providerID": ID})
    assert decision(has, "a") == {}
    assert decision(has, "b") == {"metadata": {"annotations": {"ingot.metal3.io/target": "b"}}}
    # One that does not say yet that it has the host notes it when it does.
    assert decision(machine(finalizers=[FINALIZER]), "b") == {}


# What it says


@pytest.mark.parametrize(
    ("before", "outcome", "said"),
    [
        ({}, Found(host("available")), {"phase": "Provisioning"}),
        ({}, Found(host("provisioned")), {"phase": "Provisioned"}),
        ({}, Found(host("externally provisioned")), {"phase": "Provisioned"}),
        ({}, Found(host("no such state")), {"phase": "Provisioning"}),
        (
            {},
            Found(host("provisioned"), node()),
            {"phase": "Running", "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n-1"}},
        ),
        (
            {"phase": "Running", "nodeRef": {"kind": "Node", "name": "n1"}},
            Found(host("provisioned")),
            {"phase": "Provisioned", "nodeRef": None},
        ),
        (
            {"errorReason": "InsufficientResources", "errorMessage": "No available BareMetalHost found"},
            Found(host()),
            {"phase": "Provisioning", "errorReason": None, "errorMessage": None},
        ),
        # What others say is wrong is for them to take back.
        (
            {"errorReason": "JoinClusterTimeoutError", "errorMessage": "late"},
            Found(host()),
            {"phase": "Provisioning"},
        ),
        (
            {},
            Waiting("1 host is paused"),
            {
                "phase": "Provisioning",
                "errorReason": "InsufficientResources",
                "errorMessage": "No available BareMetalHost found: 1 host is paused",
            },
        ),
        (
            {},
            Unusable("No."),
            {"phase": "Failed", "errorReason": "InvalidConfiguration", "errorMessage": "No."},
        ),
        (
            {"addresses": [{"type": "Hostname", "address": "h"}], "phase": "Provisioned"},
            Lost("It is gone."),
            {
                "phase": "Failed",
                "addresses": None,
                "errorMessage": "Can't find created instance: It is gone.",
            },
        ),
        ({"phase": "Running", "errorMessage": "x"}, Leaving(), {"phase": "Deleting"}),
    ],
)
def test_what_the_status_says(before: dict[str, Any], outcome: Outcome, said: dict[str, Any]) -> None:
    status: MachineStatus = read(MachineStatus, before)
    after = status_of(status, outcome)
    assert status_patch(status, after, at=NOON) == {"status": {**said, "lastUpdated": NOON}}
    assert status_patch(after, status_of(after, outcome), at=NOON) is None


def test_a_machine_whose_host_is_found_again_has_not_failed() -> None:
    lost = status_of(MachineStatus(), Lost("It is gone."))
    assert status_of(lost, Found(host("provisioned"))) == MachineStatus(phase="Provisioned")


def test_addresses_are_those_of_the_inspection_and_none_is_empty_or_said_twice() -> None:
    details = HardwareDetails(
        hostname="h17", nics=[NIC(ip="192.0.2.7"), NIC(ip=""), NIC(ip="192.0.2.7"), NIC(ip="2001:db8::7")]
    )
    assert [(found.type, found.address) for found in addresses_of(details)] == [
        ("InternalIP", "192.0.2.7"),
        ("InternalIP", "2001:db8::7"),
        ("Hostname", "h17"),
        ("InternalDNS", "h17"),
    ]
    assert addresses_of(None) == []


@pytest.mark.parametrize(
    ("before", "outcome", "hooks", "reasons"),
    [
        ({}, Found(host()), [], ["HostClaimed"]),
        ({"phase": "Provisioning"}, Found(host()), [], []),
        (
            {"phase": "Provisioning", "errorReason": "InsufficientResources"},
            Found(host(), node()),
            [],
            ["HostClaimed", "NodeLinked"],
        ),
        ({"phase": "Running", "nodeRef": {"name": "n1"}}, Found(host(), node()), [], []),
        ({}, Waiting("w"), [], ["InsufficientResources"]),
        ({"errorReason": "InsufficientResources"}, Waiting("w"), [], []),
        ({}, Unusable("No."), [], ["InvalidConfiguration"]),
        ({"errorMessage": "No."}, Unusable("No."), [], []),
        ({}, Lost("Gone."), [], ["HostLost"]),
        ({"errorMessage": "Can't find created instance: Gone."}, Lost("Gone."), [], []),
        ({}, Leaving(), [], []),
        ({}, Leaving(), ["a of b"], ["DeletionWaits"]),
    ],
)
def test_what_is_worth_an_event(
    before: dict[str, Any], outcome: Outcome, hooks: list[str], reasons: list[str]
) -> None:
    status: MachineStatus = read(MachineStatus, before)
    assert [news.reason for news in news_of(status, outcome, hooks=hooks)] == reasons


# Its Node


def test_a_node_is_told_what_it_does_not_know() -> None:
    spec = {
        "providerID": ID,
        "metadata": {"labels": {"role": "worker"}, "annotations": {"a": "b"}},
        "taints": [
            {"key": "dedicated", "value": "new", "effect": "NoSchedule"},
            {"key": "gpu", "effect": "NoExecute"},
        ],
    }
    taint = {"key": "dedicated", "value": "old", "effect": "NoSchedule"}
    patch = node_patch(
        machine(spec=spec),
        node(labels={"x": "y"}, finalizers=["metal3.io/capbm", "other"], spec={"taints": [taint]}),
    )
    assert patch == {
        "metadata": {
            "annotations": {"a": "b", "machine.openshift.io/machine": "m/m1"},
            "labels": {"role": "worker"},
            "finalizers": ["other"],
        },
        "spec": {"providerID": ID, "taints": [taint, {"key": "gpu", "effect": "NoExecute"}]},
    }


def test_a_node_that_knows_is_told_nothing_and_its_provider_id_is_its_own() -> None:
    told = {"machine.openshift.io/machine": "m/m1", "more": "of it"}
    knows = node(annotations=told, spec={"providerID": "other:///1"})
    assert node_patch(machine(spec={"providerID": ID}), knows) == {}


# Going


@pytest.mark.parametrize(
    ("spec", "change"),
    [
        ({"consumerRef": MINE}, {}),
        (
            {
                "image": {"url": "x"},
                "customDeploy": {"method": "y"},
                "userData": {"name": "u"},
                "networkData": {"name": "n"},
                "metaData": {"name": "m"},
                "online": True,
            },
            {"spec": {"image": None, "customDeploy": None, "userData": None, "online": False}},
        ),
        (
            {"image": {"url": "x"}, "online": True, "disablePowerOff": True},
            {"spec": {"image": None}},
        ),
    ],
)
def test_what_goes_from_a_host_that_is_given_back(spec: dict[str, Any], change: dict[str, Any]) -> None:
    assert emptying(host(**spec)) == change


@pytest.mark.parametrize(
    ("state", "annotations", "error", "words"),
    [
        ("available", {"baremetalhost.metal3.io/paused": ""}, "", None),
        ("deprovisioning", {}, "", None),
        ("deprovisioning", {"baremetalhost.metal3.io/paused": ""}, "", "it is paused. Remove its annotation"),
        (
            "provisioned",
            {"baremetalhost.metal3.io/detached": ""},
            "",
            "it is detached. Remove its annotation",
        ),
        ("deprovisioning", {}, "The BMC does not answer.", "until it is: The BMC does not answer."),
        ("no such state", {}, "", "which is no state of a host"),
    ],
)
def test_a_person_is_told_why_a_host_stays_as_it_is(
    state: str, annotations: dict[str, str], error: str, words: str | None
) -> None:
    found = host(state)
    found = replace(
        found,
        metadata=replace(found.metadata, annotations=annotations),
        status=replace(found.status, error_message=error),
    )
    why = why_kept(found)
    assert why is None if words is None else why is not None and words in why


def test_all_hooks_are_waited_for() -> None:
    hooks = {
        "preDrain": [{"name": "a.example/x", "owner": "one"}],
        "preTerminate": [{"name": "b.example/y", "owner": "two"}],
    }
    assert hooked(machine(spec={"lifecycleHooks": hooks})) == ["a.example/x of one", "b.example/y of two"]
    assert hooked(machine()) == []


def test_a_custom_deploy_is_a_target_too() -> None:
    def coreos(spec: BareMetalMachineProviderSpec) -> Resolved:
        return Resolved(None, CustomDeploy(method="install_coreos"), "release")

    found = wanted_of(machine(spec={"providerSpec": {"value": {"customDeploy": {"method": "x"}}}}), coreos)
    assert isinstance(found, Wanted)
    assert found.target.image is None
    assert found.target.custom_deploy == CustomDeploy(method="install_coreos")
