"""A Machine or a claim in words: which host it has, or why it has none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ingot.api.baremetalhost import BareMetalHost, Image
from ingot.api.hostclaim import HostClaim
from ingot.api.installed import mark_of
from ingot.api.machine import Machine
from ingot.machines.explaining import NOTHING_TO_DO, explain_claim, explain_machine

OF_MACHINE = {
    "kind": "Machine",
    "apiVersion": "machine.openshift.io/v1beta1",
    "name": "w0",
    "namespace": "n",
}
OF_CLAIM = {"kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": "c0", "namespace": "n"}
DELETED = "2026-01-01T00:00:00Z"
ID = "baremetalhost:///n/h1/uid-1"
LINK = {"metal3.io/BareMetalHost": "n/h1"}


def host(state: str, *, consumer: dict[str, str] | None = None, **status: Any) -> BareMetalHost:
    body = {
        "metadata": {"name": "h1", "namespace": "n", "uid": "uid-1"},
        "spec": {"consumerRef": consumer} if consumer else {},
        "status": {"provisioning": {"state": state}} | status,
    }
    return msgspec.convert(body, BareMetalHost)


def machine(
    *, annotations: dict[str, str] | None = None, deleted: bool = False, status: Any = None, **spec: Any
) -> Machine:
    meta: dict[str, Any] = {"name": "w0", "namespace": "n", "annotations": annotations or {}}
    if deleted:
        meta["deletionTimestamp"] = DELETED
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status or {}}, Machine)


MINE = host("provisioned", consumer=OF_MACHINE)


@pytest.mark.parametrize(
    ("found", "of", "state", "why", "coming"),
    [
        (machine(), None, "has no host", "2 hosts are claimed already", "it takes a host"),
        (
            machine(status={"errorMessage": "No available BareMetalHost found"}),
            None,
            "has no host",
            "2 hosts are claimed already",
            "it takes a host",
        ),
        (
            machine(status={"errorReason": "InvalidConfiguration", "errorMessage": "imgae does not exist"}),
            None,
            "has no host",
            "imgae does not exist",
            "it is looked at again",
        ),
        (
            machine(annotations=LINK),
            host("available"),
            "is about to take n/h1",
            "chosen",
            "the host is claimed",
        ),
        (
            machine(annotations=LINK),
            host("available", consumer=OF_CLAIM),
            "meant to take n/h1",
            "belongs to HostClaim n/c0",
            "it takes another",
        ),
        (machine(annotations=LINK), None, "meant to take n/h1, which is gone", "deleted", "it takes another"),
        (machine(providerID=ID), None, "had n/h1", "that host is gone", "it stays as it is"),
        (
            machine(providerID=ID),
            host("provisioned", consumer=OF_CLAIM),
            "had n/h1",
            "belongs to HostClaim n/c0",
            "it stays as it is",
        ),
        # One of the same name that came after it is not the host it had.
        (
            machine(providerID="baremetalhost:///n/h1/uid-0"),
            MINE,
            "had n/h1",
            "that host is gone",
            "it stays as it is",
        ),
        (
            machine(annotations=LINK),
            host("provisioning", consumer=OF_MACHINE),
            "has n/h1",
            "the host is provisioning",
            "the host is provisioned",
        ),
        (
            machine(annotations=LINK),
            host("registering", consumer=OF_MACHINE, errorMessage="the BMC is away"),
            "has n/h1",
            "the BMC is away",
            "the host is provisioned",
        ),
        (machine(providerID=ID), MINE, "has n/h1", "no node has come of it yet", "its node appears"),
        (
            machine(providerID=ID, status={"nodeRef": {"name": "node-7"}}),
            MINE,
            "has n/h1",
            "runs the node node-7",
            "it stays",
        ),
        (machine(providerID=ID, deleted=True), MINE, "is being deleted", "is removed first", "given back"),
        (
            machine(providerID=ID, deleted=True),
            host("available", consumer=OF_MACHINE),
            "is being deleted",
            "n/h1 is empty",
            "given back",
        ),
        (machine(deleted=True), None, "is being deleted", "no host any more", "it is gone"),
        (
            machine(
                deleted=True,
                providerID=ID,
                lifecycleHooks={"preTerminate": [{"name": "wait-for-me", "owner": "backup"}]},
            ),
            MINE,
            "is being deleted",
            "backup asked to be waited for",
            "what is installed is removed",
        ),
    ],
)
def test_where_a_machine_is_and_what_comes_next(
    found: Machine, of: BareMetalHost | None, state: str, why: str, coming: str
) -> None:
    told = explain_machine(found, host=of, passed_over="2 hosts are claimed already")
    assert told.claimant == "Machine n/w0"
    assert told.state == state
    assert why in told.why
    assert coming in told.next
    assert told.when
    assert told.do


def test_a_host_that_may_not_be_seen_is_not_said_to_be_gone() -> None:
    annotations = {"machine.openshift.io/instance-state": "provisioning"}
    found = machine(providerID=ID, annotations=annotations)
    told = explain_machine(found, host=None, passed_over="", unseen=True)
    assert told.state == "has n/h1"
    assert "cannot be looked at with your credentials; the Machine says that it is provisioning" in told.why


def test_a_host_in_trouble_is_where_to_look() -> None:
    told = explain_machine(
        machine(annotations=LINK),
        host=host("registering", consumer=OF_MACHINE, errorMessage="the BMC is away"),
        passed_over="",
    )
    assert told.do == "ingot explain -n n bmh/h1"


@pytest.mark.parametrize(
    ("noted", "value", "source"),
    [
        ("release", {"image": {"url": "a"}}, "the default of the release"),
        ("cluster", {}, "the default of the cluster"),
        ("provider spec", {}, "its provider spec"),
        ("", {"image": {"url": "a"}}, "its provider spec"),
        ("", {"customDeploy": {"method": "a"}}, "its provider spec"),
        ("", {"hostSelector": {}}, "the default of the cluster, else the default of the release"),
    ],
)
def test_who_names_the_image_of_a_machine(noted: str, value: dict[str, Any], source: str) -> None:
    annotations = {"ingot.metal3.io/image-source": noted} if noted else {}
    found = machine(annotations=annotations, providerSpec={"value": value})
    assert explain_machine(found, host=None, passed_over="").source == source


def test_who_changed_the_image_on_the_host_of_a_machine_is_said_to_name_it() -> None:
    decided = {
        **LINK,
        "ingot.metal3.io/image-source": "cluster",
        "ingot.metal3.io/target": mark_of(Image(url="https://x/a"), None),
    }
    found = machine(annotations=decided)
    for url, said in {
        "https://x/a": "the default of the cluster",
        "https://x/b": "whoever changed it on the host; what was decided for the Machine, from the default of the cluster",
    }.items():
        its_host = replace(MINE, spec=replace(MINE.spec, image=Image(url=url)))
        assert explain_machine(found, host=its_host, passed_over="").source.startswith(said)
    # Of a host that may not be seen, what was noted is known.
    noted = machine(annotations={**decided, "ingot.metal3.io/target-replaced": "0123456789abcdef"})
    told = explain_machine(noted, host=None, passed_over="", unseen=True)
    assert told.source.startswith("whoever changed it on the host")


# Claims


def claim(
    *, named: bool = False, deleted: bool = False, conditions: Any = (), image: bool = True, **spec: Any
) -> HostClaim:
    meta: dict[str, Any] = {"name": "c0", "namespace": "n"}
    if deleted:
        meta["deletionTimestamp"] = DELETED
    if image:
        spec["image"] = {"url": "https://i.example/a", "checksum": "1"}
    status: dict[str, Any] = {"conditions": list(conditions)}
    if named:
        status["bareMetalHost"] = {"name": "h1", "namespace": "n"}
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, HostClaim)


def condition(kind: str, status: str, message: str = "") -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": "Told",
        "message": message,
        "lastTransitionTime": DELETED,
    }


@pytest.mark.parametrize(
    ("found", "of", "state", "why", "coming"),
    [
        (claim(), None, "has no host", "nobody has looked at it yet", "it takes a host"),
        (
            claim(conditions=[condition("Associated", "False", "1 host is claimed already.")]),
            None,
            "has no host",
            "1 host is claimed already",
            "it takes a host",
        ),
        (
            claim(
                conditions=[
                    condition("Associated", "False", "No host is taken before it can be carried out."),
                    condition("Synchronized", "False", "Secret user-data does not exist."),
                ]
            ),
            None,
            "has no host",
            "Secret user-data does not exist.",
            "it is looked at again",
        ),
        (
            claim(named=True, conditions=[condition("Associated", "True")]),
            None,
            "has n/h1",
            "what is wanted of it is done",
            "it stays",
        ),
        (
            claim(
                named=True,
                conditions=[
                    condition("Associated", "True"),
                    condition("Provisioned", "False", "being written"),
                ],
            ),
            None,
            "has n/h1",
            "being written",
            "it goes on",
        ),
        (claim(named=True), host("available"), "is about to take n/h1", "chosen", "the host is claimed"),
        (
            claim(named=True),
            host("available", consumer=OF_MACHINE),
            "meant to take n/h1",
            "belongs to Machine n/w0",
            "it takes another",
        ),
        (
            claim(named=True),
            host("provisioned", consumer=OF_CLAIM),
            "has n/h1",
            "the host is provisioned",
            "it stays",
        ),
        (
            claim(named=True, image=False),
            host("available", consumer=OF_CLAIM),
            "has n/h1",
            "names nothing to install",
            "the host is provisioned",
        ),
        (
            claim(named=True),
            host("provisioning", consumer=OF_CLAIM),
            "has n/h1",
            "the host is provisioning",
            "the host is provisioned",
        ),
        (
            claim(named=True, deleted=True),
            host("deprovisioning", consumer=OF_CLAIM),
            "is being deleted",
            "the host is deprovisioning",
            "given back",
        ),
    ],
)
def test_where_a_claim_is_and_what_comes_next(
    found: HostClaim, of: BareMetalHost | None, state: str, why: str, coming: str
) -> None:
    told = explain_claim(found, host=of, passed_over="")
    assert told.claimant == "HostClaim n/c0"
    assert told.state == state
    assert why in told.why
    assert coming in told.next


def test_what_was_counted_just_now_is_truer_than_what_was_told_before() -> None:
    told = condition("Associated", "False", "No host can be had: 7 hosts are in error.")
    later = condition("Synchronized", "False", "There is no host yet.")
    found = claim(conditions=[told, later | {"reason": "BareMetalHostNotSynchronized"}])
    assert explain_claim(found, host=None, passed_over="1 host is new").why == "1 host is new"
    assert "7 hosts" in explain_claim(found, host=None, passed_over="").why


def test_who_names_the_image_of_a_claim() -> None:
    assert explain_claim(claim(), host=None, passed_over="").source == "the claim itself"
    assert "nothing is installed" in explain_claim(claim(image=False), host=None, passed_over="").source


def test_what_goes_on_by_itself_asks_nothing_of_anybody() -> None:
    told = explain_machine(machine(annotations=LINK), host=host("available"), passed_over="")
    assert told.do == NOTHING_TO_DO
