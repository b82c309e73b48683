"""A Kubernetes API server on one SQLite file: kubectl is its judge.

    request ──> app ──> requests (what is asked) ──> auth (may they) ──> reading, watching, writing ──> rendering ──> answer
                                                                              │
                       kinds, builtins (what there is)                      store (memory, order) ──> database (disk)
                       schema, metadata, patches, selectors (rules)           └──> garbage (what follows)

First file to read: `store` for the promises, `writing` for what happens to an object, `app` for the way of a request.
`serve` starts it in this process; `backup` and `restore` save its objects and put them back. The command `ingot api-server` is a
thin wrapper around them.
"""

from ingot.embedded.server.errors import StateError
from ingot.embedded.server.lean import lean_process
from ingot.embedded.server.running import Running, serve
from ingot.embedded.server.storage.backup import Restored, Saved, backup, restore

__all__ = ["Restored", "Running", "Saved", "StateError", "backup", "lean_process", "restore", "serve"]
