"""What tests of ramdisks begin with: settings, published images on disk, and a way to look into what was made."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from ingot.formats.coreos import LiveIso
from ingot.formats.initrd import Members, read_members
from ingot.images.ramdisk import AgentSettings, Base
from ingot.images.region import Region
from live_images import LABEL, NEWEST, Generation, live_image

API = "https://10.0.0.1:6385"
ROOTFS_URL = "https://10.0.0.1:8084/images/abc/rootfs.img"
KEYFILES = {
    "eth0.nmconnection": b"[connection]\nid=eth0\ntype=ethernet\n\n[ipv4]\nmethod=auto\n",
    "bond 0.nmconnection": b"[connection]\nid=bond 0\ntype=bond\n",
}
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2Pmh7ZxNV0bkL5P3mE1gLqQn0aRr7Xv9k2 admin@example"


def agent_settings(**more: Any) -> AgentSettings:
    return AgentSettings(**{"api_urls": (API,), **more})


@cache
def published(generation: Generation = NEWEST, label: str = LABEL) -> bytes:
    return live_image(generation, label=label)


def saved(
    folder: Path, generation: Generation = NEWEST, *, label: str = LABEL, name: str = "live.iso"
) -> Path:
    path = folder / name
    path.write_bytes(published(generation, label))
    return path


def base_in(folder: Path, generation: Generation = NEWEST, *, label: str = LABEL) -> Base:
    path = saved(folder, generation, label=label)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return Base.read(Region.whole(path), architecture=generation.architecture, sha256=sha256)


def embedded(image: bytes) -> LiveIso:
    return LiveIso(io.BytesIO(image))


def appended_members(initrd: bytes) -> Members:
    return read_members(io.BytesIO(initrd), lambda name: name == "config.ign" or "firstboot" in name)


def decoded(resource: dict[str, str]) -> bytes:
    """What a data URL of an Ignition config holds."""
    head, _, data = resource["source"].partition(",")
    assert head.startswith("data:")
    content = base64.b64decode(data) if head.endswith(";base64") else unquote_to_bytes(data)
    return gzip.decompress(content) if resource.get("compression") == "gzip" else content


def files_of(ignition: bytes) -> dict[str, bytes]:
    config = json.loads(ignition)
    return {
        file["path"]: b"".join(decoded(part) for part in file.get("append", [file.get("contents")]))
        for file in config["storage"]["files"]
    }


def modes_of(ignition: bytes) -> dict[str, int]:
    return {file["path"]: file["mode"] for file in json.loads(ignition)["storage"]["files"] if "mode" in file}


def unit_of(ignition: bytes) -> str:
    (unit,) = json.loads(ignition)["systemd"]["units"]
    assert unit["name"] == "ironic-agent.service"
    assert unit["enabled"] is True
    return str(unit["contents"])
