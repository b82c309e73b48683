"""What a Machine says to its provider is read strictly, and told in words when it cannot be done."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ingot.api.crd import crd
from ingot.api.machine import MACHINE_SETS, InvalidProviderSpec, Machine, MachineSet, read_provider_spec
from ingot.api.wire import wire

VALUE: dict[str, Any] = {
    "apiVersion": "baremetal.cluster.k8s.io/v1alpha1",
    "kind": "BareMetalMachineProviderSpec",
    "image": {"url": "http://images/a.qcow2", "checksum": "http://images/a.md5"},
    "userData": {"name": "worker-user-data"},
    "hostSelector": {
        "matchLabels": {"role": "worker"},
        "matchExpressions": [{"key": "rack", "operator": "in", "values": ["1", "2"]}],
    },
    "metadata": {"creationTimestamp": None},
}


def test_a_whole_provider_spec_is_read() -> None:
    spec = read_provider_spec(VALUE)
    assert spec.image.url == "http://images/a.qcow2"
    assert spec.user_data is not None
    assert spec.user_data.name == "worker-user-data"
    assert spec.host_selector.match_labels == {"role": "worker"}
    assert spec.host_selector.match_expressions[0].values == ["1", "2"]


@pytest.mark.parametrize(
    "value",
    [
        VALUE | {"image": None, "customDeploy": {"method": "install_coreos"}},
        {"customDeploy": {"method": "install_coreos"}},
        {"image": {"url": "http://images/a", "checksum": "11"}},
        VALUE | {"hostSelector": None},
        {"hostSelector": {"matchLabels": {"role": "worker"}}},
        VALUE | {"image": {}},
    ],
)
def test_a_machine_may_say_what_to_install_or_leave_it_to_a_default(value: dict[str, Any]) -> None:
    assert read_provider_spec(value)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "is empty"),
        ({}, "is empty"),
        (VALUE | {"imgae": {}}, "has the field imgae, which does not exist"),
        (VALUE | {"image": {"url": "a", "checksum": "b", "format": "raw"}}, "image.format"),
        (VALUE | {"hostSelector": {"matchExpressions": [{"op": "in"}]}}, "matchExpressions[0].op"),
        (VALUE | {"userData": "worker-user-data"}, "wrong sort"),
        (VALUE | {"kind": "AWSMachineProviderConfig"}, "AWSMachineProviderConfig"),
        (VALUE | {"apiVersion": "baremetal.cluster.k8s.io/v2"}, "baremetal.cluster.k8s.io/v2"),
    ],
)
def test_a_provider_spec_that_nothing_can_be_made_from_is_refused_in_words(
    value: dict[str, Any] | None, sentence: str
) -> None:
    with pytest.raises(InvalidProviderSpec) as caught:
        read_provider_spec(value)
    assert sentence in str(caught.value)


def test_a_machine_keeps_what_its_provider_reads() -> None:
    machine = msgspec.convert({"spec": {"providerSpec": {"value": VALUE}}}, Machine)
    assert machine.spec.provider_spec.value == VALUE
    assert wire(machine)["spec"] == {"providerSpec": {"value": VALUE}}


def test_a_set_of_machines_can_be_scaled() -> None:
    (version,) = crd(MACHINE_SETS)["spec"]["versions"]
    assert version["subresources"] == {
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.labelSelector",
        },
        "status": {},
    }
    assert msgspec.convert({}, MachineSet).spec.replicas == 1
