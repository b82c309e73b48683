"""What a step of the agent works on: the server, what its ramdisk was told, the node, and how it fetches.

Owns the place in the middle of a step where a server can be held, and where an agent dies when it is to.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ingot.lab.agent.download import Source
from ingot.lab.agent.failures import AgentDied, command_failed
from ingot.lab.agent.hints import root_device
from ingot.lab.chassis import Chassis
from ingot.lab.devices import Device, devices
from ingot.lab.disk import Disk
from ingot.lab.record import Ramdisk
from ingot.lab.settings import Timings

Params = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    chassis: Chassis
    ramdisk: Ramdisk
    timings: Timings
    trusted: ssl.SSLContext
    node: Mapping[str, Any] = field(default_factory=dict)
    """The node as Ironic sent it with the command."""

    @property
    def source(self) -> Source:
        return Source(self.trusted, self.timings.heartbeat_gap, self.ramdisk.md5_allowed)

    def devices(self) -> list[Device]:
        return devices(self.chassis.plate, self.chassis.record)

    def disk(self, device: Device) -> Disk:
        return self.chassis.disks.at(device)

    def root(self) -> Device:
        """Where the operating system goes: as the node's hints say, those of its instance before those of its properties."""
        instance, properties = self.node.get("instance_info") or {}, self.node.get("properties") or {}
        return root_device(self.devices(), instance.get("root_device") or properties.get("root_device"))

    def written_last(self) -> Device | None:
        """The device with the image that was written last."""
        found = {device.key: device for device in self.devices()}
        return next((found[key] for key in reversed(self.chassis.record.written) if key in found), None)

    async def told_to_fail(self, command: str) -> None:
        """A short command can be held, and fail or die by a fault, like a step."""
        await self.midway(command)
        told = self.chassis.faults.fail_steps.get(command)
        if told is not None:
            self.chassis.acts("fail_steps")
            raise command_failed(told)

    async def midway(self, step: str) -> None:
        """The middle of a step."""
        await self.chassis.held(step)
        if self.chassis.faults.die_in_step == step and self.chassis.acts("die_in_step"):
            raise AgentDied(f"the agent died in the middle of {step}, as it was told by a fault")
