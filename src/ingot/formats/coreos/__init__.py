"""CoreOS live images: what is embedded in an ISO image or initial RAM disk, and how it is changed.

Read `live` first: it turns an image into an index and patches.
"""

from ingot.formats.coreos.kernel_arguments import ArgumentChanges
from ingot.formats.coreos.live import IGNITION, NETWORK, LiveIso, Patch, network_of

__all__ = ["IGNITION", "NETWORK", "ArgumentChanges", "LiveIso", "Patch", "network_of"]
