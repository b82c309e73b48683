"""Writing an image: download, check, convert, write, and put the config drive beside it.

Nothing is claimed that was not done. The checksum is that of the bytes that arrived; a qcow2 image is converted on the way to
the disk; a raw image goes to the disk directly when Ironic asks for that; the deployment counts once all of it is on the disk.
A wrong checksum fails in the words of ironic-python-agent. Partition images are refused.
"""

from __future__ import annotations

import asyncio
import base64
import time
import zlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from ingot.formats import FormatError
from ingot.lab.agent.download import ImageInfo
from ingot.lab.agent.failures import bad_parameters, deployment_failed, invalid_image, write_failed
from ingot.lab.agent.work import Params, Work
from ingot.lab.devices import Device
from ingot.lab.disk import image_format, in_thread, put
from ingot.lab.errors import StepFailed
from ingot.lab.record import Written

STEP: Final = "write_image"
_FORMATS: Final = ("raw", "qcow2")
_LARGEST_CONFIG_DRIVE: Final = 64 << 20
_MIB: Final = 1 << 20


async def write_image(work: Work, args: Params) -> Any:
    """The deploy step of this name; what the agent answers with."""
    info = _image_info(args)
    device = work.root()
    written = await put_image(work, info, device, STEP)
    drive = await _config_drive(work, args.get("configdrive") or info.configdrive)
    disk = work.disk(device)
    await asyncio.to_thread(disk.write_config_drive, drive)
    deployed(work, device, written)
    work.chassis.note(
        f"image {info.id} is on {device.name} ({written.size} bytes)"
        + (" with a config drive" if drive else "")
    )
    identifier = await asyncio.to_thread(disk.identifier)
    return {
        "result": f"prepare_image: image ({info.id}) written to device {device.name} root_uuid={identifier}"
    }


async def put_image(work: Work, info: ImageInfo, device: Device, step: str) -> Written:
    """Bring an image to a device; what is there now. From the first byte on the device has neither the old one nor the new."""
    begun = time.monotonic()
    if info.stream_raw_images and info.disk_format == "raw":
        size, sha256 = await _stream(work, info, device, step)
    else:
        size, sha256 = await _by_way_of_a_file(work, info, device, step)
    await keep_pace(work, size, begun)
    return Written(image=info.id, size=size, sha256=sha256)


async def keep_pace(work: Work, size: int, begun: float) -> None:
    """Wait until a disk of the server's speed has so much on it; `begun` is a reading of the monotonic clock."""
    pace = work.timings.disk_mib_per_second
    if pace > 0:
        await asyncio.sleep(max(0.0, size / (pace * _MIB) - (time.monotonic() - begun)))


def deployed(work: Work, device: Device, written: Written) -> None:
    """All of it is on the disk: it counts, and it is what the firmware boots from now on."""
    record = work.chassis.record
    record.written.pop(device.key, None)
    record.written[device.key] = written
    record.deployments += 1


async def _by_way_of_a_file(work: Work, info: ImageInfo, device: Device, step: str) -> tuple[int, str]:
    scratch = work.chassis.folder / "download"
    try:
        sha256 = await download(work, info, scratch)
        return await _convert(work, info, device, scratch, step), sha256
    finally:
        await asyncio.to_thread(scratch.unlink, missing_ok=True)


async def download(work: Work, info: ImageInfo, to: Path) -> str:
    """An image, checked, in a file; its sha256."""

    async def keep(pieces: AsyncIterator[bytes]) -> None:
        with await asyncio.to_thread(to.open, "wb") as file:
            async for piece in pieces:
                await asyncio.to_thread(file.write, piece)

    return await work.source.image(info, keep)


async def _convert(work: Work, info: ImageInfo, device: Device, scratch: Path, step: str) -> int:
    found = await asyncio.to_thread(image_format, scratch)
    if info.disk_format not in (None, found):
        raise invalid_image(f"the image is declared as {info.disk_format}, but its content is {found}")
    return await put_file(work, device, scratch, found, step)


async def put_file(work: Work, device: Device, image: Path, format_name: str, step: str) -> int:
    """Write an image that is here to a device; its size there. The middle of the step is where half of it is written."""
    await _blank(work, device)
    try:
        with await asyncio.to_thread(work.disk(device).writing, image, format_name) as writing:
            await in_thread(partial(writing.advance, writing.size // 2))
            work.chassis.note(f"{step}: half of the image is on {device.name}")
            await work.midway(step)
            await in_thread(writing.finish)
            return writing.size
    except (FormatError, ValueError, OSError) as error:
        raise write_failed(device.name, str(error)) from error


async def _stream(work: Work, info: ImageInfo, device: Device, step: str) -> tuple[int, str]:
    size = 0

    async def write(pieces: AsyncIterator[bytes]) -> None:
        nonlocal size
        size = 0
        with await asyncio.to_thread(work.disk(device).begin_stream) as disk:
            async for piece in pieces:
                if size + len(piece) > device.size:
                    raise write_failed(
                        device.name, f"the image has more than the {device.size} bytes of the disk"
                    )
                await asyncio.to_thread(put, disk, size, piece)
                if size == 0:
                    await work.midway(step)
                size += len(piece)

    await _blank(work, device)
    sha256 = await work.source.image(info, write)
    return size, sha256


async def _blank(work: Work, device: Device) -> None:
    work.chassis.record.written.pop(device.key, None)
    await work.chassis.save()
    disk = work.disk(device)
    await asyncio.to_thread(disk.write_config_drive, None)
    await asyncio.to_thread(disk.write_ignition, None)


def _image_info(args: Params) -> ImageInfo:
    given = args.get("image_info")
    if isinstance(given, dict):
        missing = [name for name in ("id", "urls") if name not in given]
        if missing:
            raise bad_parameters(f"Image is missing '{missing}' fields.")
    try:
        info = msgspec.convert(given, ImageInfo)
    except msgspec.ValidationError as error:
        raise bad_parameters(f"image_info: {error}") from error
    if not info.urls:
        raise bad_parameters("Image 'urls' must be a list with at least one element.")
    if info.partition:
        raise deployment_failed(
            f"image {info.id} is a partition image; this agent writes images of whole disks only"
        )
    if info.disk_format not in (None, *_FORMATS):
        raise invalid_image(
            f"the image's format {info.disk_format} is not permitted; {', '.join(_FORMATS)} are"
        )
    return info


async def _config_drive(work: Work, given: Any) -> bytes | None:
    if not given:
        return None
    text = str(given)
    if text.startswith(("http://", "https://")):
        text = (await work.source.content(text, "the config drive")).decode("ascii", "replace")
    return await asyncio.to_thread(_unpacked, text)


def _unpacked(config_drive: str) -> bytes:
    """The config drive out of its base64 and gzip."""
    try:
        packed = base64.b64decode(config_drive, validate=False)
        stream = zlib.decompressobj(wbits=31)
        content = stream.decompress(packed, _LARGEST_CONFIG_DRIVE)
        if not stream.eof:
            raise ValueError(f"it ends too early, or has more than {_LARGEST_CONFIG_DRIVE} bytes")
    except (ValueError, zlib.error) as error:
        raise StepFailed(
            f"the config drive is not base64 and gzip: {error}",
            kind="InstanceDeployFailure",
            summary="Config drive cannot be written",
        ) from error
    return content
