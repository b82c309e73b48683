"""The depot: boot media and images over HTTPS, each under a name that nobody can guess.

The URL is the secret, so there is no log-in; there is no listing, and everything else is not found. HEAD, ranges and ETags are
served as image clients expect them. Names outlive the process: `lab.json` and the files keep them.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import ssl
import tempfile
from pathlib import Path
from typing import Final

from aiohttp import web

from ingot.lab.errors import LabError
from ingot.lab.labfile import LabFile
from ingot.lab.listener import Listener
from ingot.trust import random_token

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ZEROS: Final = bytes(64 << 10)
_TOKEN: Final = re.compile(r"[A-Za-z0-9]{40}")


class Depot:
    def __init__(self, folder: Path, lab: LabFile, context: ssl.SSLContext) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = folder
        self._lab = lab
        app = web.Application()
        app.router.add_get("/{token}/{name}", self._serve)
        self._listener = Listener(app, host=lab.host, port=lab.depot_port, context=context)

    async def start(self) -> None:
        await self._listener.start()

    async def stop(self) -> None:
        await self._listener.stop()

    async def put(self, name: str, content: bytes, *, token: str | None = None) -> tuple[str, str]:
        """Keep a file; its URL and its sha256. The same token and name replace what was there."""
        if not _NAME.fullmatch(name):
            raise LabError(
                f"{name!r} is no name for a file of the depot: letters, digits, dots, dashes, at most 100"
            )
        token = token or random_token().reveal()
        digest = await asyncio.to_thread(_store, self._folder / token / name, content)
        return f"https://{self._lab.host}:{self._lab.depot_port}/{token}/{name}", digest

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        token, name = request.match_info["token"], request.match_info["name"]
        if not (_TOKEN.fullmatch(token) and _NAME.fullmatch(name)):
            raise web.HTTPNotFound
        file = self._folder / token / name
        if not await asyncio.to_thread(file.is_file):
            raise web.HTTPNotFound
        return web.FileResponse(file, chunk_size=1 << 20)


def _store(file: Path, content: bytes) -> str:
    file.parent.mkdir(exist_ok=True, mode=0o700)
    # An unchanged file keeps its time, and with it its ETag.
    if not (file.exists() and file.stat().st_size == len(content) and file.read_bytes() == content):
        _write(file, content)
    return hashlib.sha256(content).hexdigest()


def _write(file: Path, content: bytes) -> None:
    """Whole or not at all, for its owner only, and without the runs of zeros that images are full of."""
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as written:
            written.truncate(len(content))
            for at in range(0, len(content), len(_ZEROS)):
                piece = content[at : at + len(_ZEROS)]
                if piece != _ZEROS[: len(piece)]:
                    written.seek(at)
                    written.write(piece)
            written.flush()
            os.fsync(written.fileno())
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
