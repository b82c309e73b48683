"""The BMC of a simulated server: Redfish over TLS, as Ironic's redfish and idrac drivers ask for it.

A call goes from `bmc` (log-in, faults of every call, ETags, `$expand`) through the shared table (`table`, `dispatch`) to a room
per resource: `system`, `bios`, `storage`, `media`, `manager`, `enclosure`, `update`, `tasks`, `events`, `service`, `dell`. A room
shows documents, which are pure functions of the server's record, and acts on the record, which is saved before the answer.
What goes on after the answer is the `workshop`'s. Vendors differ by their profile alone. First file to read: `bmc.py`.

Errors:

    Refusal     the call is not done; it is the answer, in Redfish's words
"""

from ingot.lab.redfish.bmc import Bmc

__all__ = ["Bmc"]
