"""The words around an Ironic that are agreed between its users: versions, conditions, events."""

from __future__ import annotations

import enum
from typing import Final

LATEST: Final = "latest"
SUPPORTED_VERSIONS: Final = (LATEST, "39.0", "38.0")
"""What `spec.version` can be. Each has its own locked environment; `latest` is the newest of them."""

DATABASE_SUFFIX: Final = "-database"
"""An IronicDatabase `x` is reached through a Service `x-database`."""
DATABASE_NAME: Final = "ironic"
"""The schema inside an IronicDatabase."""


class ConditionType(enum.StrEnum):
    READY = "Ready"


class ConditionReason(enum.StrEnum):
    FAILED = "DeploymentFailed"
    IN_PROGRESS = "DeploymentInProgress"
    AVAILABLE = "DeploymentAvailable"


class EventReason(enum.StrEnum):
    SECRET_CREATED = "APISecretCreated"  # noqa: S105 - the name of an event, no secret
    VERSION_CHANGE = "VersionChange"
    READY = "IronicReady"
    VERSION_ERROR = "VersionError"
    DOWNGRADE_REJECTED = "DowngradeRejected"
    NOT_READY = "IronicNotReady"
    INVALID_LINKED_RESOURCE = "InvalidLinkedResource"
