"""What a change of state leaves behind: the times in `operationHistory`, and Events.

Pure. Every state that a pass goes through is recorded, also when the host stays in it for no time at all.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from msgspec.structs import replace

from ingot.api.baremetalhost import (
    BareMetalHostStatus,
    ErrorType,
    EventReason,
    OperationHistory,
    OperationTimes,
    State,
)

Operation = Literal["register", "inspect", "provision", "deprovision"]

OPERATION: Final[dict[State, Operation]] = {
    State.REGISTERING: "register",
    State.INSPECTING: "inspect",
    State.PROVISIONING: "provision",
    State.DEPROVISIONING: "deprovision",
}

ERROR_EVENT: Final = {
    ErrorType.REGISTRATION: EventReason.REGISTRATION_ERROR,
    ErrorType.PROVISIONED_REGISTRATION: EventReason.PROVISIONED_REGISTRATION_ERROR,
    ErrorType.INSPECTION: EventReason.INSPECTION_ERROR,
    ErrorType.PREPARATION: EventReason.PREPARATION_ERROR,
    ErrorType.PROVISIONING: EventReason.PROVISIONING_ERROR,
    ErrorType.POWER_MANAGEMENT: EventReason.POWER_MANAGEMENT_ERROR,
    ErrorType.DETACH: EventReason.DETACH_ERROR,
    ErrorType.SERVICING: EventReason.SERVICING_ERROR,
}


def entered(status: BareMetalHostStatus, *, left: State, state: State, at: datetime) -> BareMetalHostStatus:
    """The status of a host that went from one state into another."""
    history = status.operation_history
    if (done := OPERATION.get(left)) is not None:
        history = _with(history, done, replace(getattr(history, done), end=at))
    if (begun := OPERATION.get(state)) is not None:
        history = _with(history, begun, OperationTimes(start=at))
    return replace(
        status, operation_history=history, provisioning=replace(status.provisioning, state=str(state))
    )


def _with(history: OperationHistory, operation: Operation, times: OperationTimes) -> OperationHistory:
    match operation:
        case "register":
            return replace(history, register=times)
        case "inspect":
            return replace(history, inspect=times)
        case "provision":
            return replace(history, provision=times)
        case "deprovision":
            return replace(history, deprovision=times)
