"""Every verb, with the rules by which it deals with a node in whatever state.

The one place that knows them all: what a host asks for (a verb) and how Ironic has its node (a state) make a pair, and each pair
has an answer here. `pairs_page` writes them down for people, the tests walk through them.
"""

from __future__ import annotations

from typing import Final

from ingot.provisioner.ironic import states
from ingot.provisioner.ironic.adopt import ADOPT
from ingot.provisioner.ironic.data_image import DATA_IMAGE
from ingot.provisioner.ironic.delete import DELETE
from ingot.provisioner.ironic.deprovision import DEPROVISION
from ingot.provisioner.ironic.detach import DETACH
from ingot.provisioner.ironic.inspect import INSPECT
from ingot.provisioner.ironic.power import SWITCH_OFF, SWITCH_ON
from ingot.provisioner.ironic.prepare import PREPARE
from ingot.provisioner.ironic.provision import PROVISION
from ingot.provisioner.ironic.register import REGISTER
from ingot.provisioner.ironic.rules import Rule, Verb
from ingot.provisioner.ironic.service import SERVICE
from ingot.provisioner.ironic.subscriptions import SUBSCRIBE

VERBS: Final[tuple[Verb, ...]] = (
    REGISTER,
    INSPECT,
    PREPARE,
    PROVISION,
    ADOPT,
    SERVICE,
    DEPROVISION,
    SWITCH_ON,
    SWITCH_OFF,
    DATA_IMAGE,
    SUBSCRIBE,
    DETACH,
    DELETE,
)

ASKED_IN: Final[dict[str, tuple[Verb, ...]]] = {
    "registering": (REGISTER,),
    "inspecting": (REGISTER, INSPECT),
    "preparing": (REGISTER, PREPARE),
    "available": (REGISTER, SWITCH_ON, SWITCH_OFF),
    "provisioning": (REGISTER, PROVISION),
    "provisioned": (REGISTER, ADOPT, SERVICE, SWITCH_ON, SWITCH_OFF),
    "externally provisioned": (REGISTER, ADOPT, SERVICE, SWITCH_ON, SWITCH_OFF),
    "deprovisioning": (REGISTER, DEPROVISION),
    "powering off before delete": (REGISTER, SWITCH_OFF),
    "deleting": (DELETE,),
}
"""What a host asks for in each of its states, in this order. Data images, subscriptions and detaching are asked for
in any."""

LATER: Final = "a state of a later Ironic"


def applicable(verb: Verb, state: str) -> tuple[Rule, ...]:
    """The rules that can decide for a node in this state, up to the one that always does."""
    found: list[Rule] = []
    for rule in verb.rules:
        if rule.concerns(state):
            found.append(rule)
            if rule.always:
                break
    return tuple(found)


def all_states() -> tuple[str, ...]:
    """Every state that a node can be in, and one that only a later Ironic knows."""
    return (*states.ALL, LATER)
