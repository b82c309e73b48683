"""What Ironic's record of a host should say, and how it differs from what it says.

Pure. From the address, the credentials and the settings of a host follow the driver, its interfaces, `driver_info` and
properties; `differences` is the patch that brings a node there. The password is masked in what Ironic shows, so it is
compared by the caller's knowledge, not here. Keys that others put into `driver_info` stay.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from typing import Final, NewType

import msgspec

from ingot.api import bmc
from ingot.provisioner import Access, HostRef
from ingot.provisioner.ironic import ramdisks, states
from ingot.provisioner.ironic.model import FullNode, Json, PatchOperation, add, remove
from ingot.provisioner.ironic.names import node_name
from ingot.provisioner.ironic.network_data import UnreadableNetworkData, parse
from ingot.provisioner.ironic.settings import Ramdisk

PASSWORD: Final = "redfish_password"  # noqa: S105 - the name of a key
_CREDENTIALS: Final = ("redfish_username", PASSWORD)
# Keys of driver_info that are ours to remove when they are no longer wanted.
_OURS: Final = ("redfish_system_id", "redfish_verify_ca", *ramdisks.KEYS)
_DIGEST_KEY: Final = secrets.token_bytes(32)
_SUPPORTED: Final = "redfish-virtualmedia"
_BOOT_MODES: Final = {
    "UEFI": {"boot_mode": "uefi"},
    "UEFISecureBoot": {"boot_mode": "uefi", "secure_boot": "true"},
    "legacy": {"boot_mode": "bios"},
}


Fingerprint = NewType("Fingerprint", bytes)


class Unsupported(ValueError):
    """The order asks for something that this back end, or this kind of BMC, cannot do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A host as Ironic should know it."""

    name: str
    driver: str
    boot_interface: str
    inspect_interface: str
    driver_info: dict[str, Json]
    capabilities: dict[str, str]
    architecture: str
    automated_clean: bool
    disable_power_off: bool
    network_data: dict[str, Json]

    def to_create(self) -> dict[str, Json]:
        """The body of the request that creates the node."""
        properties: dict[str, Json] = {"capabilities": _join(self.capabilities)}
        if self.architecture:
            properties["cpu_arch"] = self.architecture
        body: dict[str, Json] = {
            "name": self.name,
            "driver": self.driver,
            "boot_interface": self.boot_interface,
            "inspect_interface": self.inspect_interface,
            "driver_info": self.driver_info,
            "properties": properties,
            "automated_clean": self.automated_clean,
        }
        if self.disable_power_off:
            body["disable_power_off"] = True
        if self.network_data:
            body["network_data"] = self.network_data
        return body

    def fingerprint(self) -> Fingerprint:
        """Tells two records apart in all but their credentials, and tells nobody what is in them."""
        settings = {key: value for key, value in self.driver_info.items() if key not in _CREDENTIALS}
        return _fingerprint(msgspec.json.encode(replace(self, driver_info=settings), order="deterministic"))

    def credentials_fingerprint(self) -> Fingerprint | None:
        """The same for what it takes to get into the BMC; None where this record does not say."""
        if PASSWORD not in self.driver_info:
            return None
        keys = ("redfish_address", *_CREDENTIALS)
        return _fingerprint(msgspec.json.encode([self.driver_info[key] for key in keys]))


def _fingerprint(content: bytes) -> Fingerprint:
    return Fingerprint(hashlib.blake2b(content, key=_DIGEST_KEY, digest_size=16).digest())


def record_for(host: HostRef, access: Access, ramdisk: Ramdisk) -> Record:
    """Raises `Unsupported` with a sentence for what cannot be done."""
    try:
        address = bmc.parse(access.address)
    except bmc.InvalidAddress as invalid:
        raise Unsupported(str(invalid)) from None
    _check(address, access)
    return Record(
        name=node_name(host.key),
        driver="redfish",
        boot_interface="redfish-virtual-media",
        inspect_interface="redfish" if access.inspection == "fast" else "agent",
        driver_info=_driver_info(address, access, ramdisk),
        capabilities=_BOOT_MODES[access.boot_mode],
        architecture=access.architecture,
        automated_clean=access.automated_cleaning,
        disable_power_off=access.disable_power_off,
        network_data=_network_data(access),
    )


def _check(address: bmc.Address, access: Access) -> None:
    scheme = address.scheme
    if scheme.name != _SUPPORTED:
        raise Unsupported(
            f"BMC addresses with the scheme {scheme.name} are not supported yet (found in {access.address}). "
            f"Use {_SUPPORTED}, if the BMC speaks Redfish and has virtual media"
        )
    if access.boot_mode == "UEFISecureBoot" and not scheme.secure_boot:
        raise Unsupported(f"secure boot cannot be set through a BMC address with the scheme {scheme.name}")
    if access.inspection == "fast" and not scheme.fast_inspection:
        raise Unsupported(f"fast inspection is not possible with a BMC address with the scheme {scheme.name}")


def _driver_info(address: bmc.Address, access: Access, ramdisk: Ramdisk) -> dict[str, Json]:
    info: dict[str, Json] = {"redfish_address": address.root}
    if access.credentials is not None:
        info["redfish_username"] = access.credentials.username
        info[PASSWORD] = access.credentials.password.reveal()
    if address.path.rstrip("/") not in ("", "/redfish/v1"):
        info["redfish_system_id"] = address.path
    if not access.verify_certificate:
        info["redfish_verify_ca"] = False
    try:
        return info | ramdisks.driver_info(address.scheme, access.ramdisk, ramdisk)
    except ramdisks.UnusableRamdisk as problem:
        raise Unsupported(str(problem)) from None


def _network_data(access: Access) -> dict[str, Json]:
    """An image of the host's own brings its network configuration along."""
    try:
        return (parse(access.ramdisk_network) if access.ramdisk is None else None) or {}
    except UnreadableNetworkData as problem:
        raise Unsupported(f"the network data of the ramdisk {problem}") from None


def differences(node: FullNode, wanted: Record, *, new_password: bool) -> list[PatchOperation]:
    """The patch that makes the node what is wanted; empty when it is."""
    patch: list[PatchOperation] = []
    if node.name != wanted.name:
        patch.append(add("/name", wanted.name))
    for key, value in wanted.driver_info.items():
        if new_password if key == PASSWORD else node.driver_info.get(key) != value:
            patch.append(add(f"/driver_info/{key}", value))
    patch += [
        remove(f"/driver_info/{key}")
        for key in _OURS
        if key in node.driver_info and key not in wanted.driver_info
    ]
    if node.automated_clean != wanted.automated_clean:
        patch.append(add("/automated_clean", wanted.automated_clean))
    if node.disable_power_off != wanted.disable_power_off:
        patch.append(add("/disable_power_off", wanted.disable_power_off))
    if (node.network_data or {}) != wanted.network_data:
        # Ironic takes a whole configuration or none.
        whole = wanted.network_data
        patch.append(add("/network_data", whole) if whole else remove("/network_data"))
    return patch + _property_differences(node, wanted)


def _property_differences(node: FullNode, wanted: Record) -> list[PatchOperation]:
    patch: list[PatchOperation] = []
    present = _split(node.properties.get("capabilities"))
    kept = {key: value for key, value in present.items() if key not in ("boot_mode", "secure_boot")}
    if present != (merged := kept | wanted.capabilities):
        patch.append(add("/properties/capabilities", _join(merged)))
    if wanted.architecture and node.properties.get("cpu_arch") != wanted.architecture:
        patch.append(add("/properties/cpu_arch", wanted.architecture))
    # An interface can only be changed while nothing depends on it.
    idle = node.provision_state in (states.ENROLL, states.MANAGEABLE, states.AVAILABLE, states.INSPECT_FAILED)
    if idle and node.inspect_interface != wanted.inspect_interface:
        patch.append(add("/inspect_interface", wanted.inspect_interface))
    return patch


def _split(capabilities: Json) -> dict[str, str]:
    """Ironic keeps capabilities as "a:b,c:d"."""
    items = capabilities.split(",") if isinstance(capabilities, str) else []
    pairs = (item.partition(":") for item in items if item)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _join(capabilities: dict[str, str]) -> str:
    return ",".join(f"{key}:{value}" for key, value in capabilities.items())
