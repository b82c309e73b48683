"""The words of the coreos-installer command: from the order, in a fixed order. Each kernel argument has a flag of its own.

The option that keeps a half-written disk on failure is never given, so that each attempt starts on a disk that cannot boot.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from ingot_agent.errors import Refused
from ingot_agent.order import Order

_DEVICE: Final = re.compile(r"/dev/[A-Za-z0-9][A-Za-z0-9/_.:+-]*")
# Of the CoreOS below the root, not of the agent's container. No proxy: images come through us.
ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "RUST_BACKTRACE": "0",
}


def install(
    order: Order,
    *,
    root: Path,
    device: str,
    image_url: str | None,
    ignition_file: str | None = None,
    network_folder: str | None = None,
) -> list[str]:
    """What is run to install this on the device; paths are those below the root. Without a folder with keyfiles, the network
    that is copied is the one that runs."""
    if not _DEVICE.fullmatch(device) or ".." in device:
        raise Refused(f"{device!r} is not the name of a disk.")
    words = ["chroot", str(root), "coreos-installer", "install"]
    words += ["--image-url", image_url, "--insecure"] if image_url else ["--offline"]
    words += ["--ignition-file", ignition_file] if ignition_file else []
    words += [f"--append-karg={argument}" for argument in order.append_kargs]
    words += [f"--delete-karg={argument}" for argument in order.delete_kargs]
    words += ["--copy-network"] if order.copy_network or network_folder else []
    words += ["--network-dir", network_folder] if network_folder else []
    return [*words, device]
