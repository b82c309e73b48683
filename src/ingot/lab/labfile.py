"""`lab.json`: what was built, so that addresses, passwords and MACs outlive the process.

Owns the identity of the servers (`Plate`: what is printed on the machine) and where the farm's listeners are. Ports are
chosen by the kernel once and kept. The file holds BMC passwords and URLs that are secrets, so only its owner may read it.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import uuid
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ingot.lab.errors import LabError
from ingot.trust import random_token, write_private


class Plate(msgspec.Struct, kw_only=True):
    """What is printed on a server: its name, the way to its BMC, and its MAC addresses."""

    name: str
    system_id: str
    host: str
    bmc_port: int
    username: str
    password: str
    macs: list[str]
    profile: str = "generic"
    """The vendor's way of building a BMC: a name of `profiles.PROFILES`."""
    build: str = "standard"
    """What is inside: a name of `hardware.BUILDS`."""

    @property
    def bmc_address(self) -> str:
        """The address in the form that a BareMetalHost takes."""
        return f"redfish-virtualmedia+https://{self.host}:{self.bmc_port}/redfish/v1/Systems/{self.system_id}"


class SampleImage(msgspec.Struct, kw_only=True):
    """An image in the depot: `sha256` is that of the file, `disk_sha256` that of the disk it describes."""

    name: str
    format: str
    url: str
    sha256: str
    disk_sha256: str
    size: int


class LabFile(msgspec.Struct, kw_only=True):
    host: str
    depot_port: int
    depot_token: str
    control_url: str = ""
    ramdisk_url: str = ""
    images: list[SampleImage] = []
    servers: list[Plate] = []

    def image(self, format_name: str) -> SampleImage:
        for image in self.images:
            if image.format == format_name:
                return image
        raise LabError(
            f"the lab has no sample image of format {format_name!r}; it has raw and qcow2 once it has started"
        )


def path(state: Path) -> Path:
    return state / "lab" / "lab.json"


def load(state: Path) -> LabFile:
    """What was built; a `LabError` when nothing was."""
    try:
        return msgspec.json.decode(path(state).read_bytes(), type=LabFile)
    except FileNotFoundError:
        raise LabError(f"no lab in {state}: start one with `ingot lab farm` or `ingot up`") from None
    except msgspec.DecodeError as error:
        raise LabError(
            f"{path(state)} cannot be read ({error}); restore it, or remove the folder to build anew"
        ) from error


def save(state: Path, lab: LabFile) -> None:
    write_private(path(state), msgspec.json.format(msgspec.json.encode(lab)))


def grown(state: Path, *, host: str, servers: int) -> LabFile:
    """The lab with at least this many servers; those that are there stay as they are."""
    folder = state / "lab"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path(state).exists():
        lab = load(state)
    else:
        (depot_port,) = free_ports(host, 1)
        lab = LabFile(host=host, depot_port=depot_port, depot_token=random_token().reveal())
    missing = max(0, servers - len(lab.servers))
    for port in free_ports(lab.host, missing):
        lab.servers.append(_plate(f"server-{len(lab.servers) + 1}", lab.host, port))
    save(state, lab)
    return lab


def free_ports(host: str, count: int) -> Sequence[int]:
    """Ports that are free now, all different: every one is held until the last is chosen."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server((host, 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def _plate(name: str, host: str, port: int) -> Plate:
    # 52:54:00 is what QEMU gives its cards: locally known, and never a vendor's.
    first = bytes([0x52, 0x54, 0x00]) + secrets.token_bytes(2)
    macs = [(first + bytes([last])).hex(":") for last in (0, 1)]
    return Plate(
        name=name,
        system_id=str(uuid.uuid4()),
        host=host,
        bmc_port=port,
        username="admin",
        password=random_token(20).reveal(),
        macs=macs,
    )
