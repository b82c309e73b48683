"""The seam between what is wanted of a host and the back end that does it.

`protocol` is the face; each back end is a package of its own beside it. Those who want something done import this door only.
"""

from ingot.provisioner.protocol import (
    EVERYTHING,
    Access,
    Act,
    BackendError,
    BackendUnavailable,
    Busy,
    Change,
    ConfigDrive,
    Credentials,
    Deployment,
    Failed,
    HostRef,
    NotRegistered,
    Permit,
    Power,
    PowerOffMode,
    Provisioner,
    Ready,
    Refusal,
    Registered,
    Sight,
    Vitals,
)

__all__ = [
    "EVERYTHING",
    "Access",
    "Act",
    "BackendError",
    "BackendUnavailable",
    "Busy",
    "Change",
    "ConfigDrive",
    "Credentials",
    "Deployment",
    "Failed",
    "HostRef",
    "NotRegistered",
    "Permit",
    "Power",
    "PowerOffMode",
    "Provisioner",
    "Ready",
    "Refusal",
    "Registered",
    "Sight",
    "Vitals",
]
