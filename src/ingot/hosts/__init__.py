"""The life of a BareMetalHost: one small handler per state, the table in one place, I/O at the edge.

Read in this order: `outcome` (what a handler can say), `states` (the table), `reconciler` (a pass), then one state, for example
`provisioning`. `guard` is what stands before everything that destroys. `controller` says what wakes a host.
"""

from ingot.hosts.controller import HostController
from ingot.hosts.reconciler import HostReconciler
from ingot.hosts.settings import HostSettings

__all__ = ["HostController", "HostReconciler", "HostSettings"]
