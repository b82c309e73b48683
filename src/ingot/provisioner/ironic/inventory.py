"""What the ramdisk found in the machine, and its translation into the words of the API.

Pure. The structs take what ironic-python-agent and Ironic's own Redfish inspection send; anything may be missing or null,
because hardware is like that. `hardware_details` keeps the rules that users of Metal3 know: a NIC appears once per IP
address family, a disk is named by its path where it has one, speed is whole gigabits.

The report is whatever a machine sends. A number or MAC address in it that cannot be, and that the API would not take, counts as
not told: the host gets through with what is left, instead of failing at the same report in each pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from ingot.api.hardwaredata import (
    BIOS,
    CPU,
    LLDP,
    MAC_PATTERN,
    NIC,
    VLAN,
    Firmware,
    HardwareDetails,
    Storage,
    SystemVendor,
)
from ingot.provisioner import Findings

_BUILD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~-]{0,63}")
_MAC: Final = re.compile(MAC_PATTERN)
_LARGEST: Final = 2**63 - 1
_LAST_VLAN: Final = 4094


class _Lenient(msgspec.Struct, kw_only=True, gc=False):
    pass


class Interface(_Lenient):
    name: str | None = None
    mac_address: str | None = None
    ipv4_address: str | None = None
    ipv6_address: str | None = None
    vendor: str | None = None
    product: str | None = None
    speed_mbps: float | None = None
    pci_address: str | None = None


class Processors(_Lenient):
    model_name: str | None = None
    frequency: str | float | None = None
    count: int | None = None
    architecture: str | None = None
    flags: list[str] | None = None


class Disk(_Lenient):
    name: str | None = None
    model: str | None = None
    size: int | None = None
    rotational: bool | None = None
    wwn: str | None = None
    serial: str | None = None
    vendor: str | None = None
    wwn_with_extension: str | None = None
    wwn_vendor_extension: str | None = None
    hctl: str | None = None
    by_path: str | None = None


class Memory(_Lenient):
    physical_mb: int | None = None


class VendorFirmware(_Lenient):
    vendor: str | None = None
    version: str | None = None
    build_date: str | None = None


class Vendor(_Lenient):
    product_name: str | None = None
    serial_number: str | None = None
    manufacturer: str | None = None
    firmware: VendorFirmware | None = None


class Inventory(_Lenient):
    interfaces: list[Interface] | None = None
    cpu: Processors | None = None
    disks: list[Disk] | None = None
    memory: Memory | None = None
    system_vendor: Vendor | None = None
    hostname: str | None = None
    coreos: object = None
    """The live system that looked, as ingot-agent tells of it: with its `build`. Others may mean something else by the word."""


class KnownInterface(_Lenient):
    pxe_enabled: bool | None = None


class SwitchVlan(_Lenient):
    id: int | None = None
    name: str | None = None


class SwitchPort(_Lenient):
    switch_port_vlans: list[SwitchVlan] | None = None
    switch_port_untagged_vlan_id: int | None = None
    switch_chassis_id: str | None = None
    switch_port_id: str | None = None
    switch_system_name: str | None = None


class PluginData(_Lenient):
    all_interfaces: dict[str, KnownInterface] | None = None
    parsed_lldp: dict[str, SwitchPort] | None = None


class InspectionData(_Lenient):
    """The answer of GET /v1/nodes/<id>/inventory."""

    inventory: Inventory = msgspec.field(default_factory=Inventory)
    plugin_data: PluginData | None = None


def findings(data: InspectionData) -> Findings:
    """All that is of use here. What the machine says of itself is shown to people, so it is a word, or nothing."""
    told = data.inventory.coreos
    build = told.get("build") if isinstance(told, dict) else None
    if not isinstance(build, str) or not _BUILD.fullmatch(build):
        build = ""
    return Findings(hardware=hardware_details(data), ramdisk=build)


def hardware_details(data: InspectionData) -> HardwareDetails:
    """The machine in the words of the API."""
    found = data.inventory
    plugins = data.plugin_data or PluginData()
    memory = found.memory or Memory()
    return HardwareDetails(
        cpu=_cpu(found.cpu or Processors()),
        firmware=_firmware(found.system_vendor or Vendor()),
        hostname=found.hostname or "",
        nics=[nic for interface in found.interfaces or [] for nic in _nics(interface, plugins)],
        ram_mebibytes=_possible(memory.physical_mb),
        storage=[_disk(disk) for disk in found.disks or []],
        system_vendor=_vendor(found.system_vendor or Vendor()),
    )


def _cpu(cpu: Processors) -> CPU:
    return CPU(
        arch=cpu.architecture or "",
        clock_megahertz=_megahertz(cpu.frequency),
        count=_possible(cpu.count),
        flags=sorted(cpu.flags or []),
        model=cpu.model_name or "",
    )


def _megahertz(value: str | float | None) -> float:
    try:
        return float(_possible(round(float(value or 0))))
    except (ValueError, OverflowError):  # no number; more than any
        return 0.0


def _possible(number: int | None, *, most: int = _LARGEST) -> int:
    return number if number is not None and 0 <= number <= most else 0


def _firmware(vendor: Vendor) -> Firmware:
    bios = vendor.firmware or VendorFirmware()
    return Firmware(
        bios=BIOS(date=bios.build_date or "", vendor=bios.vendor or "", version=bios.version or "")
    )


def _vendor(vendor: Vendor) -> SystemVendor:
    return SystemVendor(
        manufacturer=vendor.manufacturer or "",
        product_name=vendor.product_name or "",
        serial_number=vendor.serial_number or "",
    )


def _disk(disk: Disk) -> Storage:
    name = disk.name or ""
    return Storage(
        alternate_names=[path for path in (name, disk.by_path) if path],
        hctl=disk.hctl or "",
        model=disk.model or "",
        name=disk.by_path or name,
        rotational=bool(disk.rotational),
        serial_number=disk.serial or "",
        size_bytes=_possible(disk.size),
        type="HDD" if disk.rotational else "NVME" if name.startswith("/dev/nvme") else "SSD",
        vendor=disk.vendor or "",
        wwn=disk.wwn or "",
        wwn_vendor_extension=disk.wwn_vendor_extension or "",
        wwn_with_extension=disk.wwn_with_extension or "",
    )


def _nics(interface: Interface, plugins: PluginData) -> Iterator[NIC]:
    """One entry per IP address family; one without an address where there is none."""
    name, mac = interface.name or "", interface.mac_address or ""
    known = (plugins.all_interfaces or {}).get(name) or KnownInterface()
    port = (plugins.parsed_lldp or {}).get(name)
    for address in [a for a in (interface.ipv4_address, interface.ipv6_address) if a] or [""]:
        yield NIC(
            ip=address,
            lldp=_lldp(port) if port else None,
            # Not the whole of it: InfiniBand has longer ones.
            mac=mac if _MAC.match(mac) else "",
            model=" ".join(part for part in (interface.vendor, interface.product) if part),
            name=name,
            pci_address=interface.pci_address or "",
            pxe=bool(known.pxe_enabled),
            speed_gbps=_possible(int(interface.speed_mbps or 0)) // 1000,
            vlan_id=_possible(port.switch_port_untagged_vlan_id if port else None, most=_LAST_VLAN),
            vlans=[
                VLAN(id=_possible(v.id, most=_LAST_VLAN), name=v.name or "")
                for v in (port.switch_port_vlans if port else None) or []
            ],
        )


def _lldp(port: SwitchPort) -> LLDP:
    return LLDP(
        port_id=port.switch_port_id or "",
        switch_id=port.switch_chassis_id or "",
        switch_system_name=port.switch_system_name or "",
    )
