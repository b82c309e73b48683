"""Booting a CoreOS live system: from the kernel's arguments to the root file system and the config of Ignition.

Follows the live system's own rules: `coreos.liveiso` makes it wait for a medium of that name; without it the root file system
comes over the network, or in the initial RAM disk, and has to be of the same build; Ignition runs with `ignition.firstboot` and
`ignition.platform.id=metal`, and not without. Where a real machine would wait for ever or stop, this ends in a `BootFailure`.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ingot.formats import FormatError
from ingot.formats.boot_parameters import parameters
from ingot.formats.coreos import IGNITION, NETWORK, network_of, parse_features
from ingot.formats.initrd import Members, read_members
from ingot.lab.coreos.live import LiveMedium
from ingot.lab.coreos.rootfs import check_root_file_system, check_same_build
from ingot.lab.coreos.system import (
    BUILD,
    FEATURES,
    INJECTED_ROOT,
    WANTED_ROOT,
    LiveSystem,
    wanted_members,
)
from ingot.lab.errors import BootFailure
from ingot.lab.fetching import Fetched, fetched
from ingot.lab.media import Remote

_MEDIUM: Final = "coreos.liveiso"
_ROOT_URL: Final = "coreos.live.rootfs_url"
_CONFIG_URL: Final = "ignition.config.url"
_FIRST_BOOT: Final = "ignition.firstboot"
_PLATFORM: Final = "ignition.platform.id"
_LARGEST_CONFIG: Final = 64 << 20


def is_live_initrd(members: Mapping[str, bytes]) -> bool:
    """Whether an initial RAM disk with these members is that of a live system."""
    return BUILD in members


def needs_live_initrd(arguments: str) -> bool:
    """Whether a kernel is told what only a live system understands."""
    return _ROOT_URL in parameters(arguments)


@dataclass(frozen=True, slots=True)
class Reach:
    """How a server fetches: whom it trusts, and where it puts what is large."""

    trusted: ssl.SSLContext
    folder: Path


async def booted_from_medium(found: LiveMedium, medium: Fetched | Remote, reach: Reach) -> LiveSystem:
    given = parameters(found.arguments)
    if (label := given.get(_MEDIUM)) is not None:
        if label != found.label:
            raise BootFailure(
                f"the live system waits for a disk with the label {label!r}, as {_MEDIUM} says, and the medium has the label "
                f"{found.label!r}"
            )
        if "rootfs.img" not in found.files:
            raise BootFailure(
                f"the medium has no root file system, and {_MEDIUM} says that it is there; a minimal image needs {_ROOT_URL}"
            )
        members, root = found.members, "the medium"
    else:
        members = {**await _initrd_of(found, medium), **found.members}
        root = await _root_from_elsewhere(given, members, found.label, reach)
    config, why = await _config(given, members, reach)
    return LiveSystem(
        build=found.label,
        how="iso",
        arguments=found.arguments,
        root=root,
        ignition=config,
        unconfigured=why,
        keyfiles=_keyfiles(members) if found.reads_network else {},
    )


async def booted_from_network(arguments: str, members: Mapping[str, bytes], reach: Reach) -> LiveSystem:
    """`members`: what the initial RAM disks hold, taken together."""
    given = parameters(arguments)
    build = _text(members[BUILD])
    if _MEDIUM in given:
        both = f"both {_MEDIUM} and {_ROOT_URL}" if _ROOT_URL in given else _MEDIUM
        raise BootFailure(
            f"the kernel's arguments have {both}: the live system waits for a disk with the label {given[_MEDIUM]!r}, and a "
            "server that boots over the network has none"
        )
    root = await _root_from_elsewhere(given, members, build, reach)
    config, why = await _config(given, members, reach)
    features = parse_features(members.get(FEATURES))
    return LiveSystem(
        build=build,
        how="pxe",
        arguments=arguments,
        root=root,
        ignition=config,
        unconfigured=why,
        keyfiles=_keyfiles(members) if features.live_initrd_network else {},
    )


async def _initrd_of(found: LiveMedium, medium: Fetched | Remote) -> Members:
    if "initrd.img" not in found.files:
        raise BootFailure("the medium has no initial RAM disk")
    async with medium.part(*found.files["initrd.img"]) as file:
        try:
            return await asyncio.to_thread(read_members, file, wanted_members)
        except FormatError as error:
            raise BootFailure(f"the initial RAM disk on the medium cannot be unpacked: {error}") from error


async def _root_from_elsewhere(
    given: Mapping[str, str], members: Mapping[str, bytes], build: str, reach: Reach
) -> str:
    if (injected := members.get(INJECTED_ROOT)) is not None:
        check_same_build(_text(members.get(BUILD, b"")), _text(injected), "the root file system beside it")
        return "the initial RAM disk"
    url = given.get(_ROOT_URL, "")
    if not url:
        raise BootFailure(
            f"the live system finds no root file system: the kernel's arguments have neither {_MEDIUM} nor {_ROOT_URL}, and the "
            "initial RAM disk holds none"
        )
    if urlsplit(url).scheme not in ("http", "https"):
        raise BootFailure(f"{_ROOT_URL} is {url!r}; the live system fetches by http and https alone")
    await check_root_file_system(
        url,
        build=_text(members.get(BUILD, b"")) or build,
        wanted=members.get(WANTED_ROOT),
        trusted=_whoever(),
        folder=reach.folder,
    )
    return url


async def _config(
    given: Mapping[str, str], members: Mapping[str, bytes], reach: Reach
) -> tuple[bytes | None, str]:
    """The config that Ignition runs with; None, and why there is none."""
    if _FIRST_BOOT not in given:
        return None, f"Ignition does not run: the kernel's arguments have no {_FIRST_BOOT}"
    if given.get(_PLATFORM) != "metal":
        return None, f"Ignition does not run: the kernel's arguments have no {_PLATFORM}=metal"
    if url := given.get(_CONFIG_URL, ""):
        async with fetched(url, "the Ignition config", trusted=reach.trusted, folder=reach.folder) as found:
            if found.size > _LARGEST_CONFIG:
                raise BootFailure(f"the Ignition config has {found.size} bytes; no config is as large")
            return await found.read(lambda file: file.read()), ""
    if (config := members.get(IGNITION)) is not None:
        return config, ""
    return None, "Ignition has no config"


def _keyfiles(members: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path.removeprefix(f"{NETWORK}/"): content for path, content in network_of(members).items()}


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace").strip()


@functools.cache
def _whoever() -> ssl.SSLContext:
    """The live system asks nobody who vouches for the server of its root file system: the digests do."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
