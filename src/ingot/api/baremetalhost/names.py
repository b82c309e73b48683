"""The words of a BareMetalHost that are agreed between its users: states, errors, conditions, annotations, events.

Clients compare these strings, so each is written exactly as Metal3 writes it, spaces included.
"""

from __future__ import annotations

import enum
from typing import Final


class State(enum.StrEnum):
    """Where a host is on its way from unknown to provisioned and back (`status.provisioning.state`)."""

    NONE = ""
    UNMANAGED = "unmanaged"
    REGISTERING = "registering"
    MATCH_PROFILE = "match profile"
    """From older releases; means the same as PREPARING."""
    PREPARING = "preparing"
    READY = "ready"
    """From older releases; means the same as AVAILABLE."""
    AVAILABLE = "available"
    PROVISIONING = "provisioning"
    PROVISIONED = "provisioned"
    EXTERNALLY_PROVISIONED = "externally provisioned"
    DEPROVISIONING = "deprovisioning"
    INSPECTING = "inspecting"
    POWERING_OFF_BEFORE_DELETE = "powering off before delete"
    DELETING = "deleting"


CURRENT_NAME: Final = {State.MATCH_PROFILE: State.PREPARING, State.READY: State.AVAILABLE}
"""What states of older releases are called now."""


class OperationalStatus(enum.StrEnum):
    """Whether all is well with a host, in one word."""

    NONE = ""
    OK = "OK"
    DISCOVERED = "discovered"
    ERROR = "error"
    DELAYED = "delayed"
    DETACHED = "detached"
    SERVICING = "servicing"


class ErrorType(enum.StrEnum):
    """What a host was doing when it failed. NONE is falsy: `if host.status.error_type`."""

    NONE = ""
    PROVISIONED_REGISTRATION = "provisioned registration error"
    REGISTRATION = "registration error"
    INSPECTION = "inspection error"
    PREPARATION = "preparation error"
    PROVISIONING = "provisioning error"
    POWER_MANAGEMENT = "power management error"
    SERVICING = "servicing error"
    DETACH = "detach error"
    """Not in the schema that Metal3 publishes, though Metal3 uses it: there, a host that could not be detached cannot say so."""


WRITABLE_ERROR_TYPES: Final = tuple(e.value for e in ErrorType if e is not ErrorType.NONE)
"""Those that `status.errorType` can hold; where there is none the field is absent."""


class ConditionType(enum.StrEnum):
    MANAGEABLE = "Manageable"
    AVAILABLE_FOR_PROVISIONING = "AvailableForProvisioning"
    PROVISIONED = "Provisioned"
    READY = "Ready"
    PROGRESSING = "Progressing"
    HEALTHY = "Healthy"


class ConditionReason(enum.StrEnum):
    NOT_MANAGED = "NotManaged"
    REGISTERING = "Registering"
    REGISTRATION_FAILED = "RegistrationFailed"
    MANAGEABLE = "Manageable"
    POWER_FAILURE = "PowerFailure"
    AVAILABLE = "Available"
    NOT_AVAILABLE = "NotAvailable"
    PROVISIONED = "Provisioned"
    NOT_PROVISIONED = "NotProvisioned"
    PREPARING = "Preparing"
    PROVISIONING = "Provisioning"
    DEPROVISIONING = "Deprovisioning"
    INSPECTING = "Inspecting"
    POWERING_OFF_BEFORE_DELETE = "PoweringOffBeforeDelete"
    DELETING = "Deleting"
    NOT_PROGRESSING = "NotProgressing"
    ERROR = "Error"
    SERVICING = "Servicing"
    DETACHED = "Detached"
    HEALTHY = "Healthy"
    WARNING = "Warning"
    CRITICAL_ERROR = "CriticalError"
    UNKNOWN = "Unknown"


class EventReason(enum.StrEnum):
    DISCOVERED = "Discovered"
    REGISTERED = "Registered"
    PROFILE_SET = "ProfileSet"
    BMC_ACCESS_VALIDATED = "BMCAccessValidated"
    BMC_CREDENTIAL_ERROR = "BMCCredentialError"
    INSPECTION_STARTED = "InspectionStarted"
    INSPECTION_COMPLETE = "InspectionComplete"
    INSPECTION_SKIPPED = "InspectionSkipped"
    UPDATE_HARDWARE_DETAILS = "UpdateHardwareDetails"
    REMOVE_ANNOTATION = "RemoveAnnotation"
    INVALID_ANNOTATION_VALUE = "InvalidAnnotationValue"
    PROVISIONING_STARTED = "ProvisioningStarted"
    PROVISIONING_COMPLETE = "ProvisioningComplete"
    DEPROVISIONING_STARTED = "DeprovisioningStarted"
    DEPROVISIONING_COMPLETE = "DeprovisioningComplete"
    POWER_ON = "PowerOn"
    POWER_OFF = "PowerOff"
    REGISTRATION_ERROR = "RegistrationError"
    PROVISIONED_REGISTRATION_ERROR = "ProvisionedRegistrationError"
    INSPECTION_ERROR = "InspectionError"
    PREPARATION_ERROR = "PreparationError"
    PROVISIONING_ERROR = "ProvisioningError"
    POWER_MANAGEMENT_ERROR = "PowerManagementError"
    DETACH_ERROR = "DetachError"
    SERVICING_ERROR = "ServicingError"
    IMAGE_AUTH_FORMAT_UNSUPPORTED = "ImageAuthFormatUnsupported"
    IMAGE_AUTH_PARSE_ERROR = "ImageAuthParseError"
    FORCE_DELETED = "ForceDeleted"
    UNKNOWN_STATE = "UnknownState"
    """Ours: a host went without its back end; the message tells what it leaves behind."""
    OTHER_RAMDISK = "OtherRamdisk"
    """Ours: a host was inspected by another ramdisk than it was told to boot."""
    WEAK_IMAGE = "WeakImage"
    """Ours: what is asked for is installed, and something about it should be better: a checksum of md5, for example."""
    NO_EFFECT = "NoEffect"
    """Ours: something is set for the host that makes no difference here; the message tells why and what does."""


class Annotation(enum.StrEnum):
    """Annotations that a host obeys."""

    PAUSED = "baremetalhost.metal3.io/paused"
    """Leave the host alone; any value."""
    DETACHED = "baremetalhost.metal3.io/detached"
    """Take the host from the back end without touching it; any value, or JSON with deleteAction and force."""
    FORCE_DELETE = "baremetalhost.metal3.io/force-delete"
    """Let a host that is being deleted go at once, without its back end; any value. Ours."""
    STATUS = "baremetalhost.metal3.io/status"
    """JSON of the status to start from, for a host that was moved here."""
    REBOOT = "reboot.metal3.io"
    """Reboot once; empty, or JSON with mode and force."""
    RETRY = "baremetalhost.metal3.io/retry"
    """Try at once what failed, as if it had not failed before; any value. Ingot's own, and removed when it was seen."""
    INSPECT = "inspect.metal3.io"
    """`disabled` skips inspection; empty asks for another one."""
    HARDWARE_DETAILS = "inspect.metal3.io/hardwaredetails"
    """JSON of HardwareDetails, to do without inspection."""


HELD_REBOOT_PREFIX: Final = f"{Annotation.REBOOT}/"
"""An annotation `reboot.metal3.io/<key>` keeps the host off until its writer removes it."""

FINALIZER: Final = "baremetalhost.metal3.io"
SECRET_FINALIZER: Final = "baremetalhost.metal3.io/secret"  # noqa: S105 - the name of a finalizer, no secret

SECRET_LABEL: Final = ("environment.metal3.io", "baremetal")
"""Key and value of the label on every Secret that hosts use."""
