"""Ramdisks of a host's own: asked for, waited for, accepted only when they fit; and the usual one with its network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from rack import IMAGE, Rack

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost, ErrorType
from ingot.api.core import EVENTS, SECRETS
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import (
    HOST_FINALIZER,
    PREPROVISIONING_IMAGES,
    PreprovisioningImage,
)
from ingot.hosts import HostSettings
from ingot.hosts.beside.boots import is_of
from ingot.hosts.beside.ramdisks import may_boot, wanted, what_is_missing
from ingot.kube import NotFound
from ingot.provisioner import Busy, Failed

OWN = pytest.mark.parametrize("settings", [HostSettings(own_ramdisks=True)], ids=["own ramdisks"])


@pytest.fixture
def key(rack: Rack) -> Key:
    rack.backend.own_ramdisk_formats = ("iso", "initrd")
    return Key(rack.namespace, "h1")


async def image(rack: Rack, key: Key) -> PreprovisioningImage:
    return await rack.client.get(PREPROVISIONING_IMAGES, key)


async def is_waited_for(rack: Rack, key: Key) -> PreprovisioningImage:
    await rack.until(key, lambda host: "waiting for the ramdisk" in str(host.status.conditions))
    return await image(rack, key)


async def build(rack: Rack, key: Key, **more: Any) -> None:
    """What the controller that builds images does."""
    asked = await image(rack, key)
    network: dict[str, str] = {}
    if asked.spec.network_data_name:
        secret = await rack.client.get(SECRETS, Key(rack.namespace, asked.spec.network_data_name))
        network = {"name": secret.metadata.name, "version": secret.metadata.resource_version}
    status = {
        "imageUrl": "https://images.example/h1.iso",
        "format": "iso",
        "architecture": asked.spec.architecture,
        "networkData": network,
        "conditions": [condition("Ready", asked.metadata.generation), condition("Error", status="False")],
    }
    await rack.client.patch(PREPROVISIONING_IMAGES, key, {"status": status | more}, subresource="status")


def condition(kind: str, generation: int = 1, *, status: str = "True", message: str = "") -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "reason": "ImageSuccess",
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


@OWN
async def test_a_host_asks_for_its_ramdisk_and_goes_on_when_it_is_built(rack: Rack, key: Key) -> None:
    await rack.host(architecture="x86_64")
    asked = await is_waited_for(rack, key)
    host = await rack.get(key)
    assert host.state == "inspecting"
    assert asked.spec.accept_formats == ["iso", "initrd"]
    assert asked.spec.architecture == "x86_64"
    assert [(owner.uid, owner.controller) for owner in asked.metadata.owner_references] == [
        (host.metadata.uid, True)
    ]
    assert HOST_FINALIZER in asked.metadata.finalizers
    assert rack.backend.machines[key].inspections == []
    await build(rack, key)
    await rack.until(key, lambda host: host.state == "available" and host.status.powered_on)
    access = rack.backend.machines[key].access
    assert access is not None
    assert access.ramdisk is not None
    assert (access.ramdisk.url, access.ramdisk.format) == ("https://images.example/h1.iso", "iso")


@OWN
async def test_an_initrd_comes_with_its_kernel_and_arguments(rack: Rack, key: Key) -> None:
    rack.backend.own_ramdisk_formats = ("initrd",)
    await rack.host()
    await is_waited_for(rack, key)
    await build(
        rack, key, format="initrd", kernelUrl="https://images.example/kernel", extraKernelParams="ip=dhcp"
    )
    await rack.until_well(key, "available")
    access = rack.backend.machines[key].access
    assert access is not None
    assert access.ramdisk is not None
    assert access.ramdisk.kernel_url == "https://images.example/kernel"
    assert access.ramdisk.kernel_params == "ip=dhcp"


@OWN
async def test_labels_of_the_host_are_copied_and_those_of_others_stay(rack: Rack, key: Key) -> None:
    await rack.host()
    await is_waited_for(rack, key)
    await rack.client.patch(PREPROVISIONING_IMAGES, key, {"metadata": {"labels": {"theirs": "1"}}})
    await rack.client.patch(BARE_METAL_HOSTS, key, {"metadata": {"labels": {"rack": "r7"}}})
    rack.backend.tell(key)
    await build(rack, key)
    await rack.until_well(key, "available")
    rack.backend.tell(key)
    await rack.settle()
    assert (await image(rack, key)).metadata.labels == {"theirs": "1", "rack": "r7"}
    assert "theirs" not in (await rack.get(key)).metadata.labels


@OWN
async def test_an_image_that_cannot_be_built_is_an_error_until_it_can(rack: Rack, key: Key) -> None:
    await rack.host()
    await is_waited_for(rack, key)
    failed = [condition("Error", message="the disk of the builder is full")]
    await rack.client.patch(
        PREPROVISIONING_IMAGES, key, {"status": {"conditions": failed}}, subresource="status"
    )
    host = await rack.until_error(key, "the disk of the builder is full")
    assert host.status.error_type == ErrorType.REGISTRATION
    await rack.client.patch(PREPROVISIONING_IMAGES, key, {"spec": {"architecture": "s390x"}})
    await rack.until(key, lambda host: "waiting for the ramdisk" in str(host.status.conditions))
    await build(rack, key)
    await rack.until_well(key, "available")


@OWN
async def test_a_host_that_cannot_boot_its_own_says_so(rack: Rack, key: Key) -> None:
    rack.backend.own_ramdisk_formats = ()
    await rack.host()
    host = await rack.until_error(key, "cannot boot a ramdisk of its own")
    assert host.status.error_type == ErrorType.REGISTRATION


@OWN
async def test_a_changed_network_configuration_is_waited_for_before_the_next_boot(
    rack: Rack, key: Key
) -> None:
    await rack.secret("net", networkData="{}")
    await rack.host(preprovisioningNetworkDataName="net")
    asked = await is_waited_for(rack, key)
    assert asked.spec.network_data_name == "net"
    await build(rack, key)
    await rack.until_well(key, "available")
    await rack.client.patch(
        SECRETS, Key(rack.namespace, "net"), {"stringData": {"networkData": "{links: []}"}}
    )
    await rack.change(key, {"online": False})
    await rack.until(key, lambda host: not host.status.powered_on)
    await rack.change(key, {"online": True, "image": IMAGE})
    await rack.until(key, lambda host: "an earlier network configuration" in str(host.status.conditions))
    assert "deploy" not in rack.backend.machines[key].orders
    await build(rack, key)
    await rack.until_well(key, "provisioned")


@OWN
async def test_a_provisioned_host_needs_no_ramdisk(rack: Rack, key: Key) -> None:
    await rack.host(image=IMAGE)
    await is_waited_for(rack, key)
    await build(rack, key)
    await rack.until_well(key, "provisioned")
    await rack.client.patch(
        PREPROVISIONING_IMAGES, key, {"status": {"conditions": [condition("Error")]}}, subresource="status"
    )
    rack.backend.tell(key)
    await rack.settle()
    host = await rack.get(key)
    assert (host.state, host.status.error_message) == ("provisioned", "")


@OWN
async def test_a_live_image_that_is_started_waits_for_no_ramdisk_and_is_none(rack: Rack, key: Key) -> None:
    rack.backend.hold("provision", Busy("inserting the medium"))
    await rack.host(image={"url": "https://images.example/live.iso", "format": "live-iso"})
    await is_waited_for(rack, key)
    await build(rack, key, version="fedora-coreos-43")
    await rack.until(key, lambda host: "inserting the medium" in str(host.status.conditions))
    assert (await rack.get(key)).status.ramdisk is None, "nothing was booted but the live image"
    await rack.client.patch(
        PREPROVISIONING_IMAGES, key, {"status": {"conditions": [condition("Error")]}}, subresource="status"
    )
    rack.backend.tell(key)
    await rack.settle()
    host = await rack.get(key)
    assert (host.state, host.status.error_message) == ("provisioning", "")
    rack.backend.let_go("provision")
    rack.backend.tell(key)
    await rack.until_well(key, "provisioned")


@OWN
async def test_an_image_that_is_deleted_is_used_while_it_is_needed_and_let_go_afterwards(
    rack: Rack, key: Key
) -> None:
    await rack.host()
    await is_waited_for(rack, key)
    await build(rack, key)
    await rack.until(key, lambda host: host.status.powered_on)
    before = await image(rack, key)
    await rack.client.delete(PREPROVISIONING_IMAGES, key)
    await rack.settle()
    assert (await rack.get(key)).status.error_message == ""
    assert (await image(rack, key)).metadata.uid == before.metadata.uid
    await rack.change(key, {"image": IMAGE})
    await rack.until_well(key, "provisioned")
    rack.backend.tell(key)
    await rack.settle()
    with pytest.raises(NotFound):
        await image(rack, key)
    await rack.change(key, {"image": None})
    again = await is_waited_for(rack, key)
    assert again.metadata.uid != before.metadata.uid


@OWN
async def test_an_image_that_is_deleted_and_does_not_fit_any_more_is_replaced(rack: Rack, key: Key) -> None:
    await rack.host()
    before = await is_waited_for(rack, key)
    await rack.client.delete(PREPROVISIONING_IMAGES, key)
    await rack.settle()
    again = await is_waited_for(rack, key)
    assert again.metadata.uid != before.metadata.uid
    await build(rack, key)
    await rack.until_well(key, "available")


@OWN
async def test_a_host_can_be_deleted_while_it_waits_for_its_ramdisk(rack: Rack, key: Key) -> None:
    await rack.host()
    await is_waited_for(rack, key)
    await rack.delete(key)
    await rack.until_gone(key)


@OWN
async def test_nothing_is_written_while_nothing_changes(rack: Rack, key: Key) -> None:
    await rack.host()
    await is_waited_for(rack, key)
    await build(rack, key)
    await rack.until(key, lambda host: host.status.powered_on)
    await rack.settle()
    before = (await image(rack, key)).metadata.resource_version
    for _ in range(3):
        rack.backend.tell(key)
        await rack.settle()
    assert (await image(rack, key)).metadata.resource_version == before


# What was booted


@OWN
async def test_the_ramdisk_that_a_host_booted_last_is_in_its_status(rack: Rack, key: Key) -> None:
    await rack.host()
    await is_waited_for(rack, key)
    assert (await rack.get(key)).status.ramdisk is None, "nothing was booted yet"
    rack.backend.hold("inspect", Busy("looking around"))
    await build(rack, key, version="fedora-coreos-43")
    host = await rack.until(key, lambda host: "looking around" in str(host.status.conditions))
    booted = host.status.ramdisk
    assert booted is not None
    assert (booted.version, booted.format) == ("fedora-coreos-43", "iso")
    assert booted.booted_at is not None
    rack.backend.let_go("inspect")
    rack.backend.tell(key)
    await rack.until_well(key, "available")
    assert (await rack.get(key)).status.ramdisk == booted, "nothing was booted since"


async def inspected_by(rack: Rack, key: Key, build_: str) -> BareMetalHost:
    """A host that was told to boot one ramdisk, and was inspected by one that says it is this build."""
    rack.backend.hold("inspect", Busy("looking around"))
    await rack.host()
    await is_waited_for(rack, key)
    await build(rack, key, version="fedora-coreos-44.1.2")
    await rack.until(key, lambda host: host.status.ramdisk is not None)
    rack.backend.machines[key].reports = build_
    rack.backend.let_go("inspect")
    rack.backend.tell(key)
    host = await rack.until_well(key, "available")
    await rack.settle()
    return host


@OWN
async def test_what_really_ran_is_noted_beside_what_was_told(rack: Rack, key: Key) -> None:
    host = await inspected_by(rack, key, "44.1.2")
    assert host.status.ramdisk is not None
    assert (host.status.ramdisk.version, host.status.ramdisk.reported) == ("fedora-coreos-44.1.2", "44.1.2")
    assert "OtherRamdisk" not in await rack.event_reasons()


@OWN
async def test_a_host_that_runs_another_ramdisk_than_it_was_told_is_told_of(rack: Rack, key: Key) -> None:
    host = await inspected_by(rack, key, "43.9.0")
    assert host.status.ramdisk is not None
    assert (host.status.ramdisk.version, host.status.ramdisk.reported) == ("fedora-coreos-44.1.2", "43.9.0")
    assert (await rack.event_reasons()).count("OtherRamdisk") == 1
    assert not host.status.error_type, "what it found is true all the same"


@OWN
async def test_a_ramdisk_that_does_not_say_what_it_is_is_no_reason_for_alarm(rack: Rack, key: Key) -> None:
    host = await inspected_by(rack, key, "")
    assert host.status.ramdisk is not None
    assert host.status.ramdisk.reported == ""
    assert "OtherRamdisk" not in await rack.event_reasons()


@pytest.mark.parametrize(
    ("label", "build_", "same"),
    [
        ("fedora-coreos-44.20260707.3.1", "44.20260707.3.1", True),
        ("fedora-coreos-44.20260707.3.1", "fedora-coreos-44.20260707.3.1", True),
        ("fedora-coreos-44.20260707.3.1", "44.20260707.3.0", False),
        ("fedora-coreos-44.20260707.3.1", "20260707.3.1", False),
        ("rhcos-9.6.20250826-1", "9.6.20250826-1", True),
        ("rhcos-9.6.20250826-1", "9.6.20250826-2", False),
        ("scos-9.0.20240416-0", "9.0.20240416-0", True),
        ("fedora-coreos-44.20260707.dev.12", "44.20260707.dev.123456", True),
        ("fedora-coreos-44.20260707.dev.12", "44.20260707.dev.3", False),
        ("coreos", "coreos", True),
        ("coreos-", "44", False),
    ],
)
def test_a_volume_label_tells_the_build_as_far_as_it_has_room(label: str, build_: str, same: bool) -> None:
    assert is_of(label, build_) is same


@OWN
async def test_an_image_that_is_built_anew_in_the_middle_is_for_the_next_boot(rack: Rack, key: Key) -> None:
    await rack.host()
    await is_waited_for(rack, key)
    rack.backend.hold("inspect", Busy("looking around"))
    await build(rack, key, version="old")
    await rack.until(key, lambda host: host.status.ramdisk is not None)
    await build(rack, key, version="new", imageUrl="https://images.example/new.iso")
    rack.backend.tell(key)
    await rack.settle()
    found = (await rack.get(key)).status.ramdisk
    assert found is not None
    assert found.version == "old"
    rack.backend.let_go("inspect")
    rack.backend.script("inspect", Failed("the ramdisk did not come up"), Busy("looking again"))
    rack.backend.tell(key)
    await rack.until_error(key, "did not come up")
    await rack.annotate(key, "test.metal3.io/again")
    await rack.until(
        key, lambda host: host.status.ramdisk is not None and host.status.ramdisk.version == "new"
    )


@OWN
async def test_a_payload_that_changes_touches_no_host_that_is_provisioned(rack: Rack, key: Key) -> None:
    await rack.host(image=IMAGE)
    await is_waited_for(rack, key)
    rack.backend.script("provision", Busy("writing"))
    await build(rack, key, version="old")
    await rack.until(key, lambda host: host.status.ramdisk is not None)
    rack.backend.tell(key)
    before = await rack.until_well(key, "provisioned")
    await rack.settle()
    machine = rack.backend.machines[key]
    orders = list(machine.orders)
    async with rack.host_writes() as writes:
        await build(rack, key, version="new", imageUrl="https://images.example/new.iso")
        rack.backend.tell(key)
        await rack.settle()
    assert machine.orders == orders
    assert writes == []
    assert machine.access is not None
    assert machine.access.ramdisk is None
    assert (await rack.get(key)).status.ramdisk == before.status.ramdisk


@OWN
async def test_cleaning_and_preparing_boot_the_ramdisk_of_that_time(rack: Rack, key: Key) -> None:
    await rack.host(image=IMAGE)
    await is_waited_for(rack, key)
    await build(rack, key, version="first")
    await rack.until_well(key, "provisioned")
    await build(rack, key, version="second", imageUrl="https://images.example/second.iso")
    rack.backend.script("deprovision", Busy("erasing"))
    await rack.change(key, {"image": None})
    await rack.until(key, booted("second"))
    rack.backend.tell(key)
    await rack.until_well(key, "available")
    await build(rack, key, version="third", imageUrl="https://images.example/third.iso")
    rack.backend.slow = {"prepare"}
    await rack.change(key, {"raid": {"hardwareRAIDVolumes": [{"level": "1", "name": "root"}]}})
    await rack.until(key, booted("third"))
    rack.backend.finish(key)
    await rack.until_well(key, "available")


def booted(version: str) -> Callable[[BareMetalHost], bool]:
    return lambda host: host.status.ramdisk is not None and host.status.ramdisk.version == version


@OWN
async def test_where_the_api_drops_the_note_it_is_not_written_again_and_again(rack: Rack, key: Key) -> None:
    await rack.host()
    await is_waited_for(rack, key)
    rack.backend.hold("inspect", Busy("looking around"))
    await build(rack, key, version="old")
    await rack.until(key, lambda host: host.status.ramdisk is not None)
    await rack.client.patch(BARE_METAL_HOSTS, key, {"status": {"ramdisk": None}}, subresource="status")
    await rack.settle()
    async with rack.host_writes() as writes:
        for _ in range(3):
            rack.backend.tell(key)
            await rack.settle()
    assert writes == []


# The usual one


async def test_the_network_configuration_of_the_usual_ramdisk_goes_to_the_back_end(rack: Rack) -> None:
    await rack.secret("net", networkData="links: []")
    key = await rack.host(preprovisioningNetworkDataName="net")
    await rack.until_well(key, "available")
    access = rack.backend.machines[key].access
    assert access is not None
    assert access.ramdisk is None
    assert access.ramdisk_network.reveal() == "links: []"


async def test_a_network_configuration_that_has_no_effect_is_told_once_and_with_an_inspection_that_fails(
    rack: Rack,
) -> None:
    rack.backend.remark = "spec.preprovisioningNetworkDataName has no effect here"
    rack.backend.script("inspect", Busy("booting"), Failed("the ramdisk did not report"))
    await rack.secret("net", networkData="links: []")
    key = await rack.host(preprovisioningNetworkDataName="net")
    await rack.until(key, lambda host: "booting" in str(host.status.conditions))
    rack.backend.tell(key)
    await rack.until_error(key, f"the ramdisk did not report. {rack.backend.remark}")
    await rack.change(key, {"online": False})  # so it is tried again at once
    await rack.until_well(key, "available")
    await rack.settle()
    events = (await rack.client.list(EVENTS, namespace=rack.namespace)).items
    assert [(event.type, event.message, event.count) for event in events if event.reason == "NoEffect"] == [
        ("Warning", f"{rack.backend.remark}.", 1)
    ]


async def test_the_key_that_cluster_api_writes_is_read_too(rack: Rack) -> None:
    await rack.secret("net", value="links: []")
    key = await rack.host(preprovisioningNetworkDataName="net")
    await rack.until_well(key, "available")
    access = rack.backend.machines[key].access
    assert access is not None
    assert access.ramdisk_network.reveal() == "links: []"


async def test_a_language_that_the_usual_ramdisk_does_not_understand_is_not_passed_over(rack: Rack) -> None:
    await rack.secret("net", nmstate="interfaces: []")
    key = await rack.host(preprovisioningNetworkDataName="net")
    await rack.until_error(key, "has the key nmstate alone")
    await rack.client.patch(SECRETS, Key(rack.namespace, "net"), {"stringData": {"networkData": "links: []"}})
    await rack.until_well(key, "available")


async def test_a_missing_network_configuration_is_named_and_noticed_when_it_appears(rack: Rack) -> None:
    key = await rack.host(preprovisioningNetworkDataName="net")
    await rack.until_error(key, "Secret net, named by spec.preprovisioningNetworkDataName, does not exist")
    await rack.secret("net", networkData="links: []")
    await rack.until_well(key, "available")


async def test_a_host_that_runs_is_not_held_up_for_it(rack: Rack) -> None:
    key = await rack.host(externallyProvisioned=True, preprovisioningNetworkDataName="net")
    await rack.until_well(key, "externally provisioned")


# Rules


def host(state: str = "inspecting", **more: Any) -> BareMetalHost:
    body = {
        "metadata": {"name": "h1", "namespace": "n"},
        "spec": {"online": True} | more.pop("spec", {}),
        "status": {"provisioning": {"state": state}} | more,
    }
    return msgspec.convert(body, BareMetalHost)


@pytest.mark.parametrize(
    ("where", "boots"),
    [
        (host("registering"), False),
        (host("inspecting"), True),
        (host("inspecting", spec={"inspectionMode": "fast"}), False),
        (host("preparing"), True),
        (host("available"), True),
        (host("provisioning"), True),
        (host("provisioned"), False),
        (host("provisioned", operationalStatus="servicing"), True),
        (host("externally provisioned"), False),
        (host("externally provisioned", operationalStatus="servicing"), True),
        (host("deprovisioning"), True),
        (host("deprovisioning", spec={"automatedCleaningMode": "disabled"}), False),
        (host("powering off before delete"), False),
        (host("deleting"), False),
    ],
)
def test_where_a_ramdisk_may_boot(where: BareMetalHost, boots: bool) -> None:
    assert may_boot(where) is boots


def test_the_architecture_is_the_users_then_that_which_was_found_then_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    found = {"cpu": {"arch": "ppc64le"}}
    assert wanted(host(), ("iso",)).architecture == "aarch64"
    known = msgspec.json.decode(
        msgspec.json.encode({"metadata": {"name": "h"}, "status": {"hardware": found}}), type=BareMetalHost
    )
    assert wanted(known, ("iso",)).architecture == "ppc64le"
    assert wanted(host(spec={"architecture": "riscv64"}), ("iso",)).architecture == "riscv64"


def built(**more: Any) -> PreprovisioningImage:
    body: dict[str, Any] = {
        "metadata": {"name": "h1", "generation": 2},
        "spec": {"architecture": "x86_64", "acceptFormats": ["iso"], "networkDataName": "net"},
        "status": {
            "imageUrl": "https://images.example/h1.iso",
            "format": "iso",
            "architecture": "x86_64",
            "networkData": {"name": "net", "version": "7"},
            "conditions": [condition("Ready", 2)],
        }
        | more,
    }
    return msgspec.convert(body, PreprovisioningImage)


def test_an_image_that_fits_is_accepted() -> None:
    assert what_is_missing(built(), network_version="7") is None


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (built(conditions=[]), "not ready"),
        (built(conditions=[condition("Ready", 2, status="False", message="building")]), "building"),
        (built(conditions=[condition("Ready", 1)]), "earlier request"),
        (built(architecture="aarch64"), "aarch64"),
        (built(format="initrd"), "initrd"),
        (built(networkData={}), "network configuration"),
        (built(networkData={"name": "net", "version": "6"}), "network configuration"),
        (built(imageUrl=""), "no URL"),
    ],
)
def test_one_that_does_not_fit_is_not(image: PreprovisioningImage, why: str) -> None:
    assert why in (what_is_missing(image, network_version="7") or "")
