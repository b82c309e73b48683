"""Machines: each takes a host that fits, has something installed on it, and is linked to the Node it becomes.

The way of a Machine, which is also the order in which to read:

    controller   what wakes a Machine
    actuator     a pass over one
    wanting      which hosts will do, and what is installed
    standing     how it stands to the hosts; what it writes down about them
    claiming     how it gets one, and never two
    lull         when it has time to tell
    telling      what its status says
    news         what is worth an Event
    nodes        the Node that it becomes: which it is, what it has to know
    joining      how that is told, and its end
    leaving      how it goes

Below all: `linking` (which host is whose, as both sides write it down), `records` (the Machines in the API), `metrics`.
"""

from ingot.machines.machine.controller import controller
from ingot.machines.machine.nodes import machine_informer, node_informer

__all__ = ["controller", "machine_informer", "node_informer"]
