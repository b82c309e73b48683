"""Firmware: what to boot from, and reading a boot medium.

`boot_target` and `after_boot` are the rules of Redfish's boot override. `fetch_ramdisk` boots from a virtual CD the way a
machine does, with nothing but the URL that was inserted: it fetches all of it, reads it as ISO 9660, and takes the kernel's
parameters and the CA certificate that it finds. A medium that cannot be booted is a `BootFailure` with the reason.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Final

import aiohttp

from ingot.formats import FormatError
from ingot.formats.boot_parameters import kernel_parameters
from ingot.formats.iso9660 import Iso
from ingot.lab.errors import BootFailure
from ingot.lab.record import BootTarget, Override, Ramdisk

CA_IN_RAMDISK: Final = "/etc/ironic-python-agent/ironic.crt"
BOOT_CONFIGS: Final = ("/boot/grub/grub.cfg", "/EFI/BOOT/grub.cfg", "/isolinux/isolinux.cfg", "/isolinux.cfg")
_LARGEST_MEDIUM: Final = 8 << 30
_CHUNK: Final = 1 << 20


def boot_target(override: Override) -> BootTarget:
    """Where this boot starts from; without an override that is the disk."""
    if override.enabled == "Disabled" or override.target == "None":
        return "Hdd"
    return override.target


def after_boot(override: Override) -> Override:
    """The override that the next boot will see: Once means once."""
    if override.enabled != "Once":
        return override
    return Override(mode=override.mode)


async def fetch_ramdisk(url: str, *, trusted: ssl.SSLContext, scratch: Path) -> Ramdisk:
    if not url:
        raise BootFailure("no medium is inserted in the virtual CD drive")
    try:
        await _download(url, trusted, scratch)
        return await asyncio.to_thread(_read_ramdisk, scratch)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise BootFailure(f"the virtual medium cannot be fetched: {error or type(error).__name__}") from error
    except FormatError as error:
        raise BootFailure(f"the virtual medium is not bootable: {error}") from error
    finally:
        await asyncio.to_thread(scratch.unlink, missing_ok=True)


async def _download(url: str, trusted: ssl.SSLContext, scratch: Path) -> None:
    timeout = aiohttp.ClientTimeout(total=None, connect=30, sock_read=60)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, ssl=trusted) as answer:
        if answer.status != 200:
            raise BootFailure(
                f"the virtual medium cannot be fetched: its server answers HTTP {answer.status}"
            )
        received = 0
        with await asyncio.to_thread(scratch.open, "wb") as file:
            async for piece in answer.content.iter_chunked(_CHUNK):
                received += len(piece)
                if received > _LARGEST_MEDIUM:
                    raise BootFailure(f"the virtual medium has more than {_LARGEST_MEDIUM} bytes")
                await asyncio.to_thread(file.write, piece)
        if answer.content_length is not None and received != answer.content_length:
            raise BootFailure(
                f"the virtual medium was cut short: {received} of {answer.content_length} bytes"
            )


def _read_ramdisk(medium: Path) -> Ramdisk:
    with medium.open("rb") as file:
        iso = Iso(file)
        config = next((name for name in BOOT_CONFIGS if name in iso), None)
        if config is None:
            raise BootFailure("the virtual medium is not bootable: it has no configuration of a boot loader")
        parameters = kernel_parameters(iso.read(config, limit=1 << 20).decode("utf-8", "replace"))
        ca = iso.read(CA_IN_RAMDISK, limit=1 << 20).decode("ascii", "replace") if CA_IN_RAMDISK in iso else ""
    return Ramdisk(parameters=parameters, ca=ca, token=parameters.get("ipa-agent-token", ""))
