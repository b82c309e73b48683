"""Where Ironic leads a node: what its own state machine does with what it is asked, and by itself.

Pure tables, for those who want to know where a decision leads: the page `docs/node-states.md` and the tests that walk through all
pairs. A test compares them with the state machine of the Ironic that is installed.
"""

from __future__ import annotations

from typing import Final

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.decisions import Step

GONE: Final = "gone"
"""Ironic has no record any more; registering makes one, which is in `enroll` at first."""

BY_ITSELF: Final[dict[str, frozenset[str]]] = {
    states.VERIFYING: frozenset({states.MANAGEABLE, states.ENROLL}),
    states.INSPECTING: frozenset({states.MANAGEABLE, states.INSPECT_FAILED, states.INSPECT_WAIT}),
    states.INSPECT_WAIT: frozenset({states.MANAGEABLE, states.INSPECT_FAILED, states.INSPECTING}),
    states.CLEANING: frozenset(
        {states.AVAILABLE, states.MANAGEABLE, states.CLEAN_FAILED, states.CLEAN_WAIT, states.CLEAN_HOLD}
    ),
    states.CLEAN_WAIT: frozenset({states.CLEANING, states.CLEAN_FAILED, states.CLEAN_HOLD}),
    states.DEPLOYING: frozenset(
        {states.ACTIVE, states.DEPLOY_FAILED, states.DEPLOY_WAIT, states.DEPLOY_HOLD}
    ),
    states.DEPLOY_WAIT: frozenset({states.DEPLOYING, states.DEPLOY_FAILED, states.DEPLOY_HOLD}),
    states.DELETING: frozenset({states.CLEANING, states.ERROR}),
    states.ADOPTING: frozenset({states.ACTIVE, states.ADOPT_FAILED}),
    states.RESCUING: frozenset({states.RESCUE, states.RESCUE_FAILED, states.RESCUE_WAIT}),
    states.RESCUE_WAIT: frozenset({states.RESCUING, states.RESCUE_FAILED}),
    states.UNRESCUING: frozenset({states.ACTIVE, states.UNRESCUE_FAILED}),
    states.SERVICING: frozenset(
        {states.ACTIVE, states.SERVICE_FAILED, states.SERVICE_WAIT, states.SERVICE_HOLD}
    ),
    states.SERVICE_WAIT: frozenset({states.SERVICING, states.SERVICE_FAILED, states.SERVICE_HOLD}),
}
"""What becomes of a node that Ironic works on. A node on hold stays there until a person releases it."""

ON_REQUEST: Final[dict[tuple[Step, str], str]] = {
    (Step.MANAGE, states.ENROLL): states.VERIFYING,
    (Step.MANAGE, states.AVAILABLE): states.MANAGEABLE,
    (Step.MANAGE, states.CLEAN_FAILED): states.MANAGEABLE,
    (Step.MANAGE, states.INSPECT_FAILED): states.MANAGEABLE,
    (Step.MANAGE, states.ADOPT_FAILED): states.MANAGEABLE,
    (Step.GO_ON, states.CLEAN_FAILED): states.MANAGEABLE,
    (Step.PROVIDE, states.MANAGEABLE): states.CLEANING,
    (Step.CLEAN, states.MANAGEABLE): states.CLEANING,
    (Step.INSPECT, states.MANAGEABLE): states.INSPECTING,
    (Step.INSPECT, states.INSPECT_FAILED): states.INSPECTING,
    (Step.ADOPT, states.MANAGEABLE): states.ADOPTING,
    (Step.ADOPT, states.ADOPT_FAILED): states.ADOPTING,
    (Step.DEPLOY, states.AVAILABLE): states.DEPLOYING,
    (Step.DEPLOY, states.DEPLOY_FAILED): states.DEPLOYING,
    (Step.SERVICE, states.ACTIVE): states.SERVICING,
    (Step.SERVICE, states.SERVICE_FAILED): states.SERVICING,
    (Step.ABORT, states.INSPECT_WAIT): states.INSPECT_FAILED,
    (Step.ABORT, states.CLEAN_WAIT): states.CLEAN_FAILED,
    (Step.ABORT, states.DEPLOY_WAIT): states.DEPLOY_FAILED,
    (Step.ABORT, states.SERVICE_WAIT): states.SERVICE_FAILED,
    (Step.ABORT, states.SERVICE_FAILED): states.ACTIVE,
    **{(Step.UNDEPLOY, state): states.DELETING for state in states.UNDEPLOYABLE},
}
"""What a request makes of a node at once."""

REQUESTS: Final = {
    Step.MANAGE: "manage",
    Step.GO_ON: "manage",
    Step.PROVIDE: "provide",
    Step.CLEAN: "clean",
    Step.INSPECT: "inspect",
    Step.ADOPT: "adopt",
    Step.DEPLOY: "deploy",
    Step.SERVICE: "service",
    Step.ABORT: "abort",
    Step.UNDEPLOY: "delete",
}
"""What Ironic's state machine calls it."""

STAYS: Final = frozenset(Step) - set(REQUESTS) - {Step.DELETE, Step.FORGET}
"""Steps that change the power, the drive or a note, and leave the state as it is."""


def leads_to(step: Step, state: str) -> str | None:
    """The state after the step; None where Ironic refuses it."""
    if step in (Step.DELETE, Step.FORGET):
        return GONE
    return state if step in STAYS else ON_REQUEST.get((step, state))
