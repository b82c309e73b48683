"""Who owns which image of a host, in words: the release, and whoever claims the host."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ingot.api.baremetalhost import BareMetalHost, Image
from ingot.api.hostclaim import HostClaim
from ingot.api.installed import mark_of
from ingot.api.machine import Machine
from ingot.api.preprovisioningimage import FINALIZER, PreprovisioningImage
from ingot.hosts.ownership import MANIFEST, NOBODY, RELEASE, Absent, Claimant, images_of

IMAGE = {"url": "https://user:hunter2@images.example/a.qcow2", "checksum": "11"}
MACHINE = {
    "kind": "Machine",
    "apiVersion": "machine.openshift.io/v1beta1",
    "name": "w0",
    "namespace": "cluster",
}
CLAIM = {"kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": "mine", "namespace": "tenant"}
OTHER = {
    "kind": "Metal3Machine",
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
    "name": "w0",
    "namespace": "rack",
}


def host(status: dict[str, Any] | None = None, **spec: Any) -> BareMetalHost:
    body = {"metadata": {"name": "h1", "namespace": "rack"}, "spec": spec, "status": status or {}}
    return msgspec.convert(body, BareMetalHost)


def machine(source: str = "", *, target: str = "") -> Machine:
    noted = {"ingot.metal3.io/image-source": source, "ingot.metal3.io/target": target}
    annotations = {name: value for name, value in noted.items() if value}
    return msgspec.convert({"metadata": {"name": "w0", "annotations": annotations}}, Machine)


def ramdisk(*, by_us: bool = True, **status: Any) -> PreprovisioningImage:
    meta = {"name": "h1", "namespace": "rack", "finalizers": [FINALIZER] if by_us else []}
    return msgspec.convert({"metadata": meta, "status": status}, PreprovisioningImage)


# The provisioning image


@pytest.mark.parametrize(
    ("built", "status", "told"),
    [
        (None, {}, "the ramdisk of the back end"),
        (
            ramdisk(imageUrl="https://i.example/1", format="iso", version="coreos-43"),
            {},
            "coreos-43 (iso)",
        ),
        (ramdisk(imageUrl="https://i.example/1", format="initrd"), {}, "does not tell (initrd)"),
        (ramdisk(), {}, "none yet: it is not built"),
        (
            ramdisk(
                conditions=[
                    {
                        "type": "Ready",
                        "status": "False",
                        "reason": "ConfigurationError",
                        "message": "Architecture not supported",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            ),
            {},
            "none yet: Architecture not supported",
        ),
        (None, {"ramdisk": {"version": "coreos-42", "format": "iso"}}, "coreos-42 (iso) when one was booted"),
    ],
)
def test_which_ramdisk_a_host_boots(
    built: PreprovisioningImage | None, status: dict[str, Any], told: str
) -> None:
    found = images_of(host(status), built=built, claimant=None).provisioning
    assert told in found.image
    assert found.owner == RELEASE
    assert "chooses another" in found.why


def test_what_was_booted_last_is_said_beside_what_comes_next() -> None:
    status = {
        "ramdisk": {"version": "coreos-42", "format": "iso", "bootedAt": "2026-01-02T03:04:05Z"},
    }
    built = ramdisk(imageUrl="https://i.example/1", format="iso", version="coreos-43")
    found = images_of(host(status), built=built, claimant=None).provisioning
    assert found.image == "coreos-43 (iso)"
    assert "coreos-42 was booted last, at 2026-01-02T03:04:05Z" in found.why
    assert "PreprovisioningImage rack/h1" in found.why


def test_a_ramdisk_that_somebody_else_builds_is_not_called_the_releases() -> None:
    built = ramdisk(by_us=False, imageUrl="https://i.example/1", format="iso")
    found = images_of(host(), built=built, claimant=None).provisioning
    assert "not Ingot" in found.owner
    assert "chooses another" not in found.why


@pytest.mark.parametrize("consumer", [None, MACHINE, CLAIM, OTHER])
def test_nobody_who_claims_owns_it(consumer: dict[str, str] | None) -> None:
    found = images_of(host(consumerRef=consumer, image=IMAGE), built=None, claimant=Absent.UNSEEN)
    assert found.provisioning.owner == RELEASE


# The target image


@pytest.mark.parametrize(
    ("spec", "claimant", "owner", "why", "change"),
    [
        ({}, None, NOBODY, "neither spec.consumerRef nor spec.image", "claims the host sets it"),
        ({"image": IMAGE}, None, MANIFEST, "nobody claims", "none deprovisions it"),
        (
            {"image": IMAGE, "consumerRef": MACHINE},
            machine("provider spec"),
            "Machine cluster/w0",
            "its provider spec names it",
            "deleting the Machine deprovisions",
        ),
        (
            {"image": IMAGE, "consumerRef": MACHINE},
            machine("cluster"),
            "Machine cluster/w0",
            "default of the cluster",
            "does not touch it",
        ),
        (
            {"image": IMAGE, "consumerRef": MACHINE},
            machine("release"),
            "Machine cluster/w0",
            "default of the release",
            "does not touch it",
        ),
        ({"consumerRef": MACHINE}, machine(), "Machine cluster/w0", "nobody noted", "decided when"),
        (
            {"consumerRef": MACHINE, "image": {"url": "https://x/b"}},
            machine("cluster", target=mark_of(Image(url="https://x/a"), None)),
            "Machine cluster/w0",
            "somebody changed spec.image",
            "nobody puts it back",
        ),
        (
            {"consumerRef": MACHINE, "image": {"url": "https://x/a"}},
            machine("cluster", target=mark_of(Image(url="https://x/a"), None)),
            "Machine cluster/w0",
            "default of the cluster",
            "decided when",
        ),
        (
            {"consumerRef": MACHINE},
            machine("cluster", target=mark_of(Image(url="https://x/a"), None)),
            "Machine cluster/w0",
            "default of the cluster",
            "decided when",
        ),
        (
            {"image": IMAGE, "consumerRef": CLAIM},
            msgspec.convert({"metadata": {"name": "mine"}, "spec": {"image": IMAGE}}, HostClaim),
            "HostClaim tenant/mine",
            "its spec names the image",
            "another one in the claim installs the machine anew",
        ),
        (
            {"consumerRef": CLAIM},
            msgspec.convert({"metadata": {"name": "mine"}}, HostClaim),
            "HostClaim tenant/mine",
            "nothing is installed",
            "in the claim",
        ),
        (
            {"image": IMAGE, "consumerRef": CLAIM},
            Absent.UNSEEN,
            "HostClaim tenant/mine",
            "cannot be looked at with your credentials",
            "in the claim",
        ),
        (
            {"image": IMAGE, "consumerRef": MACHINE},
            Absent.GONE,
            "Machine cluster/w0",
            "no such Machine exists any more",
            "remove spec.consumerRef",
        ),
        (
            {"image": IMAGE, "consumerRef": OTHER},
            None,
            "Metal3Machine rack/w0",
            "does not look after",
            "by who",
        ),
        (
            {"externallyProvisioned": True},
            None,
            "whoever installed what runs there",
            "used as it is",
            "unset spec.externallyProvisioned",
        ),
    ],
)
def test_whose_the_target_image_is(
    spec: dict[str, Any], claimant: Claimant | None, owner: str, why: str, change: str
) -> None:
    found = images_of(host(**spec), built=None, claimant=claimant).target
    assert found.owner == owner
    assert why in found.why
    assert change in found.change


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({}, "none"),
        ({"image": IMAGE}, "https://******@images.example/a.qcow2"),
        ({"customDeploy": {"method": "install_coreos"}}, "the CoreOS that comes with the release"),
        ({"image": {"format": "coreos"}}, "the CoreOS that comes with the release"),
        (
            {
                "image": {"url": "https://i.example/m", "checksum": "1"},
                "customDeploy": {"method": "install_coreos"},
            },
            "CoreOS from https://i.example/m",
        ),
        ({"customDeploy": {"method": "mine"}}, "what the deploy step mine installs"),
        (
            {"image": {"url": "https://i.example/m", "checksum": "1"}, "customDeploy": {"method": "mine"}},
            "https://i.example/m, by the deploy step mine",
        ),
    ],
)
def test_what_is_to_be_installed_is_named_without_passwords(spec: dict[str, Any], told: str) -> None:
    assert images_of(host(**spec), built=None, claimant=None).target.image == told


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            {"image": {"url": "https://i.example/b", "checksum": "1"}},
            "https://i.example/b, after https://i.example/a",
        ),
        ({}, "none, after https://i.example/a"),
        ({"image": {"url": "https://i.example/a", "checksum": "2"}}, "https://i.example/a"),
    ],
)
def test_what_goes_for_it_is_named_too(spec: dict[str, Any], told: str) -> None:
    status = {
        "provisioning": {"state": "provisioned", "image": {"url": "https://i.example/a", "checksum": "1"}}
    }
    found = images_of(host(status, **spec), built=None, claimant=None).target
    assert found.image.startswith(told)
    assert ("has been removed" in found.image) is ("after" in told)
