"""Ignition configs: the first-boot configuration of CoreOS. Reading is checking; writing is a small builder.

Read `shape` for what a config may hold, `config` for how one is made.
"""

from ingot.formats.ignition.config import IgnitionConfig
from ingot.formats.ignition.shape import VERSIONS, parse_ignition

__all__ = ["VERSIONS", "IgnitionConfig", "parse_ignition"]
