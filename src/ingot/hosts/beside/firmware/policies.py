"""HostUpdatePolicy: whether the firmware of a machine in use may be changed. The user's; the host only owns it."""

from __future__ import annotations

from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.hosts.beside.firmware.beside import own
from ingot.hosts.host_pass import Pass


async def own_policy(p: Pass) -> None:
    """Have the policy go when its host goes."""
    informer = p.tools.companions.update_policies
    found = informer.get(p.key)
    if found is not None:
        await own(p, informer, HOST_UPDATE_POLICIES, found)
