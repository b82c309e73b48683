"""The one guard: no verb that can destroy reaches Ironic but through here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ingot.provisioner import Act, Busy, Failed, NotRegistered, Permit, Sight
from ingot.provisioner.ironic.carrying_out import Deed
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.nodes import sight


def guarded(
    act: Act,
    permit: Permit,
    deed: Callable[[FullNode], Awaitable[Busy | Failed | NotRegistered | None]],
    *,
    see: Callable[[FullNode], Sight] = sight,
) -> Deed:
    """`deed`, done only if the permit allows it for the node that was read a moment ago."""

    async def asked_first(node: FullNode) -> Busy | Failed | NotRegistered | None:
        refusal = await permit(act, see(node))
        return Busy(refusal.why) if refusal is not None else await deed(node)

    return asked_first
