"""Which host is whose, and what a Machine says of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ingot.api.baremetalhost import BareMetalHost, HardwareDetails
from ingot.api.hardwaredata import NIC
from ingot.api.machine import Machine
from ingot.api.meta import Key
from ingot.machines.machine.linking import Link, consumer_of, link_of, provider_id
from ingot.machines.machine.telling import Phase, addresses_of, phase_of
from ingot.machines.vacancies import belongs_to


def machine(**more: Any) -> Machine:
    body = {
        "metadata": {"name": "worker-0", "namespace": "m", "annotations": more.get("annotations", {})}
        | more.get("metadata", {}),
        "spec": {"providerID": more.get("provider_id", "")},
        "status": more.get("status", {}),
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=Machine)


def host(state: str = "available", **spec: Any) -> BareMetalHost:
    body = {
        "metadata": {"name": "h", "namespace": "m", "uid": "u-1"},
        "spec": {"online": False, **spec},
        "status": {"provisioning": {"state": state}},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=BareMetalHost)


@pytest.mark.parametrize(
    ("provider", "annotation", "link"),
    [
        ("", "", None),
        ("", "m/h", Link(Key("m", "h"))),
        ("baremetalhost:///m/h/u-1", "", Link(Key("m", "h"), "u-1")),
        ("baremetalhost:///m/h", "", Link(Key("m", "h"))),
        ("baremetalhost:///m/h/u-1", "m/other", Link(Key("m", "h"), "u-1")),
        ("metal3://m/h/worker-0", "m/other", Link(Key("m", "other"))),
        ("baremetalhost:///h", "", None),
        ("baremetalhost:///m/h/u/v", "", None),
        ("", "h", None),
        ("", "m/h/u-1", None),
        ("", "m/", None),
    ],
)
def test_a_machine_names_its_host_by_provider_id_and_before_that_by_annotation(
    provider: str, annotation: str, link: Link | None
) -> None:
    annotations = {"metal3.io/BareMetalHost": annotation} if annotation else {}
    assert link_of(machine(provider_id=provider, annotations=annotations)) == link


def test_another_host_of_the_same_name_is_not_the_one_that_was_meant() -> None:
    assert Link(Key("m", "h"), "u-1").means(host())
    assert Link(Key("m", "h")).means(host())
    assert not Link(Key("m", "h"), "u-0").means(host())
    assert not Link(Key("m", "i")).means(host())


def test_what_a_machine_writes_on_a_host_is_what_it_looks_for() -> None:
    mine = consumer_of(machine())
    assert belongs_to(host(consumerRef=msgspec.to_builtins(mine)), mine)
    assert provider_id(host()) == "baremetalhost:///m/h/u-1"


@pytest.mark.parametrize(
    ("what", "state", "phase"),
    [
        ({}, None, Phase.PROVISIONING),
        ({}, "provisioning", Phase.PROVISIONING),
        ({}, "provisioned", Phase.PROVISIONED),
        ({}, "externally provisioned", Phase.PROVISIONED),
        ({"status": {"nodeRef": {"name": "n"}}}, "provisioned", Phase.RUNNING),
        ({"status": {"errorReason": "InsufficientResources"}}, None, Phase.PROVISIONING),
        ({"status": {"errorReason": "InvalidConfiguration"}}, None, Phase.FAILED),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "provisioned", Phase.DELETING),
    ],
)
def test_the_phase_says_where_a_machine_is(what: dict[str, Any], state: str | None, phase: Phase) -> None:
    assert phase_of(machine(**what), host(state) if state else None) == phase


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
