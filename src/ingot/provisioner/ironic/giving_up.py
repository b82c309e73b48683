"""Giving up what waits for a ramdisk that may never come, so that a node can be forgotten.

Pure. Nobody works on a node that waits, so it can be ended: by the verb `abort` where Ironic has one for it, and otherwise by
dropping the record as it is, because every other verb would stop the machine or clean its disks.
"""

from __future__ import annotations

from typing import Final

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.decisions import Step
from ingot.provisioner.ironic.model import Node

_ABORTED: Final = frozenset(
    {
        states.INSPECT_WAIT,
        states.CLEAN_WAIT,
        states.CLEAN_HOLD,
        states.SERVICE_WAIT,
        states.SERVICE_HOLD,
    }
)
_DEPLOYS: Final = frozenset({states.DEPLOY_WAIT, states.DEPLOY_HOLD})
_OTHERS: Final = frozenset({states.RESCUE_WAIT})


def can_be_given_up(node: Node) -> bool:
    return node.provision_state in _ABORTED | _DEPLOYS | _OTHERS


def give_up(node: Node, *, aborts_deployments: bool) -> Step:
    """How such a node is ended. `aborts_deployments`: this Ironic can end a deployment without cleaning up behind it."""
    aborted = _ABORTED | _DEPLOYS if aborts_deployments else _ABORTED
    return Step.ABORT if node.provision_state in aborted else Step.DELETE
