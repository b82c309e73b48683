"""A host's conditions, worked out from its state.

Pure. Metal3's clients read these; the types, reasons and their combinations are its own. What Ingot adds are two messages: that
of `Progressing` is the sentence that the state's handler gave for why the host is where it is, that of `Ready` is the error, if
there is one, and what comes next, when, and what a person should do.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from msgspec.structs import replace

from ingot.api.baremetalhost import (
    BareMetalHostStatus,
    ConditionReason,
    ConditionType,
    OperationalStatus,
    State,
)
from ingot.api.meta import Condition, ConditionStatus
from ingot.provisioner import Vitals

R = ConditionReason
C = ConditionType


class _Verdict(NamedTuple):
    status: ConditionStatus
    reason: ConditionReason


_PROGRESS: Final = {
    State.REGISTERING: R.REGISTERING,
    State.INSPECTING: R.INSPECTING,
    State.PREPARING: R.PREPARING,
    State.PROVISIONING: R.PROVISIONING,
    State.DEPROVISIONING: R.DEPROVISIONING,
    State.POWERING_OFF_BEFORE_DELETE: R.POWERING_OFF_BEFORE_DELETE,
    State.DELETING: R.DELETING,
}
_PROVISIONED: Final = frozenset({State.PROVISIONED, State.EXTERNALLY_PROVISIONED})
_NOT_MANAGED: Final = frozenset({State.NONE, State.UNMANAGED})
_NO_POWER_FAULT: Final = _NOT_MANAGED | {State.REGISTERING, State.DELETING}
_HEALTH: Final = {
    "OK": _Verdict("True", R.HEALTHY),
    "Warning": _Verdict("False", R.WARNING),
    "Critical": _Verdict("False", R.CRITICAL_ERROR),
}


def conditions(
    status: BareMetalHostStatus,
    state: State,
    *,
    why: str,
    outlook: str,
    vitals: Vitals | None,
    generation: int,
    at: datetime,
) -> list[Condition]:
    """The conditions for this status, in place of those it has. Conditions of others are kept as they are."""
    messages = {C.READY: f"{status.error_message} {outlook}".lstrip(), C.PROGRESSING: why}
    before = {condition.type: condition for condition in status.conditions}
    verdicts: dict[C, _Verdict] = {
        C.MANAGEABLE: _manageable(status, state, vitals, before.get(C.MANAGEABLE)),
        C.AVAILABLE_FOR_PROVISIONING: _available(state),
        C.PROVISIONED: _provisioned(state),
        C.READY: _ready(status, state),
        C.PROGRESSING: _progressing(status, state),
    }
    health = _health(vitals, known=C.HEALTHY in before)
    if health is not None:
        verdicts[C.HEALTHY] = health
    made = [
        _condition(kind, verdict, messages.get(kind, ""), before.get(kind), generation, at)
        for kind, verdict in verdicts.items()
    ]
    return made + [condition for kind, condition in before.items() if kind not in verdicts]


def _condition(
    kind: C,
    verdict: _Verdict,
    message: str,
    before: Condition | None,
    generation: int,
    at: datetime,
) -> Condition:
    same = before is not None and before.status == verdict.status
    return Condition(
        type=str(kind),
        status=verdict.status,
        reason=str(verdict.reason),
        message=message,
        observed_generation=generation,
        last_transition_time=before.last_transition_time if same and before is not None else at,
    )


def _manageable(
    status: BareMetalHostStatus, state: State, vitals: Vitals | None, before: Condition | None
) -> _Verdict:
    if state in _NOT_MANAGED:
        return _Verdict("False", R.NOT_MANAGED)
    if state is State.REGISTERING:
        failed = status.operational_status is OperationalStatus.ERROR
        return _Verdict("False", R.REGISTRATION_FAILED if failed else R.REGISTERING)
    # A pass that did not get as far as looking at the machine does not know better than the one before it.
    lost = vitals.power_failure if vitals else before is not None and before.reason == R.POWER_FAILURE
    detached = status.operational_status is OperationalStatus.DETACHED
    if lost and not detached and state not in _NO_POWER_FAULT:
        return _Verdict("False", R.POWER_FAILURE)
    return _Verdict("True", R.MANAGEABLE)


def _available(state: State) -> _Verdict:
    if state is State.AVAILABLE:
        return _Verdict("True", R.AVAILABLE)
    return _Verdict("False", R.NOT_AVAILABLE)


def _provisioned(state: State) -> _Verdict:
    if state in _PROVISIONED:
        return _Verdict("True", R.PROVISIONED)
    return _Verdict("False", R.NOT_PROVISIONED)


def _ready(status: BareMetalHostStatus, state: State) -> _Verdict:
    if status.operational_status is OperationalStatus.DETACHED:
        return _Verdict("False", R.DETACHED)
    if status.operational_status is OperationalStatus.ERROR:
        return _Verdict("False", R.ERROR)
    if status.operational_status is OperationalStatus.SERVICING:
        return _Verdict("False", R.SERVICING)
    return _provisioned(state)


def _progressing(status: BareMetalHostStatus, state: State) -> _Verdict:
    if status.operational_status is OperationalStatus.DETACHED:
        return _Verdict("False", R.DETACHED)
    reason = _PROGRESS.get(state)
    return _Verdict("True", reason) if reason else _Verdict("False", R.NOT_PROGRESSING)


def _health(vitals: Vitals | None, *, known: bool) -> _Verdict | None:
    if vitals is not None and vitals.health in _HEALTH:
        return _HEALTH[vitals.health]
    return None if known else _Verdict("Unknown", R.UNKNOWN)


def with_conditions(status: BareMetalHostStatus, made: list[Condition]) -> BareMetalHostStatus:
    """The status with these conditions; the very same one where they do not differ."""
    return status if made == status.conditions else replace(status, conditions=made)
