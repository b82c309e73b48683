"""Giving up what waits for a ramdisk that may never come, so that a node can be forgotten.

Pure. Nobody works on a node that waits, so it can be ended: by the verb `abort` where that leaves the machine alone, otherwise
by dropping the record as it is, because every other verb would stop the machine or clean its disks. So would `abort` for a
deployment that is on hold: Ironic takes down what was deployed. Cleaning and servicing on hold it does not end at all: Ironic
notes that it is to end after the step, and that step is the hold.
"""

from __future__ import annotations

from typing import Final

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.decisions import Step
from ingot.provisioner.ironic.rules import Fact, on

_ABORTED: Final = frozenset(
    {
        states.INSPECT_WAIT,
        states.CLEAN_WAIT,
        states.SERVICE_WAIT,
    }
)
_OTHERS: Final = states.HOLDS | {states.DEPLOY_WAIT, states.RESCUE_WAIT}
CAN_BE_GIVEN_UP: Final = _ABORTED | _OTHERS

GIVE_UP: Final = (
    on(_ABORTED, then=Step.ABORT),
    on(states.DEPLOY_WAIT, when=Fact.ABORTS_DEPLOYMENTS, then=Step.ABORT),
    on(_OTHERS, then=Step.DELETE),
)
"""How such a node is ended."""
