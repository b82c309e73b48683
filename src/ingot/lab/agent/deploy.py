"""Writing an image: download, check, convert, write, and put the config drive beside it.

Nothing is claimed that was not done. The checksum is that of the bytes that arrived; a qcow2 image is converted on the way to
the disk; the deployment counts once all of it is on the disk. A wrong checksum fails in the words of ironic-python-agent.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import ssl
import time
import zlib
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from ingot.formats import FormatError
from ingot.lab.agent.checksum import Checksum, checksum_in_file, expected_checksum
from ingot.lab.chassis import Chassis
from ingot.lab.disk import image_format, in_thread
from ingot.lab.errors import StepFailed
from ingot.lab.hardware import DISK_NAME
from ingot.lab.record import Written

_CHUNK: Final = 1 << 20
_LARGEST_CONFIG_DRIVE: Final = 64 << 20
_LARGEST_CHECKSUM_FILE: Final = 1 << 20


class ImageInfo(msgspec.Struct, kw_only=True):
    """What Ironic tells the agent about an image; what is not used here is left out."""

    id: str
    urls: list[str]
    disk_format: str | None = None
    checksum: str | None = None
    os_hash_algo: str | None = None
    os_hash_value: str | None = None


async def write_image(
    chassis: Chassis,
    args: dict[str, Any],
    *,
    trusted: ssl.SSLContext,
    md5_allowed: bool,
    mib_per_second: float,
) -> str:
    """Do the deploy step `write_image`; the sentence that the agent answers with."""
    try:
        info = msgspec.convert(args.get("image_info"), ImageInfo)
        url = info.urls[0]
    except (msgspec.ValidationError, IndexError) as error:
        raise StepFailed(
            str(error), kind="InvalidCommandParamsError", summary="Invalid command parameters"
        ) from error
    scratch = chassis.folder / "download"
    try:
        await _fetch_verified(info, url, scratch, trusted, md5_allowed=md5_allowed)
        size = await _write(chassis, info, scratch, mib_per_second)
    finally:
        await asyncio.to_thread(scratch.unlink, missing_ok=True)
    drive = await asyncio.to_thread(_unpacked, args.get("configdrive"))
    await asyncio.to_thread(chassis.disk.write_config_drive, drive)
    chassis.record.written[DISK_NAME] = Written(image=info.id, size=size)
    chassis.record.deployments += 1
    chassis.note(f"image {info.id} is on the disk ({size} bytes)" + (" with a config drive" if drive else ""))
    return f"image ({info.id}) written to device {DISK_NAME}"


async def _fetch_verified(
    info: ImageInfo, url: str, scratch: Path, trusted: ssl.SSLContext, *, md5_allowed: bool
) -> None:
    timeout = aiohttp.ClientTimeout(total=None, connect=30, sock_read=60)
    connector = aiohttp.TCPConnector(ssl=trusted)
    try:
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            wanted = expected_checksum(
                algorithm=info.os_hash_algo,
                value=info.os_hash_value,
                short=info.checksum,
                md5_allowed=md5_allowed,
            )
            if wanted.is_url:
                text = await _text(session, wanted.value)
                wanted = checksum_in_file(text, image_url=url, algorithm=wanted.algorithm)
            found = await _download(session, url, scratch, wanted)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise _download_failed(info.id, str(error) or type(error).__name__) from error
    if found != wanted.value.lower():
        raise StepFailed(
            f"Image failed to verify against checksum. location: {url}; image ID: {info.id}; "
            f"image checksum: {wanted.value}; verification checksum: {found}",
            kind="ImageChecksumError",
            summary="Error verifying image checksum",
        )


async def _download(session: aiohttp.ClientSession, url: str, scratch: Path, wanted: Checksum) -> str:
    """Fetch the image into a file; the digest of what arrived."""
    digest = hashlib.new(wanted.algorithm, usedforsecurity=False)
    async with session.get(url) as answer:
        _expect_200(answer, url)
        received = 0
        with await asyncio.to_thread(scratch.open, "wb") as file:
            async for piece in answer.content.iter_chunked(_CHUNK):
                received += len(piece)
                await asyncio.to_thread(_keep, file.write, digest.update, piece)
        if answer.content_length is not None and received != answer.content_length:
            raise ValueError(f"{received} of {answer.content_length} bytes arrived")
    return digest.hexdigest()


def _keep(write: Any, update: Any, piece: bytes) -> None:
    write(piece)
    update(piece)


async def _text(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url) as answer:
        _expect_200(answer, url)
        return (await answer.content.read(_LARGEST_CHECKSUM_FILE)).decode("utf-8", "replace")


def _expect_200(answer: aiohttp.ClientResponse, url: str) -> None:
    if answer.status != 200:
        raise ValueError(f"Received status code {answer.status} from {url}, expected 200.")


async def _write(chassis: Chassis, info: ImageInfo, scratch: Path, mib_per_second: float) -> int:
    found = await asyncio.to_thread(image_format, scratch)
    if info.disk_format not in (None, found):
        raise StepFailed(
            f"the image is declared as {info.disk_format}, but its content is {found}",
            kind="InvalidImage",
            summary="The provided image is not valid for use",
        )
    begun = time.monotonic()
    # From here on the disk holds neither the old image nor yet the new one.
    chassis.record.written.pop(DISK_NAME, None)
    await chassis.save()
    try:
        size = await in_thread(partial(chassis.disk.write_image, scratch, found))
    except (FormatError, ValueError, OSError) as error:
        raise StepFailed(
            f"Writing image to device {DISK_NAME} failed: {error}",
            kind="ImageWriteError",
            summary="Error writing image to device",
        ) from error
    if mib_per_second > 0:
        await asyncio.sleep(max(0.0, size / (mib_per_second * (1 << 20)) - (time.monotonic() - begun)))
    return size


def _unpacked(config_drive: Any) -> bytes | None:
    """The config drive out of its base64 and gzip."""
    if not config_drive:
        return None
    try:
        packed = base64.b64decode(str(config_drive), validate=False)
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


def _download_failed(image: str, why: str) -> StepFailed:
    return StepFailed(
        f"Download of image {image} failed: {why}",
        kind="ImageDownloadError",
        summary="Error downloading image",
    )
