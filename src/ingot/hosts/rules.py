"""The rules for what a host may be, asked once more before something is done by it.

The API refuses a host that breaks one, where it asks these rules. A cluster whose webhook is off does not.
"""

from __future__ import annotations

from ingot.api.admission import check
from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.wire import wire


def broken_rules(host: BareMetalHost) -> str:
    """What is wrong with the host as it is written; "" when nothing is.

    Annotations are not judged here: whoever obeys one knows what to do with a value that it should not have.
    """
    kind = BARE_METAL_HOSTS
    errors = check(kind.group, kind.kind, wire(host), None)
    return "; ".join(str(error) for error in errors if not error.path.startswith("metadata.annotations["))
