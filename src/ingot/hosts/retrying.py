"""Trying again because a person says so: `ingot host retry`, or the annotation that it sets.

The annotation goes as soon as it was seen, and with it all that counts against the next attempt.
"""

from __future__ import annotations

from ingot.api.baremetalhost import Annotation
from ingot.hosts.host_pass import Pass


async def retry_by_hand(p: Pass) -> None:
    if Annotation.RETRY not in p.host.metadata.annotations:
        return
    p.change(error_count=0, provisioning_fail_count=0)
    await p.patch_host({"metadata": {"annotations": {Annotation.RETRY: None}}})
