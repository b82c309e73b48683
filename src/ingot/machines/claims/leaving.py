"""How a claim that is deleted lets its host go: emptied first, then released, and nothing of the claim is left beside it.

Safe to be interrupted anywhere: every step looks at what is there. The claim itself goes last.
"""

from __future__ import annotations

from typing import Any

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hostclaim import HostClaim
from ingot.machines.claims.linking import consumer_of, given_up, is_given_up, named_host, release
from ingot.machines.claims.reboots import off_host
from ingot.machines.pool import Pool
from ingot.machines.targets import emptying, is_emptied
from ingot.machines.vacancies import belongs_to, why_taken


async def let_hosts_go(pool: Pool, claim: HostClaim) -> BareMetalHost | None:
    """Empty and release what the claim has. None once there is nothing left; else a host that is not empty yet."""
    consumer = consumer_of(claim)
    hosts = {host.key: host for host in pool.of(consumer)}
    named = named_host(claim)
    if named is not None and named not in hosts:
        # Somebody may have taken it for this claim a moment ago, or may be about to.
        meant = await pool.look_again(named)
        if meant is not None and belongs_to(meant, consumer):
            hosts[named] = meant
        elif meant is not None and why_taken(meant) is None and not is_given_up(meant, claim):
            await pool.patch(meant, given_up(claim))
    waits_for: BareMetalHost | None = None
    for host in hosts.values():
        emptied = await pool.patch(host, _emptying(host))
        if is_emptied(emptied):
            await pool.patch(emptied, release(claim))
        else:
            waits_for = emptied
    return waits_for


def _emptying(host: BareMetalHost) -> dict[str, Any]:
    annotations = off_host(host)
    return {**emptying(host), **({"metadata": {"annotations": annotations}} if annotations else {})}
