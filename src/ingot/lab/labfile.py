"""`lab.json`: what was built, so that addresses, passwords and MACs outlive the process.

Owns the identity of the servers (`Plate`: what is printed on the machine) and where the farm's listeners are. Every server has
an address of its own, counted up from the start of the lab's network, and all BMCs have the same port, which is chosen once and
kept. A plate is never changed: the servers of older labs share one address and keep their ports. The file holds BMC passwords
and URLs that are secrets, so only its owner may read it.
"""

from __future__ import annotations

import ipaddress
import random
import secrets
import socket
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from ingot.lab.errors import LabError
from ingot.trust import random_token, write_private

KEPT_PORTS: Final = range(10_000, 32_768)
"""Below the range from which the kernel gives ports to outgoing connections: while a listener is away, one of those could take
its port, or, connecting to it, even meet itself."""
NETWORK: Final = "127.77.0.0/16"
"""Where the servers are unless somebody says otherwise: this machine's own, and seldom used."""
_SCHEMES: Final = {"dell": "idrac-virtualmedia+https"}
_VIRTUAL_MEDIA: Final = "redfish-virtualmedia+https"


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
        scheme = _SCHEMES.get(self.profile, _VIRTUAL_MEDIA)
        return f"{scheme}://{self.host}:{self.bmc_port}/redfish/v1/Systems/{self.system_id}"


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
    network: str = NETWORK
    bmc_port: int = 0
    """The port of every BMC that has an address of its own; 0 until there is one."""
    control_url: str = ""
    ramdisk_url: str = ""
    kernel_url: str = ""
    initrd_url: str = ""
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


def grown(
    state: Path,
    *,
    host: str,
    servers: int,
    network: str = NETWORK,
    profiles: Sequence[str] = ("generic",),
    builds: Sequence[str] = ("standard",),
) -> LabFile:
    """The lab with at least this many servers; those that are there stay as they are. New ones take profiles and builds in
    turn."""
    folder = state / "lab"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path(state).exists():
        lab = load(state)
    else:
        lab = LabFile(
            host=host, depot_port=free_port(host), depot_token=random_token().reveal(), network=network
        )
    _check_network(lab.network, servers)
    taken = {mac for plate in lab.servers for mac in plate.macs}
    for number in range(len(lab.servers) + 1, servers + 1):
        lab.bmc_port = lab.bmc_port or free_port("")
        plate = _plate(number, lab, _macs(taken))
        plate.profile = profiles[(number - 1) % len(profiles)]
        plate.build = builds[(number - 1) % len(builds)]
        taken.update(plate.macs)
        lab.servers.append(plate)
    save(state, lab)
    return lab


def free_port(host: str) -> int:
    """A port of this address that is free now, and that no outgoing connection gets; "" asks for all addresses at once."""
    for port in random.sample(KEPT_PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise LabError(
        f"no port is free on {host or 'this machine'} between {KEPT_PORTS[0]} and {KEPT_PORTS[-1]}"
    )


def _check_network(network: str, servers: int) -> None:
    try:
        found = ipaddress.IPv4Network(network)
    except ValueError as error:
        raise LabError(f"{network!r} is no network for servers ({error}); give one like {NETWORK}") from None
    if found.num_addresses < servers + 2:
        room = max(0, found.num_addresses - 2)
        raise LabError(
            f"the network {found} has room for {room} servers, not for {servers}; give a larger one"
        )


def _macs(taken: set[str]) -> list[str]:
    """Two that no server of the lab has."""
    while True:
        # 52:54:00 is what QEMU gives its cards: locally known, and never a vendor's.
        last = secrets.randbits(24) & ~1
        macs = [(bytes([0x52, 0x54, 0x00]) + (last + card).to_bytes(3)).hex(":") for card in (0, 1)]
        if taken.isdisjoint(macs):
            return macs


def _plate(number: int, lab: LabFile, macs: list[str]) -> Plate:
    return Plate(
        name=f"server-{number}",
        system_id=str(uuid.uuid4()),
        host=str(ipaddress.IPv4Network(lab.network)[number]),
        bmc_port=lab.bmc_port,
        username="admin",
        password=random_token(20).reveal(),
        macs=macs,
    )
