"""Release payloads of small live images, for those who run the whole way from a payload to a server."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ingot.images.release.building import Ingredients, build
from ingot.images.release.layout import Layout
from live_images import live_image

OLD = "fedora-coreos-43.20260101.3.0"
NEW = "fedora-coreos-44.20260707.3.1"


def made_payload(folder: Path, label: str) -> Path:
    """A payload for x86_64, of the build with this label."""
    iso = folder.with_name(f"{folder.name}.iso")
    iso.write_bytes(live_image(label=label))
    sha256 = hashlib.sha256(iso.read_bytes()).hexdigest()
    build(Layout(folder), {"x86_64": Ingredients(iso=iso, sha256=sha256)})
    iso.unlink()
    return folder


def damaged(folder: Path) -> Path:
    """One byte of the image in it is another one than its hash says."""
    layer = max((folder / "blobs" / "sha256").iterdir(), key=lambda path: path.stat().st_size)
    content = bytearray(layer.read_bytes())
    content[-5000] ^= 0xFF
    layer.write_bytes(content)
    return folder


def switch_to(link: Path, folder: Path) -> None:
    """Have the link lead to another payload, at once."""
    new = link.with_name(f"{link.name}.new")
    new.symlink_to(folder)
    new.replace(link)
