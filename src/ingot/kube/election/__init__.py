"""One of several works, the others stand by: leader election by Lease, understood by client-go's contenders.

To read: `contest` has the rules, `leadership` says whether we may act, `elector` takes part, `record` is the Lease.
"""

from ingot.kube.election.contest import Timing
from ingot.kube.election.elector import Elector, own_identity
from ingot.kube.election.leadership import Leadership

__all__ = ["Elector", "Leadership", "Timing", "own_identity"]
