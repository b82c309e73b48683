"""Firmware: what to boot from, and booting it.

`boot_target` and `after_boot` are the rules of Redfish's boot override. `Firmware.boot` boots the way a machine does, with
nothing but what the BMC was given: a virtual CD, a stick, a URL for UEFI, the network's boot script, or a disk. It fetches all
of what it boots, and what it finds there decides what runs: parameters for the agent make it a ramdisk, anything else that
boots is an operating system. What cannot be booted is a `BootFailure` with the reason.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import io
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from ingot.formats import FormatError
from ingot.formats.boot_parameters import parameters
from ingot.lab.chassis import Chassis
from ingot.lab.devices import devices
from ingot.lab.disk import in_thread
from ingot.lab.errors import BootFailure
from ingot.lab.fetching import IN_MEMORY, Fetched, fetched
from ingot.lab.instance import boot_from_disk, read_config_drive
from ingot.lab.ipxe import LoadFailed, NetBoot, network_boot
from ingot.lab.medium import Library, Medium, ca_in_initrd, read_medium
from ingot.lab.record import Booted, BootTarget, Instance, Override, Ramdisk

AT_ONCE: Final = 64
"""Media that are read at the same time: each takes its size in memory while it is."""


def boot_target(override: Override) -> BootTarget:
    """Where this boot starts from; without an override that is the disk."""
    if override.enabled == "Disabled" or override.target == "None":
        return "Hdd"
    return override.target


def after_boot(override: Override) -> Override:
    """The override that the next boot will see: Once means once."""
    if override.enabled != "Once":
        return override
    return Override(mode=override.mode, http_boot_uri=override.http_boot_uri)


@dataclass(frozen=True, slots=True)
class Result:
    """What a boot came to: a ramdisk with an agent, or an operating system."""

    booted: Booted
    runs: Ramdisk | Instance


class Firmware:
    """One for all servers of a farm: it remembers the media it has read."""

    def __init__(self, *, trusted: ssl.SSLContext, ipxe_url: str = "") -> None:
        self.trusted = trusted
        self._ipxe_url = ipxe_url
        self._library = Library()
        self._fetching = asyncio.Semaphore(AT_ONCE)

    async def boot(self, chassis: Chassis, source: BootTarget) -> Result:
        match source:
            case "Cd" | "UsbCd":
                url = chassis.record.media.get("Cd", "")
                if not url:
                    raise BootFailure("no medium is inserted in the virtual CD drive")
                return await self._boot_iso(chassis, source, url, "the virtual medium")
            case "Usb":
                url = chassis.record.media.get("Usb", "")
                if not url:
                    raise BootFailure("no medium is inserted in the virtual USB drive")
                return await self._boot_iso(chassis, source, url, "the virtual stick")
            case "UefiHttp":
                url = chassis.record.override.http_boot_uri
                if not url:
                    raise BootFailure("the firmware was told to boot over HTTP, but from no URL")
                return await self._boot_iso(chassis, source, url, "what UEFI boots over HTTP")
            case "Pxe":
                return await self._boot_network(chassis)
            case "BiosSetup":
                raise BootFailure("the server stays in the BIOS set-up, as the boot override says")
            case "None" | "Hdd":
                return await _boot_disk(chassis)

    async def _boot_iso(self, chassis: Chassis, source: str, url: str, what: str) -> Result:
        medium, booted = await self._read(chassis, source, url, what)
        stick = Medium() if source == "Usb" else await self._stick(chassis)
        # What is on the stick counts more than what is baked into the medium.
        given = medium.parameters | stick.parameters
        if medium.for_agent or stick.for_agent:
            return Result(booted, _ramdisk(given, medium))
        if not medium.bootable:
            raise BootFailure(
                f"{what} is not bootable: it has neither a boot record nor the configuration of a boot loader"
            )
        live = Instance(image_sha256=booted.sha256, image_size=booted.size)
        read_config_drive(stick.config_drive, live)
        return Result(booted, live)

    async def _stick(self, chassis: Chassis) -> Medium:
        """What is on the virtual stick; an operating system passes over one that it cannot read."""
        url = chassis.record.media.get("Usb", "")
        if not url:
            return Medium()
        try:
            return (await self._read(chassis, "Usb", url, "the virtual stick"))[0]
        except BootFailure as failure:
            chassis.note(f"goes on without the stick: {failure}")
            return Medium()

    async def _read(self, chassis: Chassis, source: str, url: str, what: str) -> tuple[Medium, Booted]:
        try:
            async with (
                self._fetching,
                fetched(url, what, trusted=self.trusted, folder=chassis.folder) as found,
            ):
                medium = self._library.known(found.sha256)
                if medium is None:
                    medium = await _off_loop_when_large(found)
                    self._library.keep(found.sha256, medium)
                return medium, Booted(
                    source=source, sha256=found.sha256, size=found.size, network_data=medium.network_data
                )
        except FormatError as error:
            raise BootFailure(f"{what} is not bootable: {error}") from error

    async def _boot_network(self, chassis: Chassis) -> Result:
        if not self._ipxe_url:
            raise BootFailure("nothing answers on the network: the farm knows no boot script (--ipxe-url)")
        loader = _Loader(chassis, self.trusted)
        found = await network_boot(self._ipxe_url, macs=chassis.plate.macs, load=loader.load)
        if found is None:
            return await _boot_disk(chassis)
        if found.iso:
            return await self._boot_iso(chassis, "Pxe", found.iso, "what the network boots")
        given = parameters(found.command_line)
        medium = Medium(parameters=given, ca=loader.ca)
        if not medium.for_agent:
            live = Instance(image_sha256=loader.digest(found), image_size=loader.size(found))
            return Result(Booted(source="Pxe", sha256=live.image_sha256, size=live.image_size), live)
        booted = Booted(source="Pxe", sha256=loader.digest(found), size=loader.size(found))
        return Result(booted, _ramdisk(given, medium))


class _Loader:
    """Fetches for a network boot, and remembers digest and size of each thing and the CA in a ramdisk."""

    def __init__(self, chassis: Chassis, trusted: ssl.SSLContext) -> None:
        self._chassis = chassis
        self._trusted = trusted
        self._seen: dict[str, tuple[str, int]] = {}
        self.ca = ""

    async def load(self, url: str) -> bytes:
        try:
            what = urlsplit(url).path.rpartition("/")[2] or "the script"
            async with fetched(url, what, trusted=self._trusted, folder=self._chassis.folder) as found:
                self._seen[url] = found.sha256, found.size
                if found.small:
                    found.file.seek(0)
                    content = found.file.read()
                    self.ca = self.ca or ca_in_initrd(io.BytesIO(content))
                    return content
                self.ca = self.ca or await asyncio.to_thread(ca_in_initrd, found.file)
                return b""  # no script is as large
        except BootFailure as failure:
            raise LoadFailed(str(failure)) from failure

    def digest(self, found: NetBoot) -> str:
        """One digest over the digests of kernel and ramdisks."""
        parts = "".join(self._seen[url][0] for url in (found.kernel, *found.initrds))
        return hashlib.sha256(parts.encode()).hexdigest()

    def size(self, found: NetBoot) -> int:
        return sum(self._seen[url][1] for url in (found.kernel, *found.initrds))


async def _boot_disk(chassis: Chassis) -> Result:
    """Boot the device that was written last, as the boot loader's entry in the firmware says."""
    there = {device.key: device for device in devices(chassis.plate, chassis.record)}
    for key, written in reversed(chassis.record.written.items()):
        if key in there:
            boot = functools.partial(boot_from_disk, chassis.disks.at(there[key]), written)
            return Result(Booted(source=there[key].name), await in_thread(boot))
    raise BootFailure("the disk is not bootable: nothing was written to it")


async def _off_loop_when_large(found: Fetched) -> Medium:
    if found.size <= IN_MEMORY:
        return read_medium(found.file)
    return await asyncio.to_thread(read_medium, found.file)


def _ramdisk(given: dict[str, str], medium: Medium) -> Ramdisk:
    return Ramdisk(
        parameters=given,
        ca=medium.ca,
        token=given.get("ipa-agent-token", ""),
        boot_mac=given.get("BOOTIF", ""),
    )
