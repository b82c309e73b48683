"""The ramdisk of a host: a published CoreOS live image, with an Ignition config that starts ironic-python-agent.

`settings` is what all of them are told, `ignition` the config of one, `base` the published image, `host_image` the two
put together without writing anything down.
"""

from ingot.images.ramdisk.base import Base
from ingot.images.ramdisk.errors import BaseError, CannotBuild, RamdiskError, SettingsError
from ingot.images.ramdisk.host_image import HostImage, RamdiskMaker
from ingot.images.ramdisk.ignition import agent_ignition
from ingot.images.ramdisk.kernels import kernel_of
from ingot.images.ramdisk.minimal import Minimal, minimal_of
from ingot.images.ramdisk.settings import AgentSettings

__all__ = [
    "AgentSettings",
    "Base",
    "BaseError",
    "CannotBuild",
    "HostImage",
    "Minimal",
    "RamdiskError",
    "RamdiskMaker",
    "SettingsError",
    "agent_ignition",
    "kernel_of",
    "minimal_of",
]
