"""Letting an object go: our finalizer comes off, and those of others stay.

Guarded by the version that was read, so that a finalizer which somebody adds meanwhile is not lost.
"""

from __future__ import annotations

import contextlib
from typing import TypeVar

from ingot.api.meta import Key, Object, Resource
from ingot.kube import Client, NotFound

T = TypeVar("T", bound=Object)


def without(finalizers: list[str], ours: str) -> list[str]:
    return [finalizer for finalizer in finalizers if finalizer != ours]


async def release(client: Client, kind: Resource[T], key: Key, ours: str) -> None:
    """Take our finalizer off the object as it is now; nothing to do where it is gone, or has none of ours."""
    with contextlib.suppress(NotFound):
        meta = (await client.get(kind, key)).metadata
        if ours in meta.finalizers:
            patch = {"metadata": {"finalizers": without(meta.finalizers, ours)}}
            await client.patch(kind, key, patch, resource_version=meta.resource_version)
