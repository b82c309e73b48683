"""Ironic's words for the state of a node, sorted by what they mean to us, and what a person should read instead of them.

Pure tables. A state that is not in any of them (another Ironic version may bring one) counts as busy: we wait, say its name,
and touch nothing.
"""

from __future__ import annotations

from typing import Final

ENROLL: Final = "enroll"
VERIFYING: Final = "verifying"
MANAGEABLE: Final = "manageable"
AVAILABLE: Final = "available"
ACTIVE: Final = "active"
INSPECTING: Final = "inspecting"
INSPECT_WAIT: Final = "inspect wait"
INSPECT_FAILED: Final = "inspect failed"
CLEANING: Final = "cleaning"
CLEAN_WAIT: Final = "clean wait"
CLEAN_HOLD: Final = "clean hold"
CLEAN_FAILED: Final = "clean failed"
DEPLOYING: Final = "deploying"
# Ironic calls it "deploy wait" in its documents and this in its API.
DEPLOY_WAIT: Final = "wait call-back"
DEPLOY_HOLD: Final = "deploy hold"
DEPLOY_FAILED: Final = "deploy failed"
DELETING: Final = "deleting"
ERROR: Final = "error"
ADOPTING: Final = "adopting"
ADOPT_FAILED: Final = "adopt failed"
RESCUE: Final = "rescue"
RESCUE_WAIT: Final = "rescue wait"
RESCUE_FAILED: Final = "rescue failed"
RESCUING: Final = "rescuing"
UNRESCUING: Final = "unrescuing"
UNRESCUE_FAILED: Final = "unrescue failed"
SERVICING: Final = "servicing"
SERVICE_WAIT: Final = "service wait"
SERVICE_HOLD: Final = "service hold"
SERVICE_FAILED: Final = "service failed"

FAILED: Final = frozenset(
    {
        INSPECT_FAILED,
        CLEAN_FAILED,
        DEPLOY_FAILED,
        ERROR,
        ADOPT_FAILED,
        RESCUE_FAILED,
        UNRESCUE_FAILED,
        SERVICE_FAILED,
    }
)
STABLE: Final = FAILED | {ENROLL, MANAGEABLE, AVAILABLE, ACTIVE, RESCUE}
"""A node stays here until somebody asks for something. All else is busy."""

UPDATABLE: Final = STABLE | {INSPECT_WAIT, VERIFYING, SERVICE_HOLD}
"""Ironic takes changes of the node's record here, and answers 409 elsewhere."""

HOLDS_INSTANCE: Final = frozenset(
    {
        ACTIVE,
        DEPLOYING,
        DEPLOY_WAIT,
        DEPLOY_HOLD,
        DEPLOY_FAILED,
        DELETING,
        ERROR,
        ADOPTING,
        ADOPT_FAILED,
        RESCUE,
        RESCUE_WAIT,
        RESCUE_FAILED,
        RESCUING,
        UNRESCUING,
        UNRESCUE_FAILED,
        SERVICING,
        SERVICE_WAIT,
        SERVICE_HOLD,
        SERVICE_FAILED,
    }
)
"""An operating system is, may be, or is about to be on the disk: what an undeploy would destroy.

`deploy failed` and `error` belong here: the disk can hold a working system (a rebuild that failed before it wrote anything,
an undeploy that failed before it wiped anything), and a refusal too many is repaired by a sentence, a wipe too many by nothing.
"""

UNDEPLOYABLE: Final = frozenset(
    {
        ACTIVE,
        DEPLOY_WAIT,
        DEPLOY_FAILED,
        ERROR,
        RESCUE,
        RESCUE_WAIT,
        RESCUE_FAILED,
        UNRESCUE_FAILED,
        SERVICE_WAIT,
        SERVICE_FAILED,
    }
)
"""States that take the verb `deleted`."""

HOLDS: Final = frozenset({CLEAN_HOLD, DEPLOY_HOLD, SERVICE_HOLD})
"""Somebody asked Ironic past Ingot to stop here. Nobody works on such a node; it stays so until it is released or forgotten."""

IN_SERVICE: Final = frozenset({SERVICING, SERVICE_WAIT, SERVICE_HOLD, SERVICE_FAILED})

ALL: Final = (
    ENROLL,
    VERIFYING,
    MANAGEABLE,
    INSPECTING,
    INSPECT_WAIT,
    INSPECT_FAILED,
    CLEANING,
    CLEAN_WAIT,
    CLEAN_HOLD,
    CLEAN_FAILED,
    AVAILABLE,
    DEPLOYING,
    DEPLOY_WAIT,
    DEPLOY_HOLD,
    DEPLOY_FAILED,
    ACTIVE,
    ADOPTING,
    ADOPT_FAILED,
    SERVICING,
    SERVICE_WAIT,
    SERVICE_HOLD,
    SERVICE_FAILED,
    DELETING,
    ERROR,
    RESCUING,
    RESCUE_WAIT,
    RESCUE,
    RESCUE_FAILED,
    UNRESCUING,
    UNRESCUE_FAILED,
)
"""In the order in which a host comes through them."""

POWER_ON: Final = "power on"
POWER_OFF: Final = "power off"

CLEAN_FAULT: Final = "clean failure"
POWER_FAULT: Final = "power failure"

PREPARING: Final = "changing RAID volumes or firmware"
"""What a person reads while Ironic cleans by our own steps."""

_UNTIL_RELEASED: Final = (
    "is on hold, which somebody asked Ironic for past Ingot. It goes on when it is released there; to give it up instead and "
    "have the host registered anew: `ingot host detach --force`, then `ingot host attach`. The machine of a host that is not "
    "provisioned counts as empty then"
)

_SENTENCES: Final = {
    ENROLL: "known to Ironic, not yet taken under management",
    VERIFYING: "checking that the BMC answers and takes the credentials",
    MANAGEABLE: "under management",
    AVAILABLE: "clean and ready for an image",
    ACTIVE: "running what was deployed",
    INSPECTING: "inspecting the hardware",
    INSPECT_WAIT: "inspecting the hardware",
    CLEANING: "cleaning the disks",
    CLEAN_WAIT: "cleaning the disks",
    CLEAN_HOLD: f"cleaning {_UNTIL_RELEASED}",
    DEPLOYING: "deploying the image",
    DEPLOY_WAIT: "deploying the image",
    DEPLOY_HOLD: f"the deployment {_UNTIL_RELEASED}",
    DELETING: "stopping and removing what was deployed",
    ADOPTING: "taking over the running host",
    RESCUING: "starting the rescue ramdisk",
    RESCUE_WAIT: "starting the rescue ramdisk",
    UNRESCUING: "leaving the rescue ramdisk",
    SERVICING: "changing the firmware; the system is started again afterwards",
    SERVICE_WAIT: "changing the firmware; the system is started again afterwards",
    SERVICE_HOLD: f"servicing {_UNTIL_RELEASED}",
}


def sentence(state: str) -> str:
    """What a person reads for a state."""
    return _SENTENCES.get(state, f"Ironic shows the state {state!r}")


def waits_for_ramdisk(state: str) -> bool:
    return state in (INSPECT_WAIT, CLEAN_WAIT, DEPLOY_WAIT, RESCUE_WAIT, SERVICE_WAIT)


def is_busy(state: str) -> bool:
    return state not in STABLE
