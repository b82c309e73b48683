"""CoreOS on a simulated server: how a live image boots, what Ignition makes of it, and what an installed one boots to.

Read `booting` first: it follows the live system from the kernel's arguments to the root file system, and says in the words of a
`BootFailure` where a real one would stop. `live` reads an ISO image, `rootfs` fetches and checks a root file system, `ignition`
does what a config says, `ramdisk` finds the agent in it, `system` is what then runs, `installed` the first boot from a disk.
"""

from ingot.lab.coreos.booting import (
    Reach,
    booted_from_medium,
    booted_from_network,
    is_live_initrd,
    needs_live_initrd,
)
from ingot.lab.coreos.installed import Left, first_boot
from ingot.lab.coreos.live import LiveMedium, live_medium
from ingot.lab.coreos.system import LiveSystem, started, wanted_members

__all__ = [
    "Left",
    "LiveMedium",
    "LiveSystem",
    "Reach",
    "booted_from_medium",
    "booted_from_network",
    "first_boot",
    "is_live_initrd",
    "live_medium",
    "needs_live_initrd",
    "started",
    "wanted_members",
]
