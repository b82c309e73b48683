"""What is refused of the kinds around a host, one rule a case, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from ingot.api.admission import FieldError, Kind, check

Json = dict[str, Any]

R, I, F, N = Kind.REQUIRED, Kind.INVALID, Kind.FORBIDDEN, Kind.NOT_SUPPORTED  # noqa: E741 - a table reads better

USUAL: dict[str, Json] = {
    "PreprovisioningImage": {"architecture": "x86_64", "acceptFormats": ["iso"], "networkDataName": "h1-net"},
    "HostFirmwareSettings": {"settings": {"Cores": 4}},
    "HostFirmwareComponents": {
        "updates": [
            {"component": "bios", "url": "https://firmware/bios.bin"},
            {"component": "bmc", "url": "http://firmware/bmc.bin"},
            {"component": "nic:NIC.Integrated.1", "url": "http://firmware/nic.bin"},
        ]
    },
    "DataImage": {"url": "https://images/data.iso"},
    "BMCEventSubscription": {
        "hostName": "h1",
        "destination": "https://collector/events",
        "context": "rack 3",
        "httpHeadersRef": {"name": "headers", "namespace": "lab"},
    },
    "HostClaim": {
        "poweredOn": True,
        "image": {"url": "http://images/a", "checksum": "ab" * 32},
        "userData": {"name": "u", "namespace": "lab"},
        "failureDomain": "rack-3",
        "hostSelector": {
            "inNamespace": "hosts",
            "matchLabels": {"example.com/role": "worker", "empty": ""},
            "matchExpressions": [
                {"key": "rack", "operator": "in", "values": ["1", "2"]},
                {"key": "rack", "operator": "NotIn", "values": ["3"]},
                {"key": "rack", "operator": "=", "values": ["1"]},
                {"key": "rack", "operator": "==", "values": ["1"]},
                {"key": "rack", "operator": "!=", "values": ["4"]},
                {"key": "rack", "operator": "exists", "values": []},
                {"key": "broken", "operator": "!", "values": []},
            ],
        },
    },
    "HostDeployPolicy": {
        "hostClaimNamespaces": {
            "names": ["tenant-1"],
            "nameMatches": "^tenant-[0-9]+$",
            "hasLabels": [{"name": "example.com/tenant"}, {"name": "tier", "value": "gold"}],
        }
    },
    "BareMetalSwitch": {
        "address": "10.0.0.1",
        "macAddress": "52:54:00:00:00:01",
        "deviceType": "netmiko_cisco_ios",
        "credentials": {"name": "switch-1"},
    },
    "HostNetworkAttachment": {"mode": "trunk", "nativeVLAN": 1, "allowedVLANs": ["2", "100-199", "4094"]},
}


def document(kind: str, spec: Json, **annotations: str) -> Json:
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "x1", "namespace": "lab", "annotations": annotations},
        "spec": spec,
    }


def created(kind: str, spec: Json) -> list[FieldError]:
    return check("metal3.io", kind, document(kind, spec), None)


@pytest.mark.parametrize("kind", USUAL)
def test_what_is_usual_is_accepted(kind: str) -> None:
    assert created(kind, USUAL[kind]) == []


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("PreprovisioningImage", {}),
        ("HostFirmwareComponents", {"updates": []}),
        ("BMCEventSubscription", {"destination": "http://collector/", "httpHeadersRef": {"name": "h"}}),
        ("HostClaim", {"image": None, "hostSelector": {}}),
        ("HostClaim", {"image": {"url": "", "format": "coreos"}}),
        ("HostDeployPolicy", {"hostClaimNamespaces": None}),
        ("HostDeployPolicy", {"hostClaimNamespaces": {}}),
        ("BareMetalSwitch", {"address": "fd00::1"}),
        ("BareMetalSwitch", {"address": "switch-1.example.com", "credentials": None}),
        ("HostNetworkAttachment", {"mode": "access", "allowedVLANs": []}),
        ("HostNetworkAttachment", {"mode": "hybrid", "allowedVLANs": ["1-4094"]}),
    ],
)
def test_what_is_less_usual_is_accepted_too(kind: str, spec: Json) -> None:
    assert created(kind, USUAL[kind] | spec) == []


def updates(component: str = "bios", url: str = "http://f/a") -> Json:
    return {"updates": [{"component": component, "url": url}]}


def matching(**expression: Any) -> Json:
    return {
        "hostSelector": {
            "matchExpressions": [{"key": "rack", "operator": "in", "values": ["1"]} | expression]
        }
    }


def policy(**fields: Any) -> Json:
    return {"hostClaimNamespaces": fields}


EXPRESSION = "spec.hostSelector.matchExpressions[0]"
LONG = "a" * 64

REFUSED: list[tuple[str, str, Json, str, Kind, str]] = [
    (
        "PreprovisioningImage",
        "a Secret elsewhere in the API",
        {"networkDataName": "../other/secrets/x"},
        "spec.networkDataName",
        I,
        "no Secret can have this name",
    ),
    (
        "HostFirmwareComponents",
        "a component nobody has",
        updates("fan"),
        "spec.updates[0].component",
        N,
        "bmc, bios",
    ),
    (
        "HostFirmwareComponents",
        "a nameless adapter",
        updates("nic:"),
        "spec.updates[0].component",
        N,
        "nic:NAME",
    ),
    ("HostFirmwareComponents", "a file", updates(url="file:///a"), "spec.updates[0].url", N, "one of: http"),
    ("HostFirmwareComponents", "no URL", updates(url=""), "spec.updates[0].url", I, "printable"),
    ("DataImage", "a file", {"url": "file:///a.iso"}, "spec.url", N, "one of: http"),
    ("DataImage", "no host", {"url": "http:///a.iso"}, "spec.url", I, "names no host"),
    (
        "BMCEventSubscription",
        "no destination",
        {"destination": ""},
        "spec.destination",
        R,
        "https://HOST/PATH",
    ),
    ("BMCEventSubscription", "no path", {"destination": "https://c"}, "spec.destination", I, "slash"),
    ("BMCEventSubscription", "no URL", {"destination": "collector"}, "spec.destination", N, "http, https"),
    ("BMCEventSubscription", "no host", {"hostName": ""}, "spec.hostName", R, "whose events"),
    (
        "BMCEventSubscription",
        "an impossible host",
        {"hostName": "a/b"},
        "spec.hostName",
        I,
        "no BareMetalHost",
    ),
    (
        "BMCEventSubscription",
        "headers from another namespace",
        {"httpHeadersRef": {"name": "h", "namespace": "other"}},
        "spec.httpHeadersRef.namespace",
        F,
        "'lab', not in 'other'",
    ),
    (
        "BMCEventSubscription",
        "headers from an impossible Secret",
        {"httpHeadersRef": {"name": "H"}},
        "spec.httpHeadersRef.name",
        I,
        "no Secret",
    ),
    (
        "HostClaim",
        "an image from a file",
        {"image": {"url": "file:///a", "checksum": "ab"}},
        "spec.image.url",
        N,
        "one of: http",
    ),
    (
        "HostClaim",
        "an image without a checksum",
        {"image": {"url": "http://i/a"}},
        "spec.image.checksum",
        R,
        "needs a checksum",
    ),
    (
        "HostClaim",
        "a Secret of another namespace",
        {"userData": {"name": "u", "namespace": "hosts"}},
        "spec.userData.namespace",
        F,
        "'lab', not in 'hosts'",
    ),
    ("HostClaim", "an impossible Secret", {"metaData": {"name": "M"}}, "spec.metaData.name", I, "no Secret"),
    ("HostClaim", "an impossible domain", {"failureDomain": "a b"}, "spec.failureDomain", I, "this value"),
    (
        "HostClaim",
        "an impossible namespace",
        {"hostSelector": {"inNamespace": "a.b"}},
        "spec.hostSelector.inNamespace",
        I,
        "no namespace",
    ),
    (
        "HostClaim",
        "a label that cannot be",
        {"hostSelector": {"matchLabels": {"a b": "c"}}},
        "spec.hostSelector.matchLabels",
        I,
        "this name",
    ),
    (
        "HostClaim",
        "a label that is too long",
        {"hostSelector": {"matchLabels": {f"example.com/{LONG}": "c"}}},
        "spec.hostSelector.matchLabels",
        I,
        "up to 63",
    ),
    (
        "HostClaim",
        "a value that is too long",
        {"hostSelector": {"matchLabels": {"a": LONG}}},
        "spec.hostSelector.matchLabels[a]",
        I,
        "up to 63",
    ),
    ("HostClaim", "an expression without a key", matching(key=""), f"{EXPRESSION}.key", I, "this name"),
    ("HostClaim", "an impossible value", matching(values=["-"]), f"{EXPRESSION}.values[0]", I, "this value"),
    ("HostClaim", "an unknown operator", matching(operator="~"), f"{EXPRESSION}.operator", N, "notin"),
    ("HostClaim", "greater than", matching(operator="gt"), f"{EXPRESSION}.operator", N, "use one of"),
    ("HostClaim", "in nothing", matching(values=[]), f"{EXPRESSION}.values", R, "at least one"),
    (
        "HostClaim",
        "notin nothing",
        matching(operator="notin", values=[]),
        f"{EXPRESSION}.values",
        R,
        "at least",
    ),
    (
        "HostClaim",
        "= two",
        matching(operator="=", values=["1", "2"]),
        f"{EXPRESSION}.values",
        I,
        "exactly one",
    ),
    ("HostClaim", "!= nothing", matching(operator="!=", values=[]), f"{EXPRESSION}.values", I, "exactly one"),
    ("HostClaim", "exists as", matching(operator="exists"), f"{EXPRESSION}.values", F, "no value"),
    ("HostClaim", "absent as", matching(operator="!"), f"{EXPRESSION}.values", F, "no value"),
    (
        "HostDeployPolicy",
        "an impossible namespace",
        policy(names=["ok", "Not OK"]),
        "spec.hostClaimNamespaces.names[1]",
        I,
        "no namespace",
    ),
    (
        "HostDeployPolicy",
        "a pattern that is none",
        policy(nameMatches="tenant-("),
        "spec.hostClaimNamespaces.nameMatches",
        I,
        "a '(' is not closed",
    ),
    (
        "HostDeployPolicy",
        "a pattern without end",
        policy(nameMatches="a" * 1025),
        "spec.hostClaimNamespaces.nameMatches",
        I,
        "too long",
    ),
    (
        "HostDeployPolicy",
        "an impossible label",
        policy(hasLabels=[{"name": "/x"}]),
        "spec.hostClaimNamespaces.hasLabels[0].name",
        I,
        "this name",
    ),
    (
        "HostDeployPolicy",
        "an impossible label value",
        policy(hasLabels=[{"name": "x", "value": "-"}]),
        "spec.hostClaimNamespaces.hasLabels[0].value",
        I,
        "this value",
    ),
    ("BareMetalSwitch", "no address", {"address": ""}, "spec.address", R, "IP address"),
    ("BareMetalSwitch", "an address with a port", {"address": "10.0.0.1:22"}, "spec.address", I, "spec.port"),
    ("BareMetalSwitch", "an address of two lines", {"address": "a\n[b]"}, "spec.address", I, "neither"),
    (
        "BareMetalSwitch",
        "a type that is a setting of its own",
        {"deviceType": "x\nip = 10.0.0.9"},
        "spec.deviceType",
        I,
        "netmiko",
    ),
    ("BareMetalSwitch", "no type", {"deviceType": ""}, "spec.deviceType", I, "netmiko"),
    (
        "BareMetalSwitch",
        "credentials of another namespace",
        {"credentials": {"name": "s", "namespace": "other"}},
        "spec.credentials.namespace",
        F,
        "'other'",
    ),
    (
        "BareMetalSwitch",
        "credentials nobody can have",
        {"credentials": {"name": "a/b"}},
        "spec.credentials.name",
        I,
        "no Secret",
    ),
    (
        "HostNetworkAttachment",
        "several VLANs on an access port",
        {"mode": "access"},
        "spec.allowedVLANs",
        F,
        "access mode",
    ),
    ("HostNetworkAttachment", "VLAN 0", {"allowedVLANs": ["0"]}, "spec.allowedVLANs[0]", I, "1 to 4094"),
    (
        "HostNetworkAttachment",
        "VLAN 4095",
        {"allowedVLANs": ["1", "4095"]},
        "spec.allowedVLANs[1]",
        I,
        "4094",
    ),
    ("HostNetworkAttachment", "beyond", {"allowedVLANs": ["9-4095"]}, "spec.allowedVLANs[0]", I, "1 to 4094"),
    (
        "HostNetworkAttachment",
        "descending",
        {"allowedVLANs": ["9-8"]},
        "spec.allowedVLANs[0]",
        I,
        "less than",
    ),
    ("HostNetworkAttachment", "a range of one", {"allowedVLANs": ["9-9"]}, "spec.allowedVLANs[0]", I, "less"),
    ("HostNetworkAttachment", "words", {"allowedVLANs": ["all"]}, "spec.allowedVLANs[0]", I, "like 100"),
]


@pytest.mark.parametrize(
    ("kind", "spec", "path", "sort", "words"),
    [pytest.param(kind, *case, id=f"{kind}: {name}") for kind, name, *case in REFUSED],
)
def test_what_breaks_a_rule_is_refused_with_the_field_and_the_reason(
    kind: str, spec: Json, path: str, sort: Kind, words: str
) -> None:
    (error,) = created(kind, USUAL[kind] | spec)
    assert (error.path, error.kind) == (path, sort)
    assert words in error.message


def test_a_claim_obeys_the_same_reboot_annotations_as_a_host() -> None:
    def annotated(value: str) -> list[FieldError]:
        claim = document("HostClaim", USUAL["HostClaim"], **{"reboot.metal3.io": value})
        return check("metal3.io", "HostClaim", claim, None)

    assert annotated("") == annotated('{"mode": "soft"}') == []
    (error,) = annotated('{"mode": "gentle"}')
    assert error.path == "metadata.annotations[reboot.metal3.io]"


def test_a_subscription_cannot_be_changed() -> None:
    old = document("BMCEventSubscription", USUAL["BMCEventSubscription"])
    new = document("BMCEventSubscription", USUAL["BMCEventSubscription"] | {"context": "rack 4"})
    (error,) = check("metal3.io", "BMCEventSubscription", new, old)
    assert (error.path, error.kind) == ("spec", F)
    assert check("metal3.io", "BMCEventSubscription", old, old) == []


def test_a_password_in_a_refused_destination_is_not_repeated() -> None:
    spec = USUAL["BMCEventSubscription"] | {"destination": "https://me:hunter2@collector"}
    (error,) = created("BMCEventSubscription", spec)
    assert "hunter2" not in f"{error} {error!r}"


def test_what_a_rule_would_refuse_today_can_still_lose_its_finalizer() -> None:
    old = document("DataImage", {"url": "file:///a.iso"})
    new = old | {"metadata": old["metadata"] | {"finalizers": []}}
    assert check("metal3.io", "DataImage", new, old) == []


def test_an_object_that_cannot_be_read_is_told_as_such() -> None:
    (error,) = created("DataImage", {"url": 7})
    assert "this is not a DataImage" in error.message
