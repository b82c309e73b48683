"""What is measured with: a live image of CoreOS's size, and what a host's ramdisk is told."""

from __future__ import annotations

import base64
import hashlib
import os
import sys
from pathlib import Path

from ingot.images.ramdisk import AgentSettings, Base, RamdiskMaker
from ingot.images.region import Region
from ingot.trust import Authority, Secret

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from live_images import live_image

SIZE = 1_200_000_000
_BLOCK = 16 << 20


def make_iso(path: Path, size: int = SIZE) -> None:
    """A small live image, and behind its last sector noise up to the size; an image may be longer than its volume says."""
    small = live_image()
    noise = os.urandom(_BLOCK)
    with path.open("wb") as file:
        file.write(small)
        while (left := size - file.tell()) > 0:
            file.write(noise[:left])
        os.fsync(file.fileno())


def sha256_of(iso: Path) -> str:
    with iso.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def settings_in(folder: Path) -> AgentSettings:
    """Everything that an installation usually has: CA, pull secret, SSH key."""
    secret = base64.b64encode(hashlib.shake_256(b"nobody has it").digest(1500)).decode()
    return AgentSettings(
        api_urls=("https://192.0.2.1:6385",),
        ca=Authority(folder / "ca").ca_file.read_bytes(),
        pull_secret=Secret(f'{{"auths": {{"quay.io": {{"auth": "{secret}"}}}}}}'),
        ssh_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZvciBtZWFzdXJlbWVudHMgb25seSwgbm9ib2R5IGhhcyBpdA core@example",
        ip_options=("ip=dhcp",),
    )


def maker_of(iso: Path, sha256: str, settings: AgentSettings) -> RamdiskMaker:
    base = Base.read(Region.whole(iso), architecture="x86_64", sha256=sha256)
    return RamdiskMaker(base, settings, rootfs_url="https://192.0.2.1:6390/images/rootfs.img")


def keyfiles_of(number: int) -> dict[str, bytes]:
    """The network settings of a host: two interfaces, a bond, an address."""
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    made = {
        f"eno{port}.nmconnection": f"[connection]\nid=eno{port}\ntype=ethernet\ninterface-name=eno{port}\nmaster=bond0\n"
        "slave-type=bond\n"
        for port in (1, 2)
    }
    made["bond0.nmconnection"] = (
        "[connection]\nid=bond0\ntype=bond\ninterface-name=bond0\n\n[bond]\nmode=802.3ad\n\n"
        f"[ipv4]\nmethod=manual\naddress1={address}/16,10.0.0.1\ndns=10.0.0.1;\n"
    )
    return {name: text.encode() for name, text in made.items()}
