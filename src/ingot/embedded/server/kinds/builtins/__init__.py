"""The kinds of Kubernetes itself that this API serves, one module for what belongs together.

Each is made from its message in `tables` (fields, types, defaults, how lists merge) by `making`, with the columns
`kubectl get` shows for it and the habits that no table can say: a Secret's `stringData` becomes `data`, the selector
of a Deployment cannot be changed, a Service gets no address that nothing answers at. `BUILT_IN` is all of them.
"""

from typing import Final

from ingot.embedded.server.kinds.builtins.admission import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from ingot.embedded.server.kinds.builtins.configuration import CONFIG_MAPS, SERVICE_ACCOUNTS
from ingot.embedded.server.kinds.builtins.coordination import LEASES
from ingot.embedded.server.kinds.builtins.definitions import DEFINITIONS
from ingot.embedded.server.kinds.builtins.events import EVENTS, NEW_STYLE_EVENTS
from ingot.embedded.server.kinds.builtins.jobs import JOBS
from ingot.embedded.server.kinds.builtins.making import message_of
from ingot.embedded.server.kinds.builtins.namespaces import FIRST_NAMESPACES, NAMESPACES
from ingot.embedded.server.kinds.builtins.networking import INGRESSES
from ingot.embedded.server.kinds.builtins.nodes import NODES
from ingot.embedded.server.kinds.builtins.pods import PODS
from ingot.embedded.server.kinds.builtins.rbac import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
)
from ingot.embedded.server.kinds.builtins.secrets import SECRETS
from ingot.embedded.server.kinds.builtins.services import SERVICES
from ingot.embedded.server.kinds.builtins.storage import CLAIMS, STORAGE_CLASSES, VOLUMES
from ingot.embedded.server.kinds.builtins.workloads import WORKLOADS
from ingot.embedded.server.kinds.kind import Kind

__all__ = [
    "BUILT_IN",
    "DEFINITIONS",
    "EVENTS",
    "FIRST_NAMESPACES",
    "MUTATING_WEBHOOKS",
    "NAMESPACES",
    "PODS",
    "SERVICE_ACCOUNTS",
    "VALIDATING_WEBHOOKS",
    "message_of",
]

BUILT_IN: Final[tuple[Kind, ...]] = (
    NAMESPACES,
    SECRETS,
    CONFIG_MAPS,
    SERVICE_ACCOUNTS,
    EVENTS,
    PODS,
    NODES,
    SERVICES,
    CLAIMS,
    VOLUMES,
    *WORKLOADS,
    JOBS,
    LEASES,
    NEW_STYLE_EVENTS,
    INGRESSES,
    STORAGE_CLASSES,
    ROLES,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    CLUSTER_ROLE_BINDINGS,
    VALIDATING_WEBHOOKS,
    MUTATING_WEBHOOKS,
    DEFINITIONS,
)
