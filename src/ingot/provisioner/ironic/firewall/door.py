"""The door: which rules an order has to pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from ingot.api.baremetalhost import INSTALL_COREOS, RAID, CustomDeploy, Image
from ingot.api.inputs import coreos
from ingot.api.inputs.documents import is_within_bounds
from ingot.api.installed import deploy_method
from ingot.provisioner import (
    Access,
    Deployment,
    Failed,
    FirmwareChange,
    HostRef,
    Preparation,
    Service,
    Subscription,
)
from ingot.provisioner.ironic.firewall import credentials, hints, images, names, urls
from ingot.provisioner.ironic.firewall.kernel_arguments import kernel_arguments
from ingot.provisioner.ironic.firewall.policy import Policy
from ingot.provisioner.ironic.firewall.rejection import Rejected, reject

P = ParamSpec("P")


class Firewall:
    """Answers with what is refused, or with None. The address of a BMC is read by `ingot.api.bmc`, which refuses what is none."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def access(self, host: HostRef, access: Access) -> Failed | None:
        return _refusal(_access, host, access)

    def deployment(self, wanted: Deployment) -> Failed | None:
        return _refusal(_deployment, wanted, self._policy)

    def image(self, image: Image | None, custom_deploy: CustomDeploy | None) -> Failed | None:
        return _refusal(_what_is_deployed, image, custom_deploy, self._policy)

    def installed(self, image: Image | None) -> Failed | None:
        return _refusal(images.on_a_disk_already, image)

    def preparation(self, wanted: Preparation) -> Failed | None:
        return _refusal(_preparation, wanted, self._policy)

    def service(self, wanted: Service) -> Failed | None:
        return _refusal(_firmware, wanted.firmware, self._policy)

    def data_image(self, url: str) -> Failed | None:
        """ "" empties the drive."""
        return _refusal(urls.download_url, "spec.url of the DataImage", url, self._policy) if url else None

    def subscription(self, wanted: Subscription) -> Failed | None:
        return _refusal(_subscription, wanted)

    def subscription_id(self, found: str) -> Failed | None:
        return _refusal(names.subscription, found)


def _refusal(rule: Callable[P, None], *found: P.args, **named: P.kwargs) -> Failed | None:
    try:
        rule(*found, **named)
    except Rejected as rejected:
        return Failed(str(rejected))
    return None


def _access(host: HostRef, access: Access) -> None:
    names.host_name(host.key)
    names.architecture("spec.architecture", access.architecture)
    credentials.bmc_credentials(access.credentials)
    if access.boot_mac:
        names.mac_address("spec.bootMACAddress", access.boot_mac)
    if (own := access.ramdisk) is not None:
        urls.ramdisk_url("status.imageUrl of the PreprovisioningImage", own.url)
        if own.kernel_url:
            urls.ramdisk_url("status.kernelUrl of the PreprovisioningImage", own.kernel_url)
        kernel_arguments("status.extraKernelParams of the PreprovisioningImage", own.kernel_params)


def _deployment(wanted: Deployment, policy: Policy) -> None:
    _what_is_deployed(wanted.image, wanted.custom_deploy, policy)
    hints.root_device_hints("spec.rootDeviceHints", wanted.root_device)
    credentials.pull_secret(wanted.image, wanted.pull_secret)
    if not is_within_bounds(wanted.config_drive.meta_data):
        # It can be secret.
        raise reject(
            "the Secret named by spec.metaData",
            None,
            "it means more values than anybody could have meant; look for YAML aliases in it",
        )
    if deploy_method(wanted.image, wanted.custom_deploy) == INSTALL_COREOS:
        drive = wanted.config_drive
        if problem := coreos.problem_with(drive.user_data.reveal(), drive.meta_data):
            raise Rejected(problem.rstrip("."))


def _what_is_deployed(image: Image | None, custom_deploy: CustomDeploy | None, policy: Policy) -> None:
    images.image(image, policy)
    if custom_deploy is not None and custom_deploy.method:
        names.deploy_step("spec.customDeploy.method", custom_deploy.method)


def _preparation(wanted: Preparation, policy: Policy) -> None:
    _volumes(wanted.raid)
    hints.root_device_hints("spec.rootDeviceHints", wanted.root_device)
    _firmware(wanted.firmware, policy)


def _volumes(raid: RAID | None) -> None:
    if raid is None:
        return
    for hardware in raid.hardware_raid_volumes or ():
        names.labels(
            "spec.raid.hardwareRAIDVolumes", (hardware.name, hardware.controller, *hardware.physical_disks)
        )
    for software in raid.software_raid_volumes or ():
        for disk in software.physical_disks:
            hints.root_device_hints("spec.raid.softwareRAIDVolumes.physicalDisks", disk)


def _firmware(change: FirmwareChange, policy: Policy) -> None:
    names.labels("spec.settings of the HostFirmwareSettings", change.settings)
    for name, value in change.settings.items():
        if not value.isprintable():
            # It can be a password of the firmware.
            raise reject(
                f"spec.settings[{name}] of the HostFirmwareSettings",
                None,
                "expected one line of printable characters",
            )
    for update in change.updates:
        names.firmware_component("spec.updates.component of the HostFirmwareComponents", update.component)
        urls.download_url("spec.updates.url of the HostFirmwareComponents", update.url, policy)


def _subscription(wanted: Subscription) -> None:
    urls.destination("spec.destination", wanted.destination)
    names.labels("spec.context", (wanted.context,))
    credentials.headers(wanted.headers)
