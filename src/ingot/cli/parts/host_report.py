"""A host as `ingot host` tells it, to people and as JSON: one row of a list, or all of one.

Pure. What a host says of itself comes from `ingot.hosts.explanation`; a host whose status cannot be read says that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from ingot.api.baremetalhost import BareMetalHost, OperationalStatus, UnknownState
from ingot.api.hardwaredata import HardwareDetails
from ingot.api.installed import deploy_method
from ingot.api.wire import wire
from ingot.hosts.explanation import explain

_BESIDE_THE_STATE: Final = frozenset(
    {OperationalStatus.DETACHED, OperationalStatus.SERVICING, OperationalStatus.DELAYED}
)


class HostReport(msgspec.Struct, rename="camel", kw_only=True):
    """What `-o json` tells of a host."""

    namespace: str
    name: str
    state: str
    status: str
    online: bool
    powered_on: bool
    consumer: str
    address: str
    error_type: str
    error: str
    why: str
    next: str = ""
    when: str = ""
    do: str = ""
    since: datetime | None = None
    created: datetime | None = None

    @property
    def place(self) -> str:
        """Its state, with the status beside it where that is more than well or not."""
        return f"{self.state} ({self.status})" if self.status in _BESIDE_THE_STATE else self.state

    @property
    def power(self) -> str:
        """What it is, and what it is to become where that differs."""
        now, wanted = ("on" if on else "off" for on in (self.powered_on, self.online))
        return now if now == wanted else f"{now}, to be {wanted}"


def report_on(host: BareMetalHost) -> HostReport:
    status = host.status
    by = host.spec.consumer_ref
    report = HostReport(
        namespace=host.metadata.namespace,
        name=host.metadata.name,
        state=status.provisioning.state or "new",
        status=str(status.operational_status) or "unknown",
        online=host.spec.online,
        powered_on=status.powered_on,
        consumer=by.name if by is not None else "",
        address=host.spec.bmc.address,
        error_type=str(status.error_type),
        error=status.error_message,
        why="",
        created=host.metadata.creation_timestamp,
    )
    try:
        found = explain(host)
    except UnknownState as error:
        return msgspec.structs.replace(report, why=str(error))
    return msgspec.structs.replace(
        report,
        state=found.state,
        why=found.why,
        next=found.next,
        when=found.when,
        do=found.do,
        since=found.since,
    )


def table(rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Columns as kubectl sets them; the last one is cut where it does not fit into so many characters."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        line = "   ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
        lines.append(line if width is None or len(line) <= width else f"{line[: max(width - 1, 1)]}…")
    return lines


def hardware_lines(found: HardwareDetails) -> list[tuple[str, str]]:
    """What a machine is made of, a line a part."""
    vendor, cpu = found.system_vendor, found.cpu
    machine = " ".join(filter(None, (vendor.manufacturer, vendor.product_name)))
    lines = [
        ("machine", f"{machine}, serial number {vendor.serial_number}" if vendor.serial_number else machine),
        ("processor", f"{cpu.count} × {cpu.model or 'unknown model'} ({cpu.arch})" if cpu.count else ""),
        ("memory", f"{found.ram_mebibytes / 1024:g} GiB" if found.ram_mebibytes else ""),
        ("firmware", " ".join(filter(None, (found.firmware.bios.vendor, found.firmware.bios.version)))),
    ]
    for disk in found.storage:
        kind = disk.type or ("HDD" if disk.rotational else "SSD")
        model = " ".join(filter(None, (disk.vendor, disk.model)))
        lines.append(
            ("disk", f"{disk.name}, {_size(disk.size_bytes)} {kind}" + (f", {model}" if model else ""))
        )
    for nic in found.nics:
        speed = f", {nic.speed_gbps} Gbit/s" if nic.speed_gbps else ""
        lines.append(("network", f"{nic.name} {nic.mac}{speed}" + (f", {nic.ip}" if nic.ip else "")))
    return [(label, text) for label, text in lines if text]


def applied_lines(host: BareMetalHost) -> list[tuple[str, str]]:
    """What was done to the host: image, boot mode, RAID, and the ramdisk that was booted for it."""
    there = host.status.provisioning
    lines = []
    if there.image is not None and there.image.url:
        lines.append(("image", there.image.url))
    if method := deploy_method(there.image, there.custom_deploy):
        lines.append(("deployed by", method))
    if there.boot_mode:
        lines.append(("boot mode", there.boot_mode))
    if there.raid is not None:
        volumes: list[Any] = [
            *(there.raid.hardware_raid_volumes or ()),
            *(there.raid.software_raid_volumes or ()),
        ]
        told = ", ".join(_volume(wire(volume)) for volume in volumes)
        lines.append(("RAID", told or "no volumes"))
    if (booted := host.status.ramdisk) is not None:
        when = f", told to boot at {booted.booted_at:%Y-%m-%d %H:%M:%S} UTC" if booted.booted_at else ""
        ran = f", says it is {booted.reported}" if booted.reported else ""
        lines.append(("ramdisk", f"{booted.version or 'of an unknown version'} ({booted.format}){when}{ran}"))
    return lines


def _volume(volume: dict[str, Any]) -> str:
    size = volume.get("sizeGibibytes")
    name = volume.get("name", "")
    return " ".join(filter(None, (name, f"level {volume['level']}", f"{size} GiB" if size else "")))


def _size(size: int) -> str:
    """In powers of ten, as disks are sold."""
    for unit, length in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if size >= length:
            return f"{size / length:.4g} {unit}"
    return f"{size} B"
