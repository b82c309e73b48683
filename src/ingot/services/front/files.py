"""Which of the files that Ironic publishes are handed out.

Ironic puts boot media, config drives, images and boot scripts below one folder, beside its caches. Only what it publishes for a
machine is handed out, by the shape of its name, and only below a path that holds a random key: a config drive holds user data,
a boot medium the agent's token. Links are followed to where Ironic itself writes, and no further.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingot.services.front.calls import UUID
from ingot.services.settings import IronicPaths
from ingot.trust import Secret

PREFIX: Final = "/files/"
_MAC: Final = r"[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5,19}"
_PUBLISHED: Final = re.compile(
    rf"redfish/[a-z]+-{UUID}(?:\.[a-z0-9]+)?"
    rf"|agent_images/{UUID}(?:\.[a-z0-9_]+)?"
    rf"|{UUID}/[a-z][a-z0-9_.-]*"
    rf"|pxelinux\.cfg/{_MAC}"
    rf"|{_MAC}\.conf|grub\.cfg-01-{_MAC}"
    r"|boot\.ipxe",
    re.IGNORECASE,
)


def url_of_files(base_url: str, key: Secret) -> str:
    """The URL of the folder that Ironic publishes in."""
    return f"{base_url.rstrip('/')}{PREFIX}{key.reveal()}"


@dataclass(frozen=True, slots=True)
class PublishedFiles:
    """The files below one key."""

    root: Path
    places: tuple[Path, ...]
    key: Secret

    @classmethod
    def of(cls, paths: IronicPaths, key: Secret) -> PublishedFiles:
        places = (paths.http_root, paths.images, paths.master_images, paths.master_isos)
        return cls(paths.http_root, places, key)

    def find(self, path: str) -> Path | None:
        """The file that is meant by this path of a URL; None when there is none, or none to hand out."""
        key, _, name = path.removeprefix(PREFIX).partition("/")
        if not path.startswith(PREFIX) or not hmac.compare_digest(
            key.encode(errors="replace"), self.key.reveal().encode()
        ):
            return None
        return found_below(self.root / name, self.places) if _PUBLISHED.fullmatch(name) else None


def found_below(path: Path, places: Sequence[Path]) -> Path | None:
    """The file that the path leads to, links followed; None when there is none, or none below one of these places."""
    try:
        found = Path(os.path.realpath(path, strict=True))
        allowed = any(found.is_relative_to(os.path.realpath(place)) for place in places)
        return found if allowed and found.is_file() else None
    except OSError:  # not there, no longer there, or a link that leads in a circle
        return None
