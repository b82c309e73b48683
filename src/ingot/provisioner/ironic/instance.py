"""What Ironic is told about the operating system of a host: `instance_info`, and the config drive.

Pure. The image is named by URL and checked by checksum; root device hints become Ironic's operators; the config drive is
handed over as JSON and Ironic builds it. The instance is known to Ironic by the uid of the host, so that one can tell whose
it is.
"""

from __future__ import annotations

from typing import Final

import msgspec
import yaml

from ingot.api.baremetalhost import BootMode, Image, RootDeviceHints
from ingot.provisioner import ConfigDrive, Deployment, HostRef
from ingot.provisioner.ironic.model import FullNode, Json, PatchOperation, add, remove
from ingot.trust import redact

IMAGE_KEYS: Final = (
    "image_source",
    "image_disk_format",
    "image_checksum",
    "image_os_hash_algo",
    "image_os_hash_value",
)
_WRITTEN_TO_DISK: Final = ("raw", "qcow2", "vdi", "vmdk")


class UnusableOrder(ValueError):
    """What is to be deployed cannot be; the sentence says why."""


def image_info(image: Image) -> dict[str, Json]:
    """The keys of `instance_info` that name an image and its checksum."""
    info: dict[str, Json] = {"image_source": image.url}
    if image.format:
        info["image_disk_format"] = image.format
    if image.checksum_type in (None, "auto"):
        info["image_checksum"] = image.checksum
    else:
        info |= {"image_os_hash_algo": image.checksum_type, "image_os_hash_value": image.checksum}
    return info


def check_image(image: Image) -> None:
    """Raises `UnusableOrder` for an image that this back end cannot write."""
    if image.format == "live-iso":
        raise UnusableOrder("live ISO images are not supported yet; use an image in the format raw or qcow2")
    if image.url.startswith("oci:"):
        raise UnusableOrder("images from an OCI registry are not supported yet; use an http or https URL")
    if image.format and image.format not in _WRITTEN_TO_DISK:
        raise UnusableOrder(f"images in the format {image.format} are not supported")
    if not image.checksum:
        raise UnusableOrder(
            f"the image {redact(image.url)} has no checksum; set image.checksum, and image.checksumType to sha256"
        )


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
    node: FullNode, host: HostRef, image: Image, *, hints: RootDeviceHints | None, boot_mode: BootMode
) -> list[PatchOperation]:
    """The patch that tells Ironic what is, or is to be, on the host's disk."""
    wanted = image_info(image)
    # Ironic wants capabilities as a map here, and as text in the properties.
    wanted["capabilities"] = {"secure_boot": "true"} if boot_mode == "UEFISecureBoot" else {}
    if hints is not None and (device := root_device(hints)):
        wanted["root_device"] = device
    patch = [
        add(f"/instance_info/{key}", value)
        for key, value in wanted.items()
        if node.instance_info.get(key) != value
    ]
    stale = (*IMAGE_KEYS, "root_device", "boot_iso")
    patch += [
        remove(f"/instance_info/{key}") for key in stale if key in node.instance_info and key not in wanted
    ]
    if node.instance_uuid != host.uid:
        patch.append(add("/instance_uuid", host.uid))
    return patch


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
    if drive.network_data and (network := _network_data(drive)) is not None:
        content["network_data"] = network
    return content


def _network_data(drive: ConfigDrive) -> Json:
    # A parser's own message quotes the text, and the text is secret.
    try:
        parsed = yaml.load(drive.network_data.reveal(), Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UnusableOrder(f"the network data is neither YAML nor JSON: it cannot be read{where}") from None
    except (yaml.YAMLError, ValueError):
        # A date that does not exist is no YAMLError.
        raise UnusableOrder("the network data is neither YAML nor JSON") from None
    if parsed is None:
        return None
    if not isinstance(parsed, dict):
        raise UnusableOrder("the network data must be a mapping with links, networks and services")
    return parsed


def is_ours(node: FullNode, host: HostRef, wanted: Deployment) -> bool:
    """Whether what Ironic has on the node is this deployment of this host."""
    return node.instance_uuid == host.uid and node.instance_info.get("image_source") == wanted.image.url
