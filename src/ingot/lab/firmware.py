"""Firmware: what to boot from, and booting it.

`boot_target` and `after_boot` are the rules of Redfish's boot override. `Firmware.boot` boots the way a machine does, with
nothing but what the BMC was given: a virtual CD, a stick, a URL for UEFI, the network's boot script, or a disk. It fetches
what it boots, and what it finds there decides what runs: parameters for the agent make it a ramdisk, as does the agent in a
CoreOS live system (`coreos`); anything else that boots is an operating system. What cannot be booted is a `BootFailure` with the
reason.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ingot.formats import FormatError
from ingot.formats.boot_parameters import parameters
from ingot.lab.chassis import Chassis
from ingot.lab.coreos import (
    LiveSystem,
    Reach,
    booted_from_medium,
    booted_from_network,
    is_live_initrd,
    live_medium,
    started,
)
from ingot.lab.devices import devices
from ingot.lab.disk import in_thread
from ingot.lab.errors import BootFailure
from ingot.lab.fetching import Fetched, fetched
from ingot.lab.instance import boot_from_disk, read_config_drive
from ingot.lab.ipxe import network_boot
from ingot.lab.loading import Loader
from ingot.lab.media import Remote, opened
from ingot.lab.medium import Library, Medium, read_medium
from ingot.lab.record import Booted, BootTarget, Instance, Override, Ramdisk
from ingot.trust import HIDDEN, write_private

_NEVER_SHOWN: Final = "ipa-agent-token"
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
        found = await self._from_medium(chassis, url, what)
        stick = Medium() if source == "Usb" else await self._stick(chassis)
        if isinstance(found, _Live):
            return await found.start(chassis, source, url, stick)
        medium, booted = found.medium, found.booted(source, url)
        # What is on the stick counts more than what is baked into the medium.
        given = medium.parameters | stick.parameters
        if medium.for_agent or stick.for_agent:
            return _as_ramdisk(booted, given, medium)
        if not medium.bootable:
            raise BootFailure(
                f"{what} is not bootable: it has neither a boot record nor the configuration of a boot loader"
            )
        live = Instance(image_sha256=booted.sha256, image_size=booted.size)
        read_config_drive(stick.config_drive, live)
        return Result(booted, live)

    async def _from_medium(self, chassis: Chassis, url: str, what: str) -> _Live | _Read:
        try:
            async with (
                self._fetching,
                opened(url, what, trusted=self.trusted, folder=chassis.folder) as found,
            ):
                if self._library.known(found.sha256) is None and (live := await found.read(live_medium)):
                    system = await booted_from_medium(live, found, Reach(self.trusted, chassis.folder))
                    return _Live(system, found.sha256, found.size)
                if not isinstance(found, Remote):
                    return await self._known(found)
        except FormatError as error:
            raise BootFailure(f"{what} is not bootable: {error}") from error
        return await self._read(chassis, url, what)

    async def _stick(self, chassis: Chassis) -> Medium:
        """What is on the virtual stick; an operating system passes over one that it cannot read."""
        url = chassis.record.media.get("Usb", "")
        if not url:
            return Medium()
        try:
            return (await self._read(chassis, url, "the virtual stick")).medium
        except BootFailure as failure:
            chassis.note(f"goes on without the stick: {failure}")
            return Medium()

    async def _read(self, chassis: Chassis, url: str, what: str) -> _Read:
        """A medium, all of it."""
        try:
            async with (
                self._fetching,
                fetched(url, what, trusted=self.trusted, folder=chassis.folder) as found,
            ):
                return await self._known(found)
        except FormatError as error:
            raise BootFailure(f"{what} is not bootable: {error}") from error

    async def _known(self, found: Fetched) -> _Read:
        medium = self._library.known(found.sha256)
        if medium is None:
            medium = await found.read(read_medium)
            self._library.keep(found.sha256, medium)
        return _Read(medium, found.sha256, found.size)

    async def _boot_network(self, chassis: Chassis) -> Result:
        if not self._ipxe_url:
            raise BootFailure("nothing answers on the network: the farm knows no boot script (--ipxe-url)")
        loader = Loader(trusted=self.trusted, folder=chassis.folder)
        found = await network_boot(self._ipxe_url, macs=chassis.plate.macs, load=loader.load)
        if found is None:
            return await _boot_disk(chassis)
        if found.iso:
            return await self._boot_iso(chassis, "Pxe", found.iso, "what the network boots")
        sha256, size = loader.digest(found), loader.size(found)
        try:
            given, members = parameters(found.command_line), loader.members(found)
            if is_live_initrd(members):
                reach = Reach(self.trusted, chassis.folder)
                live = _Live(await booted_from_network(found.command_line, members, reach), sha256, size)
                return await live.start(chassis, "Pxe", found.kernel, Medium())
        except FormatError as error:
            raise BootFailure(f"what the network boots is not bootable: {error}") from error
        medium = Medium(parameters=given, ca=loader.ca(found))
        booted = Booted(source="Pxe", url=found.kernel, sha256=sha256, size=size)
        if not medium.for_agent:
            return Result(booted, Instance(image_sha256=sha256, image_size=size))
        return _as_ramdisk(booted, given, medium)


@dataclass(frozen=True, slots=True)
class _Read:
    """A medium of which everything was read."""

    medium: Medium
    sha256: str
    size: int

    def booted(self, source: str, url: str) -> Booted:
        return Booted(
            source=source,
            url=url,
            sha256=self.sha256,
            size=self.size,
            network_data=self.medium.network_data,
        )


@dataclass(frozen=True, slots=True)
class _Live:
    """A CoreOS live system that has found its root."""

    system: LiveSystem
    sha256: str
    size: int

    async def start(self, chassis: Chassis, source: str, url: str, stick: Medium) -> Result:
        record, runs = started(self.system, stick.parameters, sha256=self.sha256, size=self.size)
        await asyncio.to_thread(_keep, chassis.booted_ignition, self.system.ignition)
        booted = Booted(source=source, url=url, sha256=self.sha256, size=self.size, coreos=record)
        return Result(booted, runs)


def _keep(file: Path, content: bytes | None) -> None:
    if content is None:
        file.unlink(missing_ok=True)
    else:
        write_private(file, content)


async def _boot_disk(chassis: Chassis) -> Result:
    """Boot the device that was written last, as the boot loader's entry in the firmware says."""
    there = {device.key: device for device in devices(chassis.plate, chassis.record)}
    for key, written in reversed(chassis.record.written.items()):
        if key in there:
            boot = functools.partial(boot_from_disk, chassis.disks.at(there[key]), written)
            return Result(Booted(source=there[key].name), await in_thread(boot))
    raise BootFailure("the disk is not bootable: nothing was written to it")


def _as_ramdisk(booted: Booted, given: dict[str, str], medium: Medium) -> Result:
    ramdisk = Ramdisk(
        parameters=given,
        ca=medium.ca,
        token=given.get(_NEVER_SHOWN, ""),
        boot_mac=given.get("BOOTIF", ""),
    )
    shown = {name: HIDDEN if name == _NEVER_SHOWN else value for name, value in given.items()}
    ca_sha256 = hashlib.sha256(medium.ca.encode()).hexdigest() if medium.ca else ""
    return Result(replace(booted, parameters=shown, ca_sha256=ca_sha256), ramdisk)
