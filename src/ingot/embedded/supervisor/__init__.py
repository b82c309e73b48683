"""Keeps the parts of one machine running, each in a process of its own.

A `Part` says as data what to start, after what, and how one sees that it is ready. The `Supervisor` starts parts as the ones
before them become ready, restarts what dies, keeps what they print, tells in one file how each is doing, and ends them in
reverse order. It knows nothing about what the parts do.

Nothing outlives it: a part dies with the supervisor even when that is killed -9, and what such a death could leave behind (the
children of a part) is found and ended at the next start. `hold` sees to it that one state folder has one supervisor.

    SupervisorError
    ├── AlreadyRunning   another process holds the state folder; stop it first
    ├── PortTaken        a port that belongs to this installation is in use by somebody else
    └── PartFailed       a part ended again and again before it was ever ready; carries its last words
"""

from ingot.embedded.supervisor.errors import AlreadyRunning, PartFailed, PortTaken, SupervisorError
from ingot.embedded.supervisor.lock import Holder, hold, holder
from ingot.embedded.supervisor.part import Part, Probe
from ingot.embedded.supervisor.ports import kept_ports
from ingot.embedded.supervisor.probes import answers, connects, may_be_busy
from ingot.embedded.supervisor.status import PartStatus, State, Status, read_status
from ingot.embedded.supervisor.supervisor import Supervisor, end_remains

__all__ = [
    "AlreadyRunning",
    "Holder",
    "Part",
    "PartFailed",
    "PartStatus",
    "PortTaken",
    "Probe",
    "State",
    "Status",
    "Supervisor",
    "SupervisorError",
    "answers",
    "connects",
    "end_remains",
    "hold",
    "holder",
    "kept_ports",
    "may_be_busy",
    "read_status",
]
