"""A Kubernetes API server on one SQLite file: kubectl is its judge.

    request ──> face (what is asked, by whom) ──> reads, writes ──> face ──> answer
                                                     │
                kinds (what there is, its rules)   storage (memory, order, disk)

First file to read: `storage/store` for the promises, `writes/writing` for what happens to an object, `face/app` for the way of a
request.
`serve` starts it in this process; `backup` and `restore` save its objects and put them back. The command `ingot api-server` is a
thin wrapper around them.
"""

from ingot.embedded.server.errors import StateError
from ingot.embedded.server.lean import lean_process
from ingot.embedded.server.running import Running, serve
from ingot.embedded.server.storage.backup import Restored, Saved, backup, restore

__all__ = ["Restored", "Running", "Saved", "StateError", "backup", "lean_process", "restore", "serve"]
