"""How a host is let go when its claim is deleted: emptied first, then released, and nothing of the claim is left on it.

Safe to be interrupted anywhere: every step looks at what is there. The claim itself goes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ingot.api.baremetalhost import BareMetalHost, UnknownState
from ingot.api.hostclaim import HostClaim
from ingot.kube import Conflict
from ingot.machines.claims.data import is_copy
from ingot.machines.claims.linking import TAKEN_FOR, consumer_of, named_host, passing_by
from ingot.machines.claims.reboots import off_host
from ingot.machines.claims.writing import ClaimWriter
from ingot.machines.pool import Pool
from ingot.machines.targets import RELEASE, emptying, is_emptied
from ingot.machines.vacancies import belongs_to, why_taken


async def let_hosts_go(
    pool: Pool, writer: ClaimWriter, claim: HostClaim, own: Iterable[BareMetalHost]
) -> BareMetalHost | None:
    """Empty and release what the claim has: its own as far as is known, and the one that it means to have.

    None once there is nothing left; else a host that is not empty yet.
    """
    consumer, named = consumer_of(claim), named_host(claim)
    hosts = {host.key: host for host in own}
    meant = await pool.look_again(named) if named is not None and named not in hosts else None
    if meant is not None and belongs_to(meant, consumer):
        # Somebody took it for this claim a moment ago.
        hosts[meant.key], meant = meant, None
    if hosts or meant is not None:
        # Another claim of this name would have the same hosts. This one is still there, so they are its own.
        await writer.still(claim)
    if meant is not None and why_taken(meant) is None:
        await _patched(pool, meant, passing_by(claim))
    waits_for: BareMetalHost | None = None
    for host in hosts.values():
        host, is_empty = await empty(pool, host)
        if is_empty:
            await release(pool, host)
        else:
            waits_for = host
    return waits_for


async def empty(pool: Pool, host: BareMetalHost) -> tuple[BareMetalHost, bool]:
    """Have the host emptied; whether it is. It stays claimed."""
    told = await _patched(pool, host, _emptying(host))
    return told, _is_emptied(told)


async def release(pool: Pool, host: BareMetalHost) -> None:
    mark = {TAKEN_FOR: None} if TAKEN_FOR in host.metadata.annotations else {}
    await _patched(pool, host, {**RELEASE, **({"metadata": {"annotations": mark}} if mark else {})})


async def _patched(pool: Pool, host: BareMetalHost, change: Mapping[str, Any]) -> BareMetalHost:
    try:
        return await pool.patch(host, change)
    except Conflict:
        await pool.look_again(host.key)
        raise


def _is_emptied(host: BareMetalHost) -> bool:
    try:
        return is_emptied(host)
    except UnknownState:
        # Whoever runs the hosts has to mend it; until then nobody knows what is on it.
        return False


def _emptying(host: BareMetalHost) -> dict[str, Any]:
    """All that came from the claim goes; network and meta data that the host has of its own stay."""
    data = {"networkData": host.spec.network_data, "metaData": host.spec.meta_data}
    copies = [field for field, named in data.items() if is_copy(named)]
    spec = {**emptying(host).get("spec", {}), **dict.fromkeys(copies)}
    annotations = off_host(host)
    return {
        **({"spec": spec} if spec else {}),
        **({"metadata": {"annotations": annotations}} if annotations else {}),
    }
