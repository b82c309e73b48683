"""The boot listener: what machines load that boot over the network. Without TLS, because iPXE trusts no private CA.

Off unless network boot is switched on. It hands out the script that every machine begins with, the script of the host with a
MAC address while Ironic has one for it, and the kernel and the ramdisk that those name; nothing else that Ironic publishes, no
listing, and nothing can be sent to it. Who is on that network can read what its machines boot: so it is in docs/security.md.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aiohttp import web

from ingot.services.front.calls import UUID
from ingot.services.front.files import found_below
from ingot.services.front.limits import FOR_AN_ADDRESS, Buckets
from ingot.services.ipxe import BOOT_SCRIPT, CA_ARCHIVE

_HANDED_OUT: Final = re.compile(
    rf"{re.escape(BOOT_SCRIPT)}|{re.escape(CA_ARCHIVE)}"
    r"|pxelinux\.cfg/[0-9a-f]{2}(?:-[0-9a-f]{2}){5,19}"
    rf"|{UUID}/deploy_(?:kernel|ramdisk)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class BootListener:
    root: Path
    """The folder in which Ironic writes."""
    addresses: Buckets = field(default_factory=lambda: Buckets(FOR_AN_ADDRESS))

    def app(self) -> web.Application:
        made = web.Application(client_max_size=0)
        made.router.add_route("*", "/{path:.*}", self._any)
        return made

    async def _any(self, request: web.Request) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            return _answer(web.Response(status=405, text="Nothing can be sent here.\n"))
        if not self.addresses.take(request.remote or ""):
            return _answer(web.Response(status=503, headers={"Retry-After": "5"}))
        found = await asyncio.to_thread(self.find, request.path)
        return _answer(
            web.FileResponse(found) if found else web.Response(status=404, text="There is nothing here.\n")
        )

    def find(self, path: str) -> Path | None:
        """The file that is meant by this path of a URL; None when there is none, or none to hand out."""
        name = path.removeprefix("/")
        return found_below(self.root / name, [self.root]) if _HANDED_OUT.fullmatch(name) else None


def _answer(answer: web.StreamResponse) -> web.StreamResponse:
    answer.headers["Server"] = "ingot"
    answer.headers["Cache-Control"] = "no-store"
    return answer
