"""A Machine or a HostClaim in words: which host it has or why it has none, what comes next, and what a person should do. Pure.

Over the objects alone, so that `ingot explain` and whoever else shows them to people say the same, on any API.

outlook    what is said of both
machine    of a Machine: what is wrong with it, else the count of the hosts that were passed over
claim      of a claim: the sentence of its conditions
"""

from ingot.machines.explaining.claim import explain_claim
from ingot.machines.explaining.machine import explain_machine
from ingot.machines.explaining.outlook import NOTHING_TO_DO, ClaimExplanation

__all__ = ["NOTHING_TO_DO", "ClaimExplanation", "explain_claim", "explain_machine"]
