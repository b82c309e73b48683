"""What can be said against an installation before the machine is touched.

Asked before a host that is available is provisioned, and before one that runs something else is emptied for it: nobody loses a
running system to a Secret that is missing or an order that nobody can carry out.
"""

from __future__ import annotations

from ingot.api.baremetalhost import ErrorType
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import Block
from ingot.hosts.secrets.first_boot import first_boot_data
from ingot.hosts.secrets.pulling import pull_secret


async def objection(p: Pass) -> Block | None:
    """Why what the host asks for now cannot be installed; None where nothing is known against it."""
    image, custom_deploy = p.host.spec.image, p.host.spec.custom_deploy
    if (why := p.tools.backend.cannot_deploy(image, custom_deploy)) is not None:
        return Block(ErrorType.PROVISIONING, why)
    for found in (await first_boot_data(p, image, custom_deploy), await pull_secret(p, image)):
        if isinstance(found, Block):
            return found
    return None
