"""Steps beyond those of the plain agent: installing an operating system that brings its own installer, injecting files.

`install_coreos` takes no config drive: it reads user data and meta data in clear from the node, as installers of that kind do,
and leaves them on the disk for the first boot. Without an image of the node's it installs the one that came with the ramdisk.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from typing import Any, Final

import msgspec

from ingot.lab.agent.deploy import deployed, put_file, put_image
from ingot.lab.agent.download import ImageInfo
from ingot.lab.agent.failures import bad_parameters, deployment_failed
from ingot.lab.agent.work import Params, Work
from ingot.lab.devices import Device
from ingot.lab.record import Written
from ingot.lab.samples import sample_disk

INSTALL: Final = "install_coreos"


async def install(work: Work, _: Params) -> Any:
    instance = work.node.get("instance_info") or {}
    drive = instance.get("configdrive") or {}
    if isinstance(drive, str):
        raise deployment_failed(
            "Cannot use a pre-rendered config drive, please consider passing its contents as JSON"
        )
    if work.node.get("automated_clean") is not False:
        await forget_arrays(work)
    device = work.root()
    written = await _put(work, instance, device)
    user_data = drive.get("user_data") or ""
    left = {
        "user_data": user_data if isinstance(user_data, str) else msgspec.json.encode(user_data).decode(),
        "meta_data": drive.get("meta_data") or {},
    }
    await asyncio.to_thread(work.disk(device).write_ignition, msgspec.json.encode(left))
    deployed(work, device, written)
    work.chassis.note(f"{INSTALL}: {written.image} is on {device.name} ({written.size} bytes)")
    return None


async def _put(work: Work, instance: Params, device: Device) -> Written:
    url = instance.get("image_source")
    if not url:
        return await _put_own(work, device)
    info = ImageInfo(
        id=str(url),
        urls=[str(url)],
        disk_format=instance.get("image_disk_format"),
        checksum=instance.get("image_checksum"),
        os_hash_algo=instance.get("image_os_hash_algo"),
        os_hash_value=instance.get("image_os_hash_value"),
    )
    return await put_image(work, info, device, INSTALL)


async def _put_own(work: Work, device: Device) -> Written:
    content = await asyncio.to_thread(sample_disk)
    scratch = work.chassis.folder / "download"
    try:
        await asyncio.to_thread(scratch.write_bytes, content)
        size = await put_file(work, device, scratch, "raw", INSTALL)
    finally:
        await asyncio.to_thread(scratch.unlink, missing_ok=True)
    sha256 = await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
    return Written(image="the image of the ramdisk", size=size, sha256=sha256)


async def forget_arrays(work: Work) -> None:
    """Take all software arrays apart; what was on them is gone."""
    record = work.chassis.record
    for array in record.arrays:
        key = array.device.removeprefix("/dev/")
        record.written.pop(key, None)
        await asyncio.to_thread(work.chassis.disks.wipe_key, key)
    if record.arrays:
        work.chassis.note(f"software RAID {', '.join(array.device for array in record.arrays)} was removed")
    record.arrays = []


class File(msgspec.Struct, kw_only=True):
    path: str
    content: str = ""
    deleted: bool = False


async def inject(work: Work, args: Params) -> Any:
    """Put files into the image that was written; those of the step come after those of the node's properties."""
    properties = work.node.get("properties") or {}
    given = [*(properties.get("inject_files") or []), *(args.get("files") or [])]
    try:
        files = msgspec.convert(given, list[File])
    except msgspec.ValidationError as error:
        raise bad_parameters(f"files: {error}") from error
    if not files:
        return None
    written = work.chassis.record.written.get(work.root().key)
    if written is None:
        raise deployment_failed("No partition found to inject files into: no image was written yet")
    for file in files:
        if file.deleted:
            written.files.pop(file.path, None)
            continue
        written.files[file.path] = hashlib.sha256(await _content(work, file)).hexdigest()
        work.chassis.note(f"{file.path} was put into the image")
    return None


async def _content(work: Work, file: File) -> bytes:
    if "://" in file.content:
        return await work.source.content(file.content, file.path)
    try:
        return base64.b64decode(file.content, validate=True)
    except ValueError as error:
        raise bad_parameters(f"the content of {file.path} is neither a URL nor base64") from error
