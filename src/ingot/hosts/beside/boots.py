"""Which ramdisk a host booted last: noted when the back end has taken up what the host is booted for, and, where that tells,
what ran.

A note belongs to one operation, and is made once for it: an image that is built anew in the middle is for the next boot. It goes
with the write that the pass makes anyway. An API with the published schemas drops it; what was noted is remembered, so that
nobody writes it again and again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from ingot.api.baremetalhost import EventReason
from ingot.hosts.beside.ramdisks import starts_live_image
from ingot.hosts.host_pass import Pass

_LONGEST_LABEL: Final = 32


def note_boot(p: Pass, *, since: datetime | None, again: bool = False) -> None:
    """The back end is at what it boots the host for, which was begun then. `again`: it was told to begin it anew just now."""
    if p.boots is None or starts_live_image(p.current):
        return
    noted = p.status.ramdisk
    last = noted.booted_at if noted is not None else p.tools.boots_noted.get(p.key)
    if not again and since is not None and last is not None and last >= since:
        return
    at = p.tools.now()
    p.tools.boots_noted[p.key] = at
    p.change(ramdisk=replace(p.boots, booted_at=at))


def note_report(p: Pass, build: str, *, since: datetime | None) -> None:
    """What looked at the hardware says that it is this build, "" for nothing; the inspection was begun then.

    A machine that runs something else than it was told to boot is told of: its firmware booted a medium of before, or somebody
    else on its network answered first. What it found is true all the same.
    """
    noted = p.status.ramdisk
    if (
        not build
        or noted is None
        or noted.booted_at is None
        or (since is not None and noted.booted_at < since)
    ):
        return
    p.change(ramdisk=replace(noted, reported=build))
    if noted.version and not is_of(noted.version, build):
        p.tell(
            EventReason.OTHER_RAMDISK,
            f"The host was told to boot {noted.version}, and was inspected by a ramdisk that says it is {build}. Look at what "
            "its firmware boots: a medium of before, or another server of boot images on its network.",
            "Warning",
        )


def is_of(label: str, build: str) -> bool:
    """Whether a live image with this volume label is this build. A label is the name of the system, a dash and the build, as far
    as 32 characters go."""
    tails = (label[at + 1 :] for at, character in enumerate(label) if character == "-")
    cut = len(label) == _LONGEST_LABEL
    return label == build or any(tail == build or (cut and tail and build.startswith(tail)) for tail in tails)
