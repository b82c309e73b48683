"""Who listens where: the sockets of a tree of processes, as the kernel tells."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LISTENS = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Listener(NamedTuple):
    address: str
    port: int


def processes_below(root: int) -> set[int]:
    """The process and all that descend from it."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (parent := _parent(folder)) is not None:
            parents[int(folder.name)] = parent
    found = {root}
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def listeners_of(root: int) -> set[Listener]:
    """Where the processes below this one take connections over TCP, or packets over UDP."""
    found = set()
    for process in processes_below(root):
        sockets = set(_sockets(process))
        for table in ("tcp", "tcp6", "udp", "udp6"):
            found |= {listener for inode, listener in _table(process, table) if inode in sockets}
    return found


def _parent(folder: Path) -> int | None:
    try:
        # The name of the program stands in brackets, and may hold anything.
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _sockets(process: int) -> Iterator[str]:
    try:
        for entry in (Path("/proc") / str(process) / "fd").iterdir():
            if held := _SOCKET.fullmatch(str(entry.readlink())):
                yield held[1]
    except (FileNotFoundError, ProcessLookupError):
        return  # it has ended, or closed one meanwhile


def _table(process: int, name: str) -> Iterator[tuple[str, Listener]]:
    """Sockets of the process's network: what listens of TCP, what is bound and not connected of UDP."""
    try:
        lines = (Path("/proc") / str(process) / "net" / name).read_text().splitlines()[1:]
    except (FileNotFoundError, ProcessLookupError):
        return
    for line in lines:
        _, local, remote, state, *_, inode = line.split()[:10]
        if state == _LISTENS if name.startswith("tcp") else remote.endswith(":0000"):
            yield inode, _listener(local)


def _listener(text: str) -> Listener:
    """An address as the kernel writes it: words of four bytes, each as this machine has it in memory."""
    address, _, port = text.partition(":")
    words = [address[at : at + 8] for at in range(0, len(address), 8)]
    packed = b"".join(int(word, 16).to_bytes(4, "little") for word in words)
    return Listener(str(ipaddress.ip_address(packed)), int(port, 16))
