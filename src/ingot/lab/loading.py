"""Loading for a boot from the network: fetching what a script names, and knowing what was in it.

Of initial RAM disks it keeps the few members that decide about the boot; several of them are one, as for the kernel, and of a
path that is there twice the last one counts.
"""

from __future__ import annotations

import hashlib
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import urlsplit

from ingot.formats import FormatError
from ingot.formats.initrd import Members, read_members
from ingot.lab.coreos import needs_live_initrd, wanted_members
from ingot.lab.errors import BootFailure
from ingot.lab.fetching import fetched
from ingot.lab.ipxe import LoadFailed, NetBoot
from ingot.lab.medium import CA_IN_RAMDISK

_CA: Final = CA_IN_RAMDISK.lstrip("/")


@dataclass(frozen=True, slots=True)
class _Loaded:
    sha256: str
    size: int
    members: Members
    unpacked: str = ""
    """Why it could not be."""


class Loader:
    """Of one boot."""

    def __init__(self, *, trusted: ssl.SSLContext, folder: Path) -> None:
        self._trusted = trusted
        self._folder = folder
        self._seen: dict[str, _Loaded] = {}

    async def load(self, url: str) -> bytes:
        """The bytes behind a URL; none for what is too large to be a script."""
        try:
            what = urlsplit(url).path.rpartition("/")[2] or "the script"
            async with fetched(url, what, trusted=self._trusted, folder=self._folder) as found:
                members, problem = await found.read(_members)
                self._seen[url] = _Loaded(found.sha256, found.size, members, problem)
                return await found.read(lambda file: file.read()) if found.small else b""
        except BootFailure as failure:
            raise LoadFailed(str(failure)) from failure

    def members(self, found: NetBoot) -> Members:
        """What the initial RAM disks hold of what matters."""
        loaded = [(url, self._seen[url]) for url in found.initrds]
        for url, one in loaded:
            if one.unpacked and needs_live_initrd(found.command_line):
                raise BootFailure(f"the initial RAM disk {url} cannot be unpacked: {one.unpacked}")
        return {path: content for _, one in loaded for path, content in one.members.items()}

    def ca(self, found: NetBoot) -> str:
        """The CA certificate that was put into a ramdisk; "" when there is none."""
        return self.members(found).get(_CA, b"").decode("ascii", "replace")

    def digest(self, found: NetBoot) -> str:
        """One digest over the digests of kernel and initial RAM disks."""
        parts = "".join(self._seen[url].sha256 for url in (found.kernel, *found.initrds))
        return hashlib.sha256(parts.encode()).hexdigest()

    def size(self, found: NetBoot) -> int:
        return sum(self._seen[url].size for url in (found.kernel, *found.initrds))


def _members(file: BinaryIO) -> tuple[Members, str]:
    """What is not an initial RAM disk, such as a script or a kernel, has none."""
    try:
        return read_members(file, lambda path: path == _CA or wanted_members(path)), ""
    except FormatError as error:
        return {}, str(error)
