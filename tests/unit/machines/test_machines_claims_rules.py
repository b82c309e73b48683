"""The decisions about claims that need no API: what is copied, what is handed on, what tenants are told."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import SecretObject
from ingot.api.hostclaim import HostClaim, HostClaimStatus, ObjectPlace
from ingot.api.meta import Key, ObjectMeta
from ingot.api.wire import status_patch
from ingot.machines.claims import data, reboots
from ingot.machines.claims.data import BadSecret, Role
from ingot.machines.claims.linking import claim_of, named_host
from ingot.machines.claims.reconciling import broken_rules
from ingot.machines.claims.taking import target_of
from ingot.machines.claims.telling import (
    Reason,
    news,
    no,
    standing_with,
    standing_without,
    status_of,
    yes,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
IMAGE = {"url": "https://images.example/a.raw", "checksum": "a" * 64}
SYNCED = yes(Reason.SYNCED, "told")


def claim(
    *, annotations: dict[str, str] | None = None, status: dict[str, Any] | None = None, **spec: Any
) -> HostClaim:
    metadata = {"name": "c", "namespace": "tenant", "uid": "u-1", "resourceVersion": "7", "generation": 3}
    body = {
        "metadata": {**metadata, "annotations": annotations or {}},
        "spec": {"poweredOn": True, "image": IMAGE, **spec},
        "status": status or {},
    }
    return msgspec.convert(body, HostClaim)


def host(
    state: str = "available", *, annotations: dict[str, str] | None = None, **more: Any
) -> BareMetalHost:
    body = {
        "metadata": {
            "name": "h",
            "namespace": "racks",
            "uid": "u-h",
            "annotations": annotations or {},
            **more.get("metadata", {}),
        },
        "spec": {"online": True, "image": IMAGE, **more.get("spec", {})},
        "status": {
            "provisioning": {"state": state, "ID": "", **more.get("provisioning", {})},
            **more.get("status", {}),
        },
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=BareMetalHost)


def secret(*, type: str = "Opaque", **values: str) -> SecretObject:
    return SecretObject(
        metadata=ObjectMeta(name="s", namespace="tenant"),
        type=type,
        data={key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    )


# What is copied


def test_a_secret_of_another_namespace_is_not_read() -> None:
    for field in ("userData", "networkData", "metaData"):
        with pytest.raises(BadSecret, match="own namespace, tenant"):
            data.named_secrets(claim(**{field: {"name": "bmc", "namespace": "racks"}}))


def test_a_claim_that_admission_never_saw_is_judged_before_anything_is_done() -> None:
    assert "userData" in broken_rules(claim(userData={"name": "bmc", "namespace": "racks"}))
    assert "userData" in broken_rules(claim(userData={"name": "../bmc"}))
    assert "hostSelector" in broken_rules(
        claim(hostSelector={"matchExpressions": [{"key": "a", "operator": "gt", "values": ["1"]}]})
    )
    assert "spec.image" in broken_rules(claim(image={"url": "file:///etc/shadow", "checksum": "0"}))
    assert "reboot" in broken_rules(claim(annotations={"reboot.metal3.io": "now!"}))
    assert broken_rules(claim()) == ""


def test_nothing_is_copied_for_a_claim_that_installs_nothing() -> None:
    asked = claim(image=None, userData={"name": "words"})
    assert data.named_secrets(asked) == {}
    target = target_of(asked, host(), {})
    assert (target.image, target.user_data) == (None, None)


def test_secrets_are_named_by_the_uid_of_the_claim_and_never_as_the_tenant_names_them() -> None:
    asked = claim(
        image={"url": "oci://registry.example/a", "ociAuthSecretName": "pull"},
        userData={"name": "words"},
        metaData={"name": "meta", "namespace": "tenant"},
    )
    named = data.named_secrets(asked)
    assert named == {
        Role.USER_DATA: Key("tenant", "words"),
        Role.META_DATA: Key("tenant", "meta"),
        Role.PULL_SECRET: Key("tenant", "pull"),
    }
    target = target_of(asked, host(), named)
    assert target.user_data is not None
    assert target.user_data.name == "hostclaim-u-1-user-data"
    assert target.meta_data is not None
    assert target.meta_data.name == "hostclaim-u-1-meta-data"
    assert target.network_data is None
    assert target.image is not None
    assert target.image.oci_auth_secret_name == "hostclaim-u-1-pull-secret"


@given(
    st.sampled_from(list(Role)),
    st.dictionaries(st.sampled_from(["userData", "value", "password", "x"]), st.text()),
)
def test_no_key_is_copied_that_a_host_does_not_read(role: Role, values: dict[str, str]) -> None:
    try:
        content = data.content_of(role, secret(**values))
    except BadSecret:
        return
    assert set(content.data) <= {role.field, "value"}
    assert len(content.data) <= 1
    assert content.type == "Opaque"


@pytest.mark.parametrize(
    ("type_", "key"),
    [
        ("kubernetes.io/dockerconfigjson", ".dockerconfigjson"),
        ("kubernetes.io/dockercfg", ".dockercfg"),
    ],
)
def test_a_pull_secret_keeps_its_type_and_one_key(type_: str, key: str) -> None:
    content = data.content_of(Role.PULL_SECRET, secret(type=type_, **{key: "{}", "more": "x"}))
    assert content.type == type_
    assert list(content.data) == [key]


def test_a_token_of_a_service_account_is_not_made_anew_where_the_host_is() -> None:
    content = data.content_of(
        Role.USER_DATA, secret(type="kubernetes.io/service-account-token", userData="x")
    )
    assert content.type == "Opaque"


# Who has what


def test_only_claims_are_found_on_a_host() -> None:
    def named(**consumer: str) -> Key | None:
        return claim_of(host(spec={"consumerRef": {"name": "c", "namespace": "tenant", **consumer}}))

    assert named(kind="HostClaim", apiVersion="metal3.io/v1alpha1") == Key("tenant", "c")
    assert named(kind="HostClaim", apiVersion="metal3.io/v1beta1") == Key("tenant", "c")
    assert named(kind="HostClaim", apiVersion="other.io/v1") is None
    assert named(kind="Machine", apiVersion="machine.openshift.io/v1beta1") is None
    assert claim_of(host()) is None


def test_a_claim_names_a_host_by_both_its_names() -> None:
    assert named_host(claim(status={"bareMetalHost": {"name": "h", "namespace": "racks"}})) == ("racks", "h")
    assert named_host(claim(status={"bareMetalHost": {"name": "", "namespace": "racks"}})) is None
    assert named_host(claim()) is None


# Reboots


def test_a_reboot_gets_one_number_and_one_at_a_time() -> None:
    asked = claim(annotations={"reboot.metal3.io": '{"mode": "hard"}'})
    changes = reboots.numbered(asked)
    assert changes["reboot.metal3.io"] is None
    number, _, value = str(changes[reboots.ASKED]).partition(" ")
    assert len(number) == 16
    assert value == '{"mode": "hard"}'
    on_its_way = claim(annotations={"reboot.metal3.io": "", reboots.ASKED: f"{number} "})
    assert reboots.numbered(on_its_way) == {}
    assert reboots.numbered(claim()) == {}


def test_a_reboot_that_the_host_has_had_is_not_asked_for_again() -> None:
    asked = claim(annotations={reboots.ASKED: '0123456789abcdef {"mode": "soft"}'})
    assert reboots.on_host(asked, host()) == {
        "reboot.metal3.io": '{"mode": "soft"}',
        reboots.OBEYED: "0123456789abcdef",
    }
    assert reboots.on_host(asked, host(annotations={reboots.OBEYED: "0123456789abcdef"})) == {}
    assert reboots.on_host(claim(annotations={reboots.ASKED: "nonsense"}), host()) == {}


def test_what_holds_a_host_off_for_others_is_left_alone() -> None:
    theirs = {"reboot.metal3.io/remediation": "", "reboot.metal3.io": ""}
    assert reboots.on_host(claim(), host(annotations=theirs)) == {}
    assert reboots.off_host(host(annotations=theirs)) == {}
    ours = f"{reboots.HELD}mine"
    assert reboots.on_host(claim(annotations={"reboot.metal3.io/mine": ""}), host(annotations=theirs)) == {
        ours: ""
    }
    assert reboots.on_host(claim(), host(annotations={**theirs, ours: ""})) == {ours: None}
    assert reboots.off_host(host(annotations={**theirs, ours: "", reboots.OBEYED: "0"})) == {
        ours: None,
        reboots.OBEYED: None,
        "reboot.metal3.io": None,
    }


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=63))
def test_the_name_of_an_annotation_on_the_host_is_never_too_long(key: str) -> None:
    (name,) = reboots.on_host(claim(annotations={f"reboot.metal3.io/{key}": ""}), host())
    assert len(name.rpartition("/")[2]) <= 63


# What is told


def told(asked: HostClaim, found: BareMetalHost) -> dict[str, tuple[str, str]]:
    status = status_of(asked, standing_with(found, SYNCED), at=NOON)
    return {one.type: (one.status, one.reason) for one in status.conditions}


INSTALLED = {"image": {"url": IMAGE["url"]}}


@pytest.mark.parametrize(
    ("found", "provisioned", "available", "ready"),
    [
        (host("available"), ("False", "Provisioning"), ("True", "Available"), ("False", "Provisioning")),
        (host("ready"), ("False", "Provisioning"), ("True", "Available"), ("False", "Provisioning")),
        (
            host("provisioning"),
            ("False", "Provisioning"),
            ("False", "NotAvailable"),
            ("False", "Provisioning"),
        ),
        (host("preparing"), ("False", "Preparing"), ("False", "NotAvailable"), ("False", "Preparing")),
        (host("inspecting"), ("False", "Preparing"), ("False", "NotAvailable"), ("False", "Preparing")),
        (
            host("deprovisioning"),
            ("False", "Deprovisioning"),
            ("False", "NotAvailable"),
            ("False", "Deprovisioning"),
        ),
        (
            host("provisioned", provisioning=INSTALLED),
            ("True", "Provisioned"),
            ("False", "NotAvailable"),
            ("True", "Ready"),
        ),
        # It runs what it ran before, and was told of the new image a moment ago.
        (
            host("provisioned", provisioning={"image": {"url": "https://images.example/old.raw"}}),
            ("False", "Deprovisioning"),
            ("False", "NotAvailable"),
            ("False", "Deprovisioning"),
        ),
        (
            host("available", spec={"online": False}),
            ("False", "NotProvisioned"),
            ("True", "Available"),
            ("False", "NotProvisioned"),
        ),
        (
            host("provisioned", provisioning=INSTALLED, status={"errorType": "power management error"}),
            ("True", "Provisioned"),
            ("False", "NotAvailable"),
            ("False", "Error"),
        ),
        (
            host(
                "provisioned", provisioning=INSTALLED, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}
            ),
            ("True", "Provisioned"),
            ("False", "NotAvailable"),
            ("False", "HostDeleting"),
        ),
        (
            host("no such state"),
            ("False", "Provisioning"),
            ("False", "NotAvailable"),
            ("False", "Provisioning"),
        ),
    ],
)
def test_conditions_follow_the_host(
    found: BareMetalHost, provisioned: tuple[str, str], available: tuple[str, str], ready: tuple[str, str]
) -> None:
    assert told(claim(), found) == {
        "Associated": ("True", "BareMetalHostAssociated"),
        "Synchronized": ("True", "ConfigurationSynced"),
        "Provisioned": provisioned,
        "AvailableForProvisioning": available,
        "Ready": ready,
    }


def test_nothing_that_a_host_says_of_its_faults_is_repeated() -> None:
    for kind in ("registration error", "provisioning error", "detach error", ""):
        status = {"errorType": kind, "errorMessage": "https://10.9.8.7 said no to admin:hunter2"}
        found = host("provisioning", status=status)
        shown = msgspec.json.encode(status_of(claim(), standing_with(found, SYNCED), at=NOON)).decode()
        assert "10.9.8.7" not in shown
        assert "hunter2" not in shown


def test_a_status_that_says_the_same_is_not_written_again() -> None:
    found = host("provisioned", provisioning=INSTALLED)
    first = status_of(claim(), standing_with(found, SYNCED), at=NOON)
    asked = msgspec.structs.replace(claim(), status=first)
    again = status_of(asked, standing_with(found, SYNCED), at=NOON + timedelta(hours=1))
    assert again == first
    assert status_patch(first, again) is None
    assert news(first, again) == []


def test_times_change_with_what_they_are_the_times_of() -> None:
    first = status_of(claim(), standing_with(host(), SYNCED), at=NOON)
    later = NOON + timedelta(hours=1)
    found = host("provisioned", provisioning=INSTALLED)
    second = status_of(msgspec.structs.replace(claim(), status=first), standing_with(found, SYNCED), at=later)
    times = {one.type: one.last_transition_time for one in second.conditions}
    assert times["Associated"] == NOON
    assert times["Provisioned"] == times["Ready"] == later
    assert second.last_updated == later
    assert {one.type for one in news(first, second)} == {"Provisioned", "AvailableForProvisioning", "Ready"}


def test_conditions_of_others_are_kept_and_a_host_that_is_lost_is_taken_out() -> None:
    theirs = {
        "type": "example.com/Billed",
        "status": "True",
        "reason": "Paid",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    before = claim(
        status={
            "bareMetalHost": {"name": "h", "namespace": "racks"},
            "poweredOn": True,
            "conditions": [theirs],
        }
    )
    after = status_of(before, standing_without(no(Reason.NO_HOST, "none")), at=NOON)
    assert [one.type for one in after.conditions][-1] == "example.com/Billed"
    patch = status_patch(before.status, after)
    assert patch is not None
    assert patch["status"]["bareMetalHost"] is None
    assert patch["status"]["poweredOn"] is None


def test_a_claim_goes_on_naming_the_host_that_it_means() -> None:
    meant = ObjectPlace(name="h", namespace="racks")
    after = status_of(claim(), standing_without(no(Reason.NO_HOST, "not yet"), meant=meant), at=NOON)
    assert after.bare_metal_host == meant
    assert isinstance(after, HostClaimStatus)
    assert not after.powered_on
