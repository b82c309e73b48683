"""The life of a BareMetalHost: one small handler per state, the table in one place, I/O at the edge.

Read in this order: `outcome` (what a handler can say), `states` (the table), `reconciler` (a pass), then one state, for example
`provisioning`. `guard` is what stands before everything that destroys. `controller` says what wakes a host.
Beside the hosts: `subscriptions` (events of their management controllers) and `switches`, each with a controller of its own.
"""

from ingot.hosts.controller import HostController
from ingot.hosts.reconciler import HostReconciler
from ingot.hosts.settings import HostSettings
from ingot.hosts.subscriptions import SubscriptionController
from ingot.hosts.switches import SwitchController, SwitchSettings

__all__ = [
    "HostController",
    "HostReconciler",
    "HostSettings",
    "SubscriptionController",
    "SwitchController",
    "SwitchSettings",
]
