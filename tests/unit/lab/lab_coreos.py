"""CoreOS for simulated servers: live images and initial RAM disks with an agent in them, made of those in `live_images`."""

from __future__ import annotations

import io
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from ingot.formats.coreos import IGNITION, NETWORK, LiveIso, Patch
from ingot.formats.initrd import pack
from ingot.images.ramdisk.ignition import agent_ignition
from ingot.images.ramdisk.settings import AgentSettings
from ingot.trust import Authority
from live_images import LABEL, live_image, live_initrd

KEYFILE = b"[connection]\nid=eth0\ntype=ethernet\n"


def ignition(
    api: str, ca: bytes, *, hostname: str = "server-x", keyfiles: Mapping[str, bytes] | None = None
) -> bytes:
    """The config of an agent that calls this Ironic."""
    settings = AgentSettings(api_urls=(api,), ca=ca, image="registry.example/agent:1")
    return agent_ignition(settings, hostname=hostname, keyfiles=keyfiles or {})


def patched(image: bytes, patches: list[Patch]) -> bytes:
    made = bytearray(image)
    for patch in patches:
        made[patch.offset : patch.offset + len(patch.content)] = patch.content
    return bytes(made)


def iso(
    config: bytes | None,
    *,
    label: str = LABEL,
    arguments: str = "",
    keyfiles: Mapping[str, bytes] | None = None,
    ballast: int = 0,
) -> bytes:
    """A live image with this config in it, and other kernel arguments if there are some."""
    plain = live_image(label=label, ballast=ballast)
    live = LiveIso(io.BytesIO(plain))
    members = {f"{NETWORK}/{name}": content for name, content in (keyfiles or {}).items()}
    if config is not None:
        members[IGNITION] = config
    patches = live.embedding(members) + (live.arguing(arguments) if arguments else [])
    return patched(plain, patches)


def initrd(*configs: bytes, label: str = LABEL, keyfiles: Mapping[str, bytes] | None = None) -> bytes:
    """An initial RAM disk with an archive behind it for each config, in this order."""
    made = live_initrd(label=label)
    network = {f"{NETWORK}/{name}": content for name, content in (keyfiles or {}).items()}
    for config in configs:
        made += bytes(-len(made) % 4) + pack({IGNITION: config, **network})
    return made


class Shelf:
    """A web server that gives parts of files, and counts what it gave."""

    def __init__(self) -> None:
        self.url = ""
        self.bytes = 0
        self.ranges: list[str] = []
        self._folder = Path()

    @classmethod
    @asynccontextmanager
    async def running(cls, state: Path) -> AsyncIterator[Shelf]:
        shelf = cls()
        app = web.Application()
        app.router.add_get("/{name}", shelf._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        made = Authority(state / "ca").issue(state / "shelf", "x", ["127.0.0.1"])
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=made.server_context()).start()
        shelf.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        with tempfile.TemporaryDirectory(dir=state) as folder:
            shelf._folder = Path(folder)
            try:
                yield shelf
            finally:
                await runner.cleanup()

    def put(self, name: str, content: bytes) -> str:
        (self._folder / name).write_bytes(content)
        return f"{self.url}/{name}"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        file = self._folder / request.match_info["name"]
        if not file.exists():
            raise web.HTTPNotFound
        asked = request.http_range
        whole = file.stat().st_size
        start, stop = asked.start or 0, min(whole, asked.stop if asked.stop is not None else whole)
        self.ranges.append(request.headers.get("Range", ""))
        self.bytes += stop - start
        return web.FileResponse(file)
