"""What an installer of CoreOS leaves on a disk, and the first boot from there.

`Left` is kept beside the disk. At the first boot Ignition runs with the config in it; one that it refuses ends the boot, as on a
real machine, where nobody sees it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ingot.lab.coreos.ignition import applied
from ingot.lab.record import Instance


class Left(msgspec.Struct, kw_only=True):
    """For the first boot."""

    build: str = ""
    ignition: str = ""
    """What Ignition runs with: the user's config, and what the installer adds."""
    arguments: list[str] = []
    """Kernel arguments beside the image's own."""
    without: list[str] = []
    """Those of the image's own that are left out."""
    keyfiles: dict[str, str] = {}
    user_data: str = ""
    """The user's config as it was given."""
    meta_data: dict[str, Any] = {}


def first_boot(left: Left, instance: Instance) -> None:
    """Let the system that is booted read what was left for it. Raises `BootFailure` when Ignition fails."""
    instance.coreos = left.build
    instance.ignition = left.ignition
    instance.user_data = left.user_data
    instance.meta_data = left.meta_data
    instance.arguments = left.arguments
    instance.keyfiles = left.keyfiles
    if left.ignition:
        done = applied(left.ignition.encode())
        instance.hostname = done.hostname
        instance.ssh_keys = list(done.ssh_keys.get("core", ()))
