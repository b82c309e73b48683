"""The step `inject_files`: putting files into an image that was written."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

import msgspec

from ingot.lab.agent.failures import bad_parameters, deployment_failed
from ingot.lab.agent.work import Params, Work

STEP: Final = "inject_files"


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
