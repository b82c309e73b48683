"""CoreOS live images: what is embedded in an ISO image or initial RAM disk, and how it is changed.

Read `live` first: it turns an image into an index and patches. `customizing` is what is embedded for a user who asks for more
than a config; `minimal` makes the image without a root file system.
"""

from ingot.formats.coreos.areas import Area, ArgumentArea, ArgumentAreas
from ingot.formats.coreos.customizing import Customization, Input, customized
from ingot.formats.coreos.features import Features, parse_features
from ingot.formats.coreos.kernel_arguments import ArgumentChanges
from ingot.formats.coreos.live import IGNITION, NETWORK, LiveIso, Patch, network_of
from ingot.formats.coreos.minimal import ROOTFS, Recipe, minimal_changes, recipe_of

__all__ = [
    "IGNITION",
    "NETWORK",
    "ROOTFS",
    "Area",
    "ArgumentArea",
    "ArgumentAreas",
    "ArgumentChanges",
    "Customization",
    "Features",
    "Input",
    "LiveIso",
    "Patch",
    "Recipe",
    "customized",
    "minimal_changes",
    "network_of",
    "parse_features",
    "recipe_of",
]
