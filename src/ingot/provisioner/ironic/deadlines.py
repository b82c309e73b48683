"""How long a node may stay in a state before we say that it hangs.

Ironic ends most of its waiting itself; but a conductor that died can leave a node in a transient state for ever. The time
runs from `provision_updated_at`, which Ironic renews with each change of state and each heartbeat of the ramdisk. The times
are longer than Ironic's own, so that where Ironic notices, its word comes first.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.model import Node

_MINUTES: Final = {
    states.VERIFYING: 10,
    states.ADOPTING: 10,
    states.INSPECTING: 20,
    states.INSPECT_WAIT: 35,
    states.CLEANING: 60,
    states.CLEAN_WAIT: 60,
    states.DEPLOYING: 60,
    states.DEPLOY_WAIT: 60,
    states.DELETING: 20,
    states.SERVICING: 60,
    states.SERVICE_WAIT: 60,
    states.RESCUING: 20,
    states.RESCUE_WAIT: 35,
    states.UNRESCUING: 20,
}
_OF_A_LATER_IRONIC: Final = 60


def overdue(node: Node, now: datetime) -> bool:
    """Whether the node is longer in its state than that ever takes."""
    minutes = _minutes(node.provision_state)
    if minutes is None or node.provision_updated_at is None:
        return False
    return now - node.provision_updated_at > timedelta(minutes=minutes)


def _minutes(state: str) -> int | None:
    """None: it stays so until somebody asks for something, or releases it."""
    if state in _MINUTES or state not in states.ALL:
        return _MINUTES.get(state, _OF_A_LATER_IRONIC)
    return None


def overdue_sentence(node: Node) -> str:
    since = (
        node.provision_updated_at.strftime("%H:%M:%S UTC") if node.provision_updated_at else "an unknown time"
    )
    return (
        f"Ironic shows no progress since {since} ({states.sentence(node.provision_state)}); this should take "
        f"less than {_minutes(node.provision_state) or 0} minutes. Look at Ironic's log; restarting Ironic ends what hangs"
    )
