"""The seam between what is wanted of a host and the back end that does it.

`protocol` is the face, `orders` what is told, `answers` what comes back; each back end is a package of its own beside them, and
`changes` is what they share. Those who want something done import this door only.
"""

from ingot.provisioner.answers import (
    BEGIN_ANEW,
    Act,
    BackendError,
    BackendUnavailable,
    Busy,
    Failed,
    NotRegistered,
    Permit,
    Ready,
    Refusal,
    Sight,
    answer_to,
)
from ingot.provisioner.census import Census, KnownHost
from ingot.provisioner.orders import (
    Access,
    Component,
    ConfigDrive,
    Credentials,
    Deployment,
    Findings,
    FirmwareChange,
    FirmwareReport,
    HostRef,
    Inspection,
    OwnRamdisk,
    Power,
    PowerOffMode,
    Preparation,
    Registered,
    Service,
    Subscription,
    Vitals,
)
from ingot.provisioner.protocol import (
    EVERYTHING,
    Change,
    Provisioner,
)

__all__ = [
    "BEGIN_ANEW",
    "EVERYTHING",
    "Access",
    "Act",
    "BackendError",
    "BackendUnavailable",
    "Busy",
    "Census",
    "Change",
    "Component",
    "ConfigDrive",
    "Credentials",
    "Deployment",
    "Failed",
    "Findings",
    "FirmwareChange",
    "FirmwareReport",
    "HostRef",
    "Inspection",
    "KnownHost",
    "NotRegistered",
    "OwnRamdisk",
    "Permit",
    "Power",
    "PowerOffMode",
    "Preparation",
    "Provisioner",
    "Ready",
    "Refusal",
    "Registered",
    "Service",
    "Sight",
    "Subscription",
    "Vitals",
    "answer_to",
]
