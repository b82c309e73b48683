"""Which host is whose, as both sides write it down."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.machine import Machine
from ingot.api.meta import Key
from ingot.machines.machine.linking import Link, consumer_of, link_of, provider_id
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
        ("", "m/..", None),
        ("", "m/h%2f", None),
        ("baremetalhost:///m/h/", "", None),
        # Hosts of other namespaces are not for a Machine's having, whatever somebody wrote on it.
        ("", "other/h", None),
        ("baremetalhost:///other/h/u-1", "", None),
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
