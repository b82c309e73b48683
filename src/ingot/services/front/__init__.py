"""The front server: all that machines on the provisioning side can reach of Ironic, over TLS.

    calls       which calls an agent may make, and what they must look like (pure)
    limits      how often, and how many at once
    files       which of the files that Ironic publishes are handed out, and under which names
    upstream    Ironic itself, on loopback or a socket
    server      the listener
    boot        the other one: boot files for iPXE, without TLS, where network boot is switched on

Agents cannot authenticate themselves, so whoever is on that side may call. They get three calls (look-up, heartbeat,
inspection data), the version of the API, and files whose names cannot be guessed; everything else is a 404. What goes on to
Ironic is made anew from what was understood, never the bytes that came.
"""

from ingot.services.front.server import serve

__all__ = ["serve"]
