"""Which driver of Ironic serves a BMC address, by which interfaces, and what that driver has to be told.

Pure, and a table: a scheme of addresses is a line. An interface that is not named in it is left for Ironic to choose. All else of
this package works with whatever stands here; nowhere else is a scheme or the key of a driver spelled out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from ingot.api import bmc
from ingot.provisioner.ironic.model import Json

KINDS: Final = ("bios", "boot", "firmware", "inspect", "management", "power", "raid", "vendor")
"""The kinds of interfaces that depend on the hardware."""

_DEFAULT_IPMI_PORT: Final = 623
_SERVICE_ROOT: Final = "/redfish/v1"


def _over_ipmi(address: bmc.Address) -> dict[str, Json]:
    return {
        "ipmi_address": address.host,
        # Ironic wants text.
        "ipmi_port": str(address.port or _DEFAULT_IPMI_PORT),
        "ipmi_priv_level": address.privilege_level,
    }


def _over_redfish(address: bmc.Address) -> dict[str, Json]:
    """Without the path of a system, Ironic takes the only one that there is."""
    info: dict[str, Json] = {"redfish_address": address.root}
    if address.path.rstrip("/") not in ("", _SERVICE_ROOT):
        info["redfish_system_id"] = address.path
    return info


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How drivers that speak one protocol are told of a BMC: the keys of `driver_info`, and what they hold."""

    where: Callable[[bmc.Address], dict[str, Json]] = field(repr=False)
    place: tuple[str, ...]
    """The keys that tell one BMC from another; the first holds its address."""
    username: str
    password: str
    verify: str
    """The key that says whether the BMC has to prove who it is."""
    options: tuple[str, ...]
    """What else can be told."""

    @property
    def credentials(self) -> tuple[str, str]:
        return self.username, self.password

    @property
    def keys(self) -> tuple[str, ...]:
        return *self.place, *self.credentials, self.verify, *self.options

    def driver_info(self, address: bmc.Address, *, verify_certificate: bool) -> dict[str, Json]:
        """All but the credentials and the ramdisk."""
        return self.where(address) | ({} if verify_certificate else {self.verify: False})


IPMI: Final = Family(
    where=_over_ipmi,
    place=("ipmi_address", "ipmi_port"),
    username="ipmi_username",
    password="ipmi_password",  # noqa: S106 - the name of a key
    verify="ipmi_verify_ca",
    options=("ipmi_priv_level",),
)
REDFISH: Final = Family(
    where=_over_redfish,
    place=("redfish_address",),
    username="redfish_username",
    password="redfish_password",  # noqa: S106 - the name of a key
    verify="redfish_verify_ca",
    options=("redfish_system_id",),
)
FAMILIES: Final = (IPMI, REDFISH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """What serves the addresses of a scheme."""

    name: str
    """Ironic calls it hardware type."""
    family: Family
    interfaces: Mapping[str, str]
    """Kind → name, of those that are chosen here. `inspect` is chosen for each host."""
    fast_inspection: str = ""
    """The interface that asks the BMC what the machine is made of; "": there is none."""


def _driver(name: str, family: Family, *, inspect: str = "", **interfaces: str) -> Driver:
    return Driver(name=name, family=family, interfaces=MappingProxyType(interfaces), fast_inspection=inspect)


_OF_REDFISH: Final = {"raid": "redfish", "firmware": "redfish", "inspect": "redfish"}
_OF_IDRAC: Final = {
    "management": "idrac-redfish",
    "power": "idrac-redfish",
    "raid": "idrac-redfish",
    "bios": "idrac-redfish",
    "vendor": "idrac-redfish",
    # There is none of its own.
    "firmware": "redfish",
    # Ironic's driver for this hardware takes no other: the plain one is not among what it supports.
    "inspect": "idrac-redfish",
}

DRIVERS: Final[Mapping[str, Driver]] = MappingProxyType(
    {
        "ipmi": _driver("ipmi", IPMI, boot="ipxe", raid="no-raid"),
        "libvirt": _driver("ipmi", IPMI, boot="ipxe", raid="no-raid"),
        "redfish": _driver("redfish", REDFISH, boot="ipxe", **_OF_REDFISH),
        "ilo5-redfish": _driver("redfish", REDFISH, boot="ipxe", **_OF_REDFISH),
        "redfish-virtualmedia": _driver("redfish", REDFISH, boot="redfish-virtual-media", **_OF_REDFISH),
        "ilo5-virtualmedia": _driver("redfish", REDFISH, boot="redfish-virtual-media", **_OF_REDFISH),
        "redfish-uefihttp": _driver("redfish", REDFISH, boot="redfish-https", **_OF_REDFISH),
        "idrac-redfish": _driver("idrac", REDFISH, boot="ipxe", **_OF_IDRAC),
        "idrac-virtualmedia": _driver("idrac", REDFISH, boot="idrac-redfish-virtual-media", **_OF_IDRAC),
    }
)
"""Scheme of a BMC address → what serves it."""

_OWN_RAID: Final = {driver.name: driver.interfaces["raid"] for driver in DRIVERS.values()}


def driver_for(scheme: bmc.Scheme) -> Driver:
    return DRIVERS[scheme.name]


def own_raid_interface(driver: str) -> str:
    """The interface by which this driver reaches a RAID controller; "" for a driver that is none of ours."""
    return _OWN_RAID.get(driver, "")
