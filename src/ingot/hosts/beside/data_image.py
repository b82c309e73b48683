"""DataImage: an ISO image in the virtual CD drive of a machine in use.

Owns the DataImage of the host's name: its finalizer, its owner, its status. The drive is changed only while the machine is off
and about to be switched on, so that a system never loses what it reads from. That it may be changed is written (lastReconciled)
before it is: from then on the DataImage goes only when the drive has been emptied, or with its host.

An image that cannot be attached keeps the machine off, for it was to be there at this start; it is tried again after a while, or
at once when its URL changes. One that cannot be taken out keeps nobody waiting, and after a few starts it is let go.
"""

from __future__ import annotations

import zlib
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from ingot.api.dataimage import DATA_IMAGES, FINALIZER, AttachedImage, DataImage, DataImageError
from ingot.api.detachment import detachment
from ingot.api.meta import Key
from ingot.api.wire import wire
from ingot.hosts.finalizers import without
from ingot.hosts.host_pass import Pass, Tools
from ingot.hosts.outcome import SOON, Outcome, Wait
from ingot.hosts.patches import status_difference
from ingot.hosts.secrets.reading import owner_of
from ingot.kube import NotFound
from ingot.provisioner import Busy, Failed, NotRegistered, Ready
from ingot.trust import redact

STARTS: Final = 3
"""How often a machine is started with an image that cannot be taken out, before its DataImage is let go."""
LONGEST: Final = 6
"""Failures after which the pause does not grow any more: 2⁶ minutes. Meanwhile a machine is off that should run."""


# Beside the host, in any state


async def look_after_data_image(p: Pass) -> Outcome | None:
    """Mark the DataImage as the host's own; let it go when nothing can be in the drive because of it."""
    image = p.tools.companions.data_images.get(p.key)
    if image is None or detachment(p.host) is not None:
        return None
    if image.metadata.deletion_timestamp is not None:
        if p.deleting or image.status.last_reconciled is None:
            await let_go(p.tools, image)
    elif not p.deleting:
        await _claim(p, image)
    return None


async def release_data_image(tools: Tools, key: Key) -> None:
    """The host is gone: its DataImage may go."""
    image = tools.companions.data_images.get(key)
    if image is not None and image.metadata.deletion_timestamp is not None:
        await let_go(tools, image)


async def let_go(tools: Tools, image: DataImage) -> None:
    left = without(image.metadata.finalizers, FINALIZER)
    if left != image.metadata.finalizers:
        await _patch(tools, image, {"metadata": {"finalizers": left}})


async def _claim(p: Pass, image: DataImage) -> None:
    meta = image.metadata
    change: dict[str, Any] = {}
    if FINALIZER not in meta.finalizers:
        change["finalizers"] = [*meta.finalizers, FINALIZER]
    if not any(owner.uid == p.host.metadata.uid for owner in meta.owner_references):
        change["ownerReferences"] = wire([*meta.owner_references, owner_of(p.host)])
    if change:
        await _patch(p.tools, image, {"metadata": change})


# While the machine is off, on its way to being on


async def attend_data_image(p: Pass) -> Outcome | None:
    """Have the right image in the drive; None when the machine can be switched on."""
    image = p.tools.companions.data_images.get(p.key)
    if image is None:
        return None
    leaving = image.metadata.deletion_timestamp is not None
    url = "" if leaving else image.spec.url
    if not leaving and url == _attached(image) and image.status.error is None:
        return None
    if not leaving and (left := _pause_left(p, image, url)):
        return Wait(_held_up(image), look_again=left)
    if not leaving and image.status.last_reconciled is None:
        image = await _note(p, image)
    error = image.status.error
    match await p.tools.backend.set_data_image(p.ref, url, again=error is not None):
        case Busy(why, detail):
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message):
            return await _failed(p, image, url, redact(message))
        case Ready():
            await _done(p, image, url)
            return None


async def _done(p: Pass, image: DataImage, url: str) -> None:
    image = await _note(p, image, attached_image=AttachedImage(url=url) if url else None, error=None)
    if url:
        _tell(p, image, "DataImageAttached", f"{redact(url)} is in the machine's virtual CD drive")
    else:
        _tell(p, image, "DataImageDetached", "The machine's virtual CD drive is empty")
        await let_go(p.tools, image)


async def _failed(p: Pass, image: DataImage, url: str, message: str) -> Outcome | None:
    count = (image.status.error.count if image.status.error is not None else 0) + 1
    did = f"{url} cannot be attached" if url else "the image cannot be taken out of the drive"
    message = f"{did}: {message.rstrip('.')}"
    image = await _note(p, image, error=DataImageError(count=count, message=message))
    _tell(p, image, "DataImageError", redact(message), warning=True)
    if url:
        return Wait(_held_up(image), look_again=_pause_left(p, image, url))
    if count >= STARTS:
        _tell(
            p,
            image,
            "DataImageAbandoned",
            f"Let go after {count} failed attempts to take it out: it may still be in the machine's virtual CD drive",
            warning=True,
        )
        await let_go(p.tools, image)
    return None


def _held_up(image: DataImage) -> str:
    message = redact(image.status.error.message) if image.status.error is not None else ""
    return (
        f"the host stays off until its DataImage is attached: {message}. "
        f"Correct spec.url of DataImage {image.metadata.name}, or delete it, and the host is switched on at once"
    )


def _attached(image: DataImage) -> str:
    return image.status.attached_image.url if image.status.attached_image is not None else ""


def _pause_left(p: Pass, image: DataImage, url: str) -> float:
    """Seconds until a URL that failed is tried again; 0 for any other."""
    error, last = image.status.error, image.status.last_reconciled
    if error is None or last is None or not error.message.startswith(f"{url} "):
        return 0.0
    # Hosts that failed together do not come back together: each has its own share, the same after a restart.
    share = zlib.crc32(p.host.metadata.uid.encode()) % 1000 / 2000
    pause = timedelta(minutes=(1 << min(error.count, LONGEST)) * (1 - share))
    return max(0.0, (last + pause - p.tools.now()).total_seconds())


async def _note(p: Pass, image: DataImage, **fields: Any) -> DataImage:
    status = replace(image.status, last_reconciled=p.tools.now(), **fields)
    patch = {"status": status_difference(image.status, status)}
    return await _patch(p.tools, image, patch, subresource="status")


async def _patch(tools: Tools, image: DataImage, patch: dict[str, Any], subresource: str = "") -> DataImage:
    try:
        written = await tools.client.patch(
            DATA_IMAGES,
            image.key,
            patch,
            subresource=subresource,
            resource_version=image.metadata.resource_version,
        )
    except NotFound:
        # Somebody took the finalizer off: there is nothing left to write to.
        return image
    tools.companions.wrote(tools.companions.data_images, written)
    return written


def _tell(p: Pass, image: DataImage, reason: str, message: str, *, warning: bool = False) -> None:
    p.tools.recorder.record(
        image, type="Warning" if warning else "Normal", reason=reason, message=message, controller="dataimage"
    )
