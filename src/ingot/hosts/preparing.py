"""Preparing: bring the machine into the shape that was asked for, before it becomes available.

What this back end cannot do yet is refused in a sentence rather than passed over: a user who asked for RAID and got none would
find out when a disk dies.
"""

from __future__ import annotations

from ingot.api.baremetalhost import ErrorType, State
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import Advance, Block, Outcome
from ingot.hosts.profiles import root_device


async def preparing(p: Pass) -> Outcome:
    if p.host.spec.raid is not None:
        return Block(
            ErrorType.PREPARATION,
            "spec.raid is set, and this version of Ingot cannot configure RAID. Remove spec.raid to use the disks as they are.",
        )
    p.change_provisioning(root_device_hints=root_device(p.host.spec))
    p.completed()
    return Advance(State.AVAILABLE)
