"""The input firewall: everything that a user supplies passes here before Ironic sees it.

Most holes that were ever found in Ironic and its agent have one cause: a string of a user's becomes a path, a word of a shell,
a URL that is called with somebody's password, or a line of a boot script. So each sort of value has a module here, with a narrow
rule. What is an attack is refused; what is merely weak is taken, as Metal3 takes it, unless the site's `Policy` forbids it.

`Firewall` is the door: one method for each order, which answers with what is refused, as the host's error message says it, or
with None. The rules themselves raise `Rejected`. Where admission can hold a rule as well, it is in `ingot.api.inputs` and asked
from both sides; here it counts, because admission may be off.
"""

from ingot.provisioner.ironic.firewall.door import Firewall
from ingot.provisioner.ironic.firewall.policy import Policy
from ingot.provisioner.ironic.firewall.rejection import Rejected

__all__ = ["Firewall", "Policy", "Rejected"]
