"""What Ironic's record of a host should say, and how it differs from what it says.

Pure. From the address, the credentials and the settings of a host follow the driver, its interfaces (see `drivers`),
`driver_info` and properties; `differences` is the patch that brings a node there. The password is masked in what Ironic shows,
so it is compared by the caller's knowledge, not here. Keys that others put into `driver_info` stay.

Ironic lets another driver or interface be chosen only while a node is at rest without a system (`RESTING`). Elsewhere such a
difference is left, and `waits_for_rest` says so.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Final, NewType

import msgspec

from ingot.api import bmc
from ingot.api.inputs.network_data import UnreadableNetworkData
from ingot.provisioner import Access, HostRef
from ingot.provisioner.ironic import ramdisks, states
from ingot.provisioner.ironic.drivers import FAMILIES, KINDS, Family, driver_for
from ingot.provisioner.ironic.model import FullNode, Json, PatchOperation, add, remove
from ingot.provisioner.ironic.names import node_name
from ingot.provisioner.ironic.network_data import parse
from ingot.provisioner.ironic.site import Ramdisk, Site

RESTING: Final = frozenset({states.ENROLL, states.MANAGEABLE, states.AVAILABLE})
"""Where Ironic lets another driver or interface be chosen."""
EXTERNAL_URL: Final = "external_http_url"
# Keys of driver_info that are ours to remove when they are no longer wanted.
_OURS: Final = (*(key for family in FAMILIES for key in family.keys), *ramdisks.KEYS)
_DIGEST_KEY: Final = secrets.token_bytes(32)
_BOOT_MODES: Final = {
    "UEFI": {"boot_mode": "uefi"},
    "UEFISecureBoot": {"boot_mode": "uefi", "secure_boot": "true"},
    "legacy": {"boot_mode": "bios"},
}


_USUAL: Final = Site()
_NO_NETWORK_IN_AN_ISO: Final = (
    "spec.preprovisioningNetworkDataName has no effect here: hosts boot the ISO that DEPLOY_ISO_URL names, into which nothing is "
    "put, so the ramdisk asks for its network by DHCP. Where there is no DHCP, have a ramdisk made for each host "
    "(--build-preprov-image), or name DEPLOY_KERNEL_URL and DEPLOY_RAMDISK_URL in place of the ISO"
)

Fingerprint = NewType("Fingerprint", bytes)


class Unsupported(ValueError):
    """The order asks for something that this back end, or this kind of BMC, cannot do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A host as Ironic should know it."""

    name: str
    driver: str
    family: Family
    interfaces: dict[str, str]
    """Kind → name, of those that are not left for Ironic to choose."""
    driver_info: dict[str, Json]
    capabilities: dict[str, str]
    architecture: str
    automated_clean: bool
    disable_power_off: bool
    network_data: dict[str, Json]
    chooses_url: bool
    """Whether it is for us to say where a BMC finds what Ironic serves; otherwise whoever said so is right."""

    def to_create(self) -> dict[str, Json]:
        """The body of the request that creates the node."""
        properties: dict[str, Json] = {"capabilities": _join(self.capabilities)}
        if self.architecture:
            properties["cpu_arch"] = self.architecture
        body: dict[str, Json] = {
            "name": self.name,
            "driver": self.driver,
            **{f"{kind}_interface": name for kind, name in self.interfaces.items()},
            "driver_info": self.driver_info,
            "properties": properties,
            "automated_clean": self.automated_clean,
        }
        if self.disable_power_off:
            body["disable_power_off"] = True
        if self.network_data:
            body["network_data"] = self.network_data
        return body

    @property
    def remark(self) -> str:
        """What of it Ironic takes and does nothing with."""
        # Into an ISO that it has not put together itself Ironic puts nothing; it only says so in its log.
        return _NO_NETWORK_IN_AN_ISO if self.network_data and "deploy_iso" in self.driver_info else ""

    def fingerprint(self) -> Fingerprint:
        """Tells two records apart in all but their credentials, and tells nobody what is in them."""
        told = {key: value for key, value in self.driver_info.items() if key not in self.family.credentials}
        rest = [getattr(self, name) for name in self.__slots__ if name not in ("driver_info", "family")]
        return _fingerprint(msgspec.json.encode([told, *rest], order="deterministic"))

    def credentials_fingerprint(self) -> Fingerprint | None:
        """The same for what it takes to get into the BMC; None where this record does not say."""
        if self.family.password not in self.driver_info:
            return None
        keys = (*self.family.place, *self.family.credentials)
        return _fingerprint(msgspec.json.encode([self.driver_info[key] for key in keys]))

    def is_of_another_bmc(self, node: FullNode) -> bool:
        """Another BMC or another user: the password Ironic has is not for that one."""
        keys = (*self.family.place, self.family.username)
        return any(
            node.driver_info.get(key) != self.driver_info[key] for key in keys if key in self.driver_info
        )


def _fingerprint(content: bytes) -> Fingerprint:
    return Fingerprint(hashlib.blake2b(content, key=_DIGEST_KEY, digest_size=16).digest())


def record_for(
    host: HostRef, access: Access, ramdisk: Ramdisk, site: Site = _USUAL, *, over_v6: bool = False
) -> Record:
    """`over_v6`: the BMC is reached over IPv6. Raises `Unsupported` with a sentence for what cannot be done."""
    try:
        address = bmc.parse(access.address)
    except bmc.InvalidAddress as invalid:
        raise Unsupported(str(invalid).rstrip(".")) from None
    _check(address, access, site)
    driver = driver_for(address.scheme)
    inspection = driver.fast_inspection if access.inspection == "fast" else "agent"
    info = driver.family.driver_info(address, verify_certificate=access.verify_certificate)
    return Record(
        name=node_name(host.key),
        driver=driver.name,
        family=driver.family,
        interfaces=dict(driver.interfaces) | {"inspect": inspection},
        driver_info=info
        | _credentials(driver.family, access)
        | _boots(address, access, ramdisk)
        | _found_at(site, over_v6=over_v6),
        capabilities=_BOOT_MODES[access.boot_mode],
        architecture=access.architecture,
        automated_clean=access.automated_cleaning,
        disable_power_off=access.disable_power_off,
        network_data=_network_data(access),
        chooses_url=bool(site.external_url_v6),
    )


def _check(address: bmc.Address, access: Access, site: Site) -> None:
    scheme = address.scheme
    if access.boot_mode == "UEFISecureBoot" and not scheme.secure_boot:
        raise Unsupported(f"secure boot cannot be set through a BMC address with the scheme {scheme.name}")
    if access.inspection == "fast" and not scheme.fast_inspection:
        raise Unsupported(f"fast inspection is not possible with a BMC address with the scheme {scheme.name}")
    if scheme.needs_mac and not access.boot_mac:
        raise Unsupported(
            f"a host with a BMC address of the scheme {scheme.name} needs spec.bootMACAddress, the MAC address of the interface "
            "that it boots from"
        )
    if scheme.needs_provisioning_network and not site.provisioning_network:
        raise Unsupported(
            f"hosts with a BMC address of the scheme {scheme.name} boot over the provisioning network, and "
            "PROVISIONING_NETWORK_DISABLED says that there is none. Use a scheme with virtual media, such as redfish-virtualmedia"
        )


def _credentials(family: Family, access: Access) -> dict[str, Json]:
    if access.credentials is None:
        return {}
    return {
        family.username: access.credentials.username,
        family.password: access.credentials.password.reveal(),
    }


def _boots(address: bmc.Address, access: Access, ramdisk: Ramdisk) -> dict[str, Json]:
    try:
        return ramdisks.driver_info(
            address.scheme, access.ramdisk, ramdisk.for_architecture(access.architecture)
        )
    except ramdisks.UnusableRamdisk as problem:
        raise Unsupported(str(problem)) from None


def _found_at(site: Site, *, over_v6: bool) -> dict[str, Json]:
    """Where the BMC finds what Ironic serves, if it is not where all others do."""
    return {EXTERNAL_URL: site.external_url_v6} if over_v6 and site.external_url_v6 else {}


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
        if new_password if key == wanted.family.password else node.driver_info.get(key) != value:
            patch.append(add(f"/driver_info/{key}", value))
    # Credentials of this family stay where this record does not say which they are.
    kept = wanted.family.credentials
    patch += [
        remove(f"/driver_info/{key}")
        for key in (*_OURS, *((EXTERNAL_URL,) if wanted.chooses_url else ()))
        if key in node.driver_info and key not in wanted.driver_info and key not in kept
    ]
    patch += _reuse_differences(node, wanted)
    if node.automated_clean != wanted.automated_clean:
        patch.append(add("/automated_clean", wanted.automated_clean))
    if node.disable_power_off != wanted.disable_power_off:
        patch.append(add("/disable_power_off", wanted.disable_power_off))
    if (node.network_data or {}) != wanted.network_data:
        # Ironic takes a whole configuration or none.
        whole = wanted.network_data
        patch.append(add("/network_data", whole) if whole else remove("/network_data"))
    patch += _property_differences(node, wanted)
    return patch + (_driver_differences(node, wanted) if node.provision_state in RESTING else [])


def _reuse_differences(node: FullNode, wanted: Record) -> list[PatchOperation]:
    """Whether the agent of another ramdisk may go on; see `ramdisks`."""
    ours = node.driver_info.get(ramdisks.REUSE) == ramdisks.NEVER
    if node.provision_state == states.ACTIVE:
        return [remove(f"/driver_info/{ramdisks.REUSE}")] if ours else []
    before = ramdisks.chosen(node.driver_info)
    changes = before and before != ramdisks.chosen(wanted.driver_info)
    if not changes or ours or node.provision_state in (states.ENROLL, states.VERIFYING):
        return []
    return [add(f"/driver_info/{ramdisks.REUSE}", ramdisks.NEVER)]


def waits_for_rest(node: FullNode, wanted: Record) -> bool:
    """Whether the node is to have another driver or interface, and Ironic lets nobody change that where it is."""
    return node.provision_state not in RESTING and bool(_driver_differences(node, wanted))


def _driver_differences(node: FullNode, wanted: Record) -> list[PatchOperation]:
    if has_another_driver(node, wanted):
        # Whatever the old driver had is chosen anew.
        kinds = [kind for kind in KINDS if kind not in wanted.interfaces and node.interface(kind)]
        return [
            add("/driver", wanted.driver),
            *(add(f"/{kind}_interface", name) for kind, name in wanted.interfaces.items()),
            *(remove(f"/{kind}_interface") for kind in kinds),
        ]
    return [
        add(f"/{kind}_interface", name)
        for kind, name in wanted.interfaces.items()
        # Which of its two RAID interfaces a node has follows from the volumes that are made last.
        if kind != "raid" and node.interface(kind) != name
    ]


def has_another_driver(node: FullNode, wanted: Record) -> bool:
    return bool(node.driver) and node.driver != wanted.driver


def _property_differences(node: FullNode, wanted: Record) -> list[PatchOperation]:
    patch: list[PatchOperation] = []
    present = _split(node.properties.get("capabilities"))
    kept = {key: value for key, value in present.items() if key not in ("boot_mode", "secure_boot")}
    if present != (merged := kept | wanted.capabilities):
        patch.append(add("/properties/capabilities", _join(merged)))
    if wanted.architecture and node.properties.get("cpu_arch") != wanted.architecture:
        patch.append(add("/properties/cpu_arch", wanted.architecture))
    return patch


def _split(capabilities: Json) -> dict[str, str]:
    """Ironic keeps capabilities as "a:b,c:d"."""
    items = capabilities.split(",") if isinstance(capabilities, str) else []
    pairs = (item.partition(":") for item in items if item)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _join(capabilities: dict[str, str]) -> str:
    return ",".join(f"{key}:{value}" for key, value in capabilities.items())
