"""The life of a BareMetalHost: one small handler per state, the table in one place, I/O at the edge.

Read in this order: `outcome` (what a handler can say), `states/table` (the table), `reconciler` (a pass), then one state, for
example `states/provisioning`. `guard` is what stands before everything that destroys. `controller` says what wakes a host.

    states/         a handler a state, and what they share: power, reboots, RAID
    leaving/        deleted, detached, forgotten by force
    secrets/        read for a pass, marked while they are needed
    beside/         what carries the host's name: hardware, firmware, ramdisk, data image
    subscriptions/  events of management controllers, with a controller of their own
    switches/       likewise
"""

from ingot.hosts.controller import HostController
from ingot.hosts.reconciler import HostReconciler
from ingot.hosts.settings import HostSettings
from ingot.hosts.subscriptions.controller import SubscriptionController
from ingot.hosts.switches.controller import SwitchController, SwitchSettings

__all__ = [
    "HostController",
    "HostReconciler",
    "HostSettings",
    "SubscriptionController",
    "SwitchController",
    "SwitchSettings",
]
