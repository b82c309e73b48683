"""The table of states: who handles which, which of them need the back end, and where a deletion leads.

new ─> registering ─> inspecting ─> preparing ─> available ─> provisioning ─> provisioned
            │                           ^            │              │              │
            └─> externally provisioned  └─────────── │ <── deprovisioning <────────┘
                                                     v
          any of them, when deleted:  [deprovisioning ─>] powering off before delete ─> deleting ─> gone
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from ingot.api.baremetalhost import BareMetalHost, State
from ingot.hosts.host_pass import Pass
from ingot.hosts.leaving.deleting import deleting, powering_off
from ingot.hosts.outcome import Outcome
from ingot.hosts.states.available import available
from ingot.hosts.states.deprovisioning import deprovisioning
from ingot.hosts.states.inspecting import inspecting, looks_anew
from ingot.hosts.states.preparing import preparing
from ingot.hosts.states.provisioned import externally_provisioned, provisioned
from ingot.hosts.states.provisioning import provisioning
from ingot.hosts.states.registering import new, registering

Handler = Callable[[Pass], Awaitable[Outcome]]

HANDLERS: Final[dict[State, Handler]] = {
    State.NONE: new,
    State.UNMANAGED: new,
    State.REGISTERING: registering,
    State.INSPECTING: inspecting,
    State.PREPARING: preparing,
    State.AVAILABLE: available,
    State.PROVISIONING: provisioning,
    State.PROVISIONED: provisioned,
    State.EXTERNALLY_PROVISIONED: externally_provisioned,
    State.DEPROVISIONING: deprovisioning,
    State.POWERING_OFF_BEFORE_DELETE: powering_off,
    State.DELETING: deleting,
}

REGISTERED_FIRST: Final = frozenset(HANDLERS) - {
    State.NONE,
    State.UNMANAGED,
    State.DELETING,
}
"""States in which the back end must know the host before anything else is done."""

WRITTEN_FIRST: Final = frozenset({State.PROVISIONING, State.DEPROVISIONING, State.DELETING})
"""States that destroy something: the host's status says so before the back end is told."""


def written_first(host: BareMetalHost) -> bool:
    """Whether the host's status is written before the first act in the state it is in now."""
    return host.state in WRITTEN_FIRST or (host.state is State.INSPECTING and looks_anew(host))


_STRAIGHT_TO_DELETING: Final = frozenset({State.NONE, State.UNMANAGED, State.REGISTERING})
_DEPROVISIONED_FIRST: Final = frozenset({State.PROVISIONING, State.PROVISIONED})
_ON_THE_WAY_OUT: Final = frozenset({State.DEPROVISIONING, State.POWERING_OFF_BEFORE_DELETE, State.DELETING})


def after_deletion(state: State) -> State | None:
    """Where a host in this state goes when it is deleted; None where it is on its way already."""
    if state in _ON_THE_WAY_OUT:
        return None
    if state in _STRAIGHT_TO_DELETING:
        return State.DELETING
    return State.DEPROVISIONING if state in _DEPROVISIONED_FIRST else State.POWERING_OFF_BEFORE_DELETE
