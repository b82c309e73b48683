"""The kinds of Kubernetes itself that this API serves, one module for what belongs together.

Each is written down as a `Kind` with a schema in our own words, the columns `kubectl get` shows for it, and the small
habits that no schema can say: a Secret's `stringData` becomes `data`, an Event is about an object in its own
namespace. `BUILT_IN` is all of them.
"""

from typing import Final

from ingot.embedded.server.kinds.builtins.coordination import LEASES
from ingot.embedded.server.kinds.builtins.definitions import DEFINITIONS
from ingot.embedded.server.kinds.builtins.events import EVENTS
from ingot.embedded.server.kinds.builtins.namespaces import FIRST_NAMESPACES, NAMESPACES
from ingot.embedded.server.kinds.builtins.secrets import SECRETS
from ingot.embedded.server.kinds.kind import Kind

__all__ = ["BUILT_IN", "DEFINITIONS", "EVENTS", "FIRST_NAMESPACES", "NAMESPACES"]

BUILT_IN: Final[tuple[Kind, ...]] = (NAMESPACES, SECRETS, EVENTS, LEASES, DEFINITIONS)
