"""Which ramdisk a host booted last: noted when the back end has taken up what the host is booted for.

A note belongs to one operation, and is made once for it: an image that is built anew in the middle is for the next boot. It goes
with the write that the pass makes anyway. An API with the published schemas drops it; what was noted is remembered, so that
nobody writes it again and again.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from ingot.hosts.beside.ramdisks import starts_live_image
from ingot.hosts.host_pass import Pass


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
