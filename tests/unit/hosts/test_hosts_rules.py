"""Hosts that an API without our admission rules let through are not acted upon."""

import msgspec
import pytest

from ingot.api.baremetalhost import BareMetalHost
from ingot.hosts.rules import broken_rules


def host(**spec: object) -> BareMetalHost:
    bmc = {"address": "redfish-virtualmedia://10.0.0.1/redfish/v1/Systems/1", "credentialsName": "bmc"}
    body = {"metadata": {"name": "h1", "namespace": "rack"}, "spec": {"online": True, "bmc": bmc} | spec}
    return msgspec.convert(body, BareMetalHost)


def test_a_host_that_keeps_the_rules_goes_on() -> None:
    assert broken_rules(host()) == ""


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"bmc": {"address": "gopher://10.0.0.1", "credentialsName": "bmc"}}, "spec.bmc.address"),
        ({"userData": {"name": "u", "namespace": "elsewhere"}}, "spec.userData"),
        ({"image": {"url": "file:///etc/shadow", "checksum": "x"}}, "spec.image"),
        (
            {
                "image": {"url": "", "format": "coreos"},
                "raid": {"softwareRAIDVolumes": [{"level": "1"}]},
            },
            "spec.raid.softwareRAIDVolumes",
        ),
    ],
)
def test_a_host_that_breaks_one_says_which_field(spec: dict[str, object], field: str) -> None:
    assert field in broken_rules(host(**spec))


@pytest.mark.parametrize(
    "annotation", ["inspect.metal3.io", "reboot.metal3.io", "inspect.metal3.io/hardwaredetails"]
)
def test_a_value_that_an_annotation_should_not_have_holds_up_nobody(annotation: str) -> None:
    named = host()
    metadata = msgspec.structs.replace(named.metadata, annotations={annotation: "please"})
    assert broken_rules(msgspec.structs.replace(named, metadata=metadata)) == ""
