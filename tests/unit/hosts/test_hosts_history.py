"""Changes of state leave their times behind."""

from datetime import UTC, datetime, timedelta

from ingot.api.baremetalhost import BareMetalHostStatus, State
from ingot.hosts.history import entered

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=3)


def test_an_operation_has_a_start_and_when_it_is_left_an_end() -> None:
    status = entered(BareMetalHostStatus(), left=State.NONE, state=State.REGISTERING, at=NOON)
    assert (status.operation_history.register.start, status.operation_history.register.end) == (NOON, None)
    status = entered(status, left=State.REGISTERING, state=State.INSPECTING, at=LATER)
    assert (status.operation_history.register.start, status.operation_history.register.end) == (NOON, LATER)
    assert (status.operation_history.inspect.start, status.operation_history.inspect.end) == (LATER, None)
    assert status.provisioning.state == "inspecting"


def test_a_second_provisioning_starts_its_times_anew() -> None:
    status = BareMetalHostStatus()
    for left, state in [
        (State.AVAILABLE, State.PROVISIONING),
        (State.PROVISIONING, State.PROVISIONED),
        (State.AVAILABLE, State.PROVISIONING),
    ]:
        status = entered(status, left=left, state=state, at=NOON)
    assert status.operation_history.provision.end is None
