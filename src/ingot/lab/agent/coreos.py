"""The step `install_coreos`, as ingot-agent brings it: CoreOS on the disk, with what its first boot reads.

What is asked for is read first (`coreos_order`), so that nothing is refused once the disk is touched. Without an image of the
node's the build that runs is installed. What goes to the disk beside it is kept as an installer leaves it: `coreos.Left`.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import lzma
import time
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from ingot.lab.agent.arrays import forget_arrays
from ingot.lab.agent.coreos_order import STEP, what_is_left
from ingot.lab.agent.deploy import deployed, download, keep_pace, put_file
from ingot.lab.agent.download import ImageInfo
from ingot.lab.agent.failures import deployment_failed, write_failed
from ingot.lab.agent.work import Params, Work
from ingot.lab.devices import Device
from ingot.lab.record import Written
from ingot.lab.samples import sample_disk


async def install(work: Work, args: Params) -> Any:
    begun = time.monotonic()
    left = what_is_left(work, args)
    instance = work.node.get("instance_info") or {}
    if work.node.get("automated_clean") is not False:
        await forget_arrays(work)
    device = work.root()
    written = await _put(work, instance, device)
    left.build = written.coreos
    await asyncio.to_thread(work.disk(device).write_ignition, msgspec.json.encode(left))
    deployed(work, device, written)
    work.chassis.note(f"{STEP}: {written.image} is on {device.name} ({written.size} bytes)")
    took = round(time.monotonic() - begun)
    return {"device": device.name, "seconds": took, "image": written.image}


async def _put(work: Work, instance: Params, device: Device) -> Written:
    scratch, begun = work.chassis.folder / "download", time.monotonic()
    url = instance.get("image_source")
    try:
        if url:
            sha256 = await download(work, _image(instance, str(url)), scratch)
            await _unpack(scratch, device)
        else:
            sha256 = await asyncio.to_thread(_own, scratch)
        size = await put_file(work, device, scratch, "raw", STEP)
        await keep_pace(work, size, begun)
    finally:
        await asyncio.to_thread(scratch.unlink, missing_ok=True)
    if url:
        return Written(image=str(url), size=size, sha256=sha256)
    build = work.ramdisk.build
    name = f"CoreOS {build}" if build else "the image of the ramdisk"
    return Written(image=name, size=size, sha256=sha256, coreos=build)


def _image(instance: Params, url: str) -> ImageInfo:
    info = ImageInfo(
        id=url,
        urls=[url],
        checksum=instance.get("image_checksum"),
        os_hash_algo=instance.get("image_os_hash_algo"),
        os_hash_value=instance.get("image_os_hash_value"),
    )
    if not (info.checksum or info.os_hash_value):
        raise deployment_failed(f"the image {url} has no hash to check it against.")
    return info


def _own(scratch: Path) -> str:
    content = sample_disk()
    scratch.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


async def _unpack(file: Path, device: Device) -> None:
    """Metal images are published compressed; the installer writes what is in them."""
    try:
        await asyncio.to_thread(_unpacked, file, device.size)
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        raise write_failed(device.name, str(error)) from error


def _unpacked(file: Path, room: int) -> None:
    with file.open("rb") as source:
        start = source.read(6)
    opener = gzip.open if start[:2] == b"\x1f\x8b" else lzma.open if start == b"\xfd7zXZ\0" else None
    if opener is None:
        return
    plain = file.with_suffix(".plain")
    try:
        with opener(file) as packed, plain.open("wb") as out:
            _copied(cast("BinaryIO", packed), out, room)
        plain.replace(file)
    finally:
        plain.unlink(missing_ok=True)


def _copied(packed: BinaryIO, out: BinaryIO, room: int) -> None:
    while piece := packed.read(1 << 20):
        if out.tell() + len(piece) > room:
            raise ValueError(f"the image has more than the {room} bytes of the disk")
        out.write(piece)
