"""What Ironic is told about the operating system of a host: `instance_info`, the deploy interface, and the config drive.

Pure. Three ways lead to a system: an image that is written to the disk (Ironic's own deploy steps), a live ISO that is booted
and leaves the disks alone, and a deploy step of the ramdisk's own, with or without an image. CoreOS is the last of these in two
spellings: a host that asks for it by the format of its image has its Ignition config in the arguments of the step, one that names
the step has it in the user data.

An image is named by URL and checked by checksum; root device hints become Ironic's operators; the config drive is handed over as
JSON and Ironic builds it. The instance is known to Ironic by the uid of the host, so that one can tell whose it is. Which image
it is, is noted with the node: Ironic puts where a URL redirects to in the place of the URL that it was told.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

import msgspec

from ingot.api.baremetalhost import INSTALL_COREOS, CustomDeploy, Image, RootDeviceHints
from ingot.api.inputs import checksums
from ingot.api.inputs.network_data import UnreadableNetworkData
from ingot.api.installed import deploy_method
from ingot.provisioner import ConfigDrive, Deployment, HostRef
from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.deployed_for import noted
from ingot.provisioner.ironic.firewall.credentials import pull_secret
from ingot.provisioner.ironic.model import FullNode, Json, PatchOperation, add, remove
from ingot.provisioner.ironic.network_data import parse
from ingot.provisioner.ironic.settings import PersistentBoot
from ingot.trust import Secret, redact

IMAGE_KEYS: Final = (
    "image_source",
    "image_disk_format",
    "image_checksum",
    "image_os_hash_algo",
    "image_os_hash_value",
    "image_pull_secret",
    "boot_iso",
)
_WRITTEN_TO_DISK: Final = ("raw", "qcow2", "vdi", "vmdk")

DEPLOYED: Final = "ingot_deployment"
"""In the node's `extra`: which image it was told to have on its disk."""
RAMDISK: Final = "ramdisk"
"""The deploy interface that boots an ISO and writes nothing."""
CUSTOM: Final = "custom-agent"
"""The deploy interface that has no step for writing an image."""
STEP_PRIORITY: Final = 80
"""Where the custom step stands among Ironic's own: where the image would be written."""


class UnusableOrder(ValueError):
    """What is to be deployed cannot be; the sentence says why."""


def is_live(image: Image | None) -> bool:
    return image is not None and image.format == "live-iso"


def deploy_interface(image: Image | None, custom_deploy: CustomDeploy | None) -> str:
    """The interface that such a deployment needs; "" for the usual one."""
    if deploy_method(image, custom_deploy):
        return CUSTOM
    return RAMDISK if is_live(image) else ""


def what(image: Image | None, custom_deploy: CustomDeploy | None) -> str:
    """What is deployed, for people. A URL can hold a password."""
    method = deploy_method(image, custom_deploy)
    named = f"the image {redact(image.url)}" if image is not None and image.url else ""
    if not method:
        return named
    if method == INSTALL_COREOS:
        return f"CoreOS from {named}" if named else "CoreOS"
    step = f"the custom deploy step {method}"
    return f"{named} by {step}" if named else step


def check_order(image: Image | None, custom_deploy: CustomDeploy | None) -> None:
    """Raises `UnusableOrder` for what this back end cannot deploy."""
    if deploy_method(image, custom_deploy):
        if is_live(image):
            raise UnusableOrder(
                "a live ISO is booted and installs nothing, so no custom deploy step can run; set one of the two"
            )
        if image is not None and image.url and deploy_method(image, custom_deploy) == INSTALL_COREOS:
            _check_metal_image(image)
        return
    if image is None or not image.url:
        raise UnusableOrder("there is neither an image nor a custom deploy step; set image.url")
    if is_live(image):
        return
    if image.format and image.format not in _WRITTEN_TO_DISK:
        raise UnusableOrder(f"images in the format {image.format} are not supported")
    if not image.checksum and not image.url.startswith("oci://"):
        raise UnusableOrder(
            f"the image {redact(image.url)} has no checksum; set image.checksum, and image.checksumType to sha256"
        )


def _check_metal_image(image: Image) -> None:
    """What the installer of CoreOS would refuse of an image, with the disk cleaned already."""
    named = f"the image {redact(image.url)}"
    if not image.url.lower().startswith(("http://", "https://")):
        raise UnusableOrder(
            f"{named} cannot be installed by {INSTALL_COREOS}, which fetches by http and https alone"
        )
    if image.url.partition("?")[0].lower().endswith(".iso"):
        raise UnusableOrder(
            f"{named} is an ISO image; what {INSTALL_COREOS} writes to a disk is a metal image (raw, raw.gz, raw.xz)"
        )
    if not image.checksum or checksums.algorithm(image.checksum, image.checksum_type) == "md5":
        raise UnusableOrder(
            f"{named} needs a checksum that is not md5; set image.checksum and image.checksumType"
        )


def image_info(image: Image | None) -> dict[str, Json]:
    """The keys of `instance_info` that name an image and its checksum."""
    if image is None or not image.url:
        return {}
    if is_live(image):
        return {"boot_iso": image.url}
    info: dict[str, Json] = {"image_source": image.url}
    if image.format in _WRITTEN_TO_DISK:
        info["image_disk_format"] = image.format
    if image.checksum and image.checksum_type in (None, "auto"):
        info["image_checksum"] = image.checksum
    elif image.checksum:
        info |= {"image_os_hash_algo": image.checksum_type, "image_os_hash_value": image.checksum}
    return info


def root_device(hints: RootDeviceHints) -> dict[str, Json]:
    """Hints in Ironic's words: `s==` is equal text, `<in>` contains."""
    by_path = hints.device_name.startswith("/dev/disk/by-path/")
    exact = {
        "by_path" if by_path else "name": hints.device_name,
        "hctl": hints.hctl,
        "serial": hints.serial_number,
        "wwn": hints.wwn,
        "wwn_with_extension": hints.wwn_with_extension,
        "wwn_vendor_extension": hints.wwn_vendor_extension,
    }
    device: dict[str, Json] = {key: f"s== {value}" for key, value in exact.items() if value}
    device |= {
        key: f"<in> {value}" for key, value in (("model", hints.model), ("vendor", hints.vendor)) if value
    }
    if hints.min_size_gigabytes:
        device["size"] = f">= {hints.min_size_gigabytes}"
    if hints.rotational is not None:
        device["rotational"] = "true" if hints.rotational else "false"
    return device


def instance_differences(
    node: FullNode, host: HostRef, wanted: Deployment, persistent_boot: PersistentBoot
) -> list[PatchOperation]:
    """The patch that tells Ironic what is to be on the host's disk."""
    told = image_info(wanted.image)
    if secret := pull_secret(wanted.image, wanted.pull_secret):
        # Ironic shows a mask in its place, so it is told each time.
        told["image_pull_secret"] = secret.reveal()
    # Ironic wants capabilities as a map here, and as text in the properties.
    told["capabilities"] = {"secure_boot": "true"} if wanted.boot_mode == "UEFISecureBoot" else {}
    if wanted.root_device is not None and (device := root_device(wanted.root_device)):
        told["root_device"] = device
    patch = _told(node, told)
    patch += [
        remove(f"/instance_info/{key}")
        for key in (*IMAGE_KEYS, "root_device")
        if key in node.instance_info and key not in told
    ]
    patch += interface_differences(node, deploy_interface(wanted.image, wanted.custom_deploy))
    persistence = persistent_boot.live_iso if is_live(wanted.image) else persistent_boot.installed
    if node.driver_info.get("force_persistent_boot_device", "Default") != persistence:
        patch.append(add("/driver_info/force_persistent_boot_device", persistence))
    patch += noted(node, name=wanted.name, instance=host.uid)
    return patch + _owned(node, host) + _marked(node, wanted.image)


def adoption_differences(
    node: FullNode,
    host: HostRef,
    installed: Image | None,
    custom_deploy: CustomDeploy | None,
    *,
    provisioning: str,
) -> list[PatchOperation]:
    """The patch that tells Ironic what is on the host's disk already."""
    patch = _told(node, image_info(installed)) + _owned(node, host) + _marked(node, installed)
    patch += noted(node, name=provisioning, instance=host.uid)
    # Ironic changes interfaces only here; after an attempt that failed it was told already.
    if node.provision_state == states.MANAGEABLE:
        patch += interface_differences(node, deploy_interface(installed, custom_deploy))
    return patch


def without_another(node: FullNode, host: HostRef) -> list[PatchOperation]:
    """The patch that has to come first where the node still bears another instance: Ironic does not put one over the other."""
    return [] if node.instance_uuid in (None, host.uid) else [remove("/instance_uuid")]


def _told(node: FullNode, told: dict[str, Json]) -> list[PatchOperation]:
    return [
        add(f"/instance_info/{key}", value)
        for key, value in told.items()
        if node.instance_info.get(key) != value
    ]


def _owned(node: FullNode, host: HostRef) -> list[PatchOperation]:
    return [] if node.instance_uuid == host.uid else [add("/instance_uuid", host.uid)]


def _marked(node: FullNode, image: Image | None) -> list[PatchOperation]:
    mark = _mark(image)
    return [] if node.extra.get(DEPLOYED) == mark else [add(f"/extra/{DEPLOYED}", mark)]


def _mark(image: Image | None) -> str:
    """Tells images apart. Not the URL itself, which can hold a password."""
    told = image_info(image)
    return hashlib.sha256(str(told.get("image_source") or told.get("boot_iso") or "").encode()).hexdigest()[
        :32
    ]


def interface_differences(node: FullNode, wanted: str) -> list[PatchOperation]:
    """`wanted` "": the usual interface; one that somebody chose is left alone."""
    if wanted:
        return [] if node.deploy_interface == wanted else [add("/deploy_interface", wanted)]
    return [remove("/deploy_interface")] if node.deploy_interface in (RAMDISK, CUSTOM) else []


def deploy_steps(wanted: Deployment) -> Json:
    """Steps beside those that the deploy interface has; None for none."""
    method = deploy_method(wanted.image, wanted.custom_deploy)
    if not method:
        return None
    return [{"interface": "deploy", "step": method, "args": _arguments(wanted), "priority": STEP_PRIORITY}]


def _arguments(wanted: Deployment) -> dict[str, Json]:
    """A host that asks for CoreOS by the format of its image has its Ignition config here, and nowhere else."""
    if _is_by_format(wanted) and wanted.config_drive.user_data:
        return {"ignition": wanted.config_drive.user_data.reveal()}
    return {}


def _is_by_format(wanted: Deployment) -> bool:
    named = wanted.custom_deploy is not None and wanted.custom_deploy.method
    return not named and wanted.image is not None and wanted.image.format == "coreos"


def config_drive(host: HostRef, drive: ConfigDrive) -> dict[str, Json]:
    """The config drive as Ironic takes it; what the user gave wins over what we say."""
    name = host.key.name
    meta: dict[str, Json] = {
        "uuid": host.uid,
        "metal3-namespace": host.key.namespace,
        "metal3-name": name,
        "local-hostname": name,
        "local_hostname": name,
        "name": name,
    }
    content: dict[str, Json] = {"meta_data": meta | msgspec.to_builtins(drive.meta_data, str_keys=True)}
    if drive.user_data:
        content["user_data"] = drive.user_data.reveal()
    try:
        network = parse(drive.network_data)
    except UnreadableNetworkData as problem:
        raise UnusableOrder(f"the network data {problem}") from None
    if network is not None:
        content["network_data"] = network
    return content


def drive_for(host: HostRef, wanted: Deployment) -> Json:
    """The config drive of a deployment; a live ISO has none, because there is no disk to put it on."""
    if is_live(wanted.image):
        return None
    drive = wanted.config_drive
    return config_drive(host, replace(drive, user_data=Secret("")) if _is_by_format(wanted) else drive)


def found_on(node: FullNode) -> str:
    """What Ironic has on the node, for people."""
    told = node.instance_info.get("image_source") or node.instance_info.get("boot_iso")
    return f"the image {redact(told)}" if isinstance(told, str) else "an operating system"


def is_ours(node: FullNode, host: HostRef, wanted: Deployment) -> bool:
    """Whether what Ironic has on the node is this deployment of this host."""
    if node.instance_uuid != host.uid:
        return False
    if (mark := node.extra.get(DEPLOYED)) is not None:
        return mark == _mark(wanted.image)
    told = image_info(wanted.image)
    return all(node.instance_info.get(key) == told.get(key) for key in ("image_source", "boot_iso"))


def is_of_the_same_node(node: FullNode, host: HostRef, wanted: Deployment) -> bool:
    """Whether it is this deployment, begun before the host was moved to another cluster: it has another uid there, and the same
    node."""
    return node.uuid == host.backend_id and node.extra.get(DEPLOYED) == _mark(wanted.image)
