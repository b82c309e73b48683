"""The rules for a BareMetalHost: the table of all of them, and those that are about its spec as a whole.

Rules for creating hold for every later version of a host too; rules for changing compare the two. A rule yields what it finds
and knows nothing of the others, so a user sees all that is wrong at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from ingot.api import bmc
from ingot.api.admission import annotated, changes, images, raid, references
from ingot.api.admission.errors import FieldError, duplicate, forbidden, invalid, required
from ingot.api.admission.rules import Document, Rules
from ingot.api.baremetalhost import BareMetalHost
from ingot.api.inputs import hints, steps
from ingot.api.inputs.text import shown
from ingot.api.inspection import inspection_is_disabled

Rule = Callable[[BareMetalHost], Iterator[FieldError]]
ChangeRule = Callable[[BareMetalHost, BareMetalHost], Iterator[FieldError]]

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
# 6 bytes for Ethernet, 8 for EUI-64, 20 for InfiniBand.
_MAC: Final = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}((:[0-9a-fA-F]{2}){2}|(:[0-9a-fA-F]{2}){14})?")


def _decoded(document: Document) -> BareMetalHost:
    """The host without its inventory, which no rule is about and which makes up most of its size."""
    status = {key: value for key, value in (document.get("status") or {}).items() if key != "hardware"}
    return msgspec.convert({**document, "status": status}, BareMetalHost)


def name(host: BareMetalHost) -> Iterator[FieldError]:
    """The back end knows hosts by name and by UUID, so a name must not look like the latter."""
    found = host.metadata.name
    if found and not _NAME.fullmatch(found):
        yield invalid(
            "metadata.name", found, "only letters, digits, '.', '_' and '-' may stand in the name of a host."
        )
    if _UUID.fullmatch(found):
        yield invalid(
            "metadata.name", found, "a host must not be named like a UUID; choose a name that is none."
        )


def bmc_address(host: BareMetalHost) -> Iterator[FieldError]:
    if host.spec.bmc.address:
        try:
            bmc.parse(host.spec.bmc.address)
        except bmc.InvalidAddress as error:
            yield invalid("spec.bmc.address", error.shown, error.problem)


def firmware(host: BareMetalHost) -> Iterator[FieldError]:
    if host.spec.firmware is not None:
        yield forbidden(
            "spec.firmware",
            msgspec.to_builtins(host.spec.firmware),
            "this field has no effect any more. Remove it, and use HostFirmwareSettings.",
        )


def boot_mac(host: BareMetalHost) -> Iterator[FieldError]:
    mac, scheme = host.spec.boot_mac_address, _scheme(host)
    if mac:
        if not _MAC.fullmatch(mac):
            yield invalid(
                "spec.bootMACAddress", mac, "this is not a MAC address; write it like 52:54:00:12:34:56."
            )
    elif scheme is not None and scheme.needs_mac:
        yield required(
            "spec.bootMACAddress",
            f"a host with a {scheme.name} BMC needs the MAC address of its boot interface.",
        )
    elif scheme is not None and inspection_is_disabled(host):
        yield required(
            "spec.bootMACAddress",
            "inspection is disabled, so the MAC address of the boot interface has to be given here.",
        )


def abilities_of_the_bmc(host: BareMetalHost) -> Iterator[FieldError]:
    """What is asked for has to be something that this sort of BMC can do."""
    scheme = _scheme(host)
    if scheme is None:
        return
    spec = host.spec
    if not scheme.hardware_raid and spec.raid is not None and spec.raid.hardware_raid_volumes:
        yield invalid(
            "spec.raid.hardwareRAIDVolumes",
            msgspec.to_builtins(spec.raid.hardware_raid_volumes),
            f"hardware RAID cannot be configured through {scheme.name}. Use a Redfish address or software RAID.",
        )
    if not scheme.secure_boot and spec.boot_mode == "UEFISecureBoot":
        yield invalid(
            "spec.bootMode",
            spec.boot_mode,
            f"secure boot cannot be switched on through {scheme.name}. Use a Redfish address, or UEFI or legacy.",
        )
    if not scheme.fast_inspection and spec.inspection_mode == "fast":
        yield invalid(
            "spec.inspectionMode",
            spec.inspection_mode,
            f"a BMC reached over {scheme.name} cannot tell what the machine is made of. Use agent or disabled.",
        )


def root_device(host: BareMetalHost) -> Iterator[FieldError]:
    for problem in hints.problems_with(host.spec.root_device_hints):
        yield invalid(f"spec.rootDeviceHints.{problem.field}", shown(problem.found), problem.sentence)


def custom_deploy(host: BareMetalHost) -> Iterator[FieldError]:
    method = host.spec.custom_deploy.method if host.spec.custom_deploy else ""
    if method and (problem := steps.problem_with(method)) is not None:
        yield invalid("spec.customDeploy.method", shown(method), problem)


def power_off(host: BareMetalHost) -> Iterator[FieldError]:
    if host.spec.disable_power_off and not host.spec.online:
        yield invalid(
            "spec.online",
            False,
            "a host with disablePowerOff cannot be switched off. Set online to true or remove disablePowerOff.",
        )


def network_interfaces(host: BareMetalHost) -> Iterator[FieldError]:
    """Each interface is told by a name or by a MAC address, and told once."""
    seen: set[tuple[str, str]] = set()
    for index, interface in enumerate(host.spec.network_interfaces):
        path = f"spec.networkInterfaces[{index}]"
        if interface.name and interface.mac_address:
            yield forbidden(
                f"{path}.macAddress", interface.mac_address, "give either name or macAddress, not both."
            )
            continue
        if not interface.name and not interface.mac_address:
            yield required(path, "give the name or the macAddress of the interface.")
            continue
        field, value = ("name", interface.name) if interface.name else ("macAddress", interface.mac_address)
        if (field, value.lower()) in seen:
            yield duplicate(f"{path}.{field}", value, "this interface is listed already.")
        seen.add((field, value.lower()))


def _scheme(host: BareMetalHost) -> bmc.Scheme | None:
    """How the BMC is reached; None without an address that can be read."""
    try:
        return bmc.parse(host.spec.bmc.address).scheme if host.spec.bmc.address else None
    except bmc.InvalidAddress:
        return None


CREATE_RULES: Final[tuple[Rule, ...]] = (
    name,
    bmc_address,
    firmware,
    references.namespaces,
    references.secret_names,
    raid.volumes,
    raid.root_volume,
    raid.under_coreos,
    abilities_of_the_bmc,
    boot_mac,
    root_device,
    custom_deploy,
    images.image,
    annotated.restored_status,
    annotated.reboots,
    annotated.inspection,
    annotated.hardware_details,
    power_off,
    network_interfaces,
)

CHANGE_RULES: Final[tuple[ChangeRule, ...]] = (
    changes.bmc_address,
    changes.boot_mac,
    changes.externally_provisioned,
)

RULES: Final = Rules(BareMetalHost, CREATE_RULES, CHANGE_RULES, decode=_decoded)
