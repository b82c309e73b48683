"""An IPMI call that failed says why.

Ironic tells of such a call only which it was; what ipmitool printed, from which one sees a wrong password or a BMC that is not
there, stays in Ironic's log. Here it is part of the error, and so of what the node's user reads. Ironic has to be told to run
ipmitool with `-v` (`[ipmi] debug`), or it prints the same of everything; passwords it does not print.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

NOISE: Final = (
    "Loading IANA PEN Registry",
    "Running Get ",
    "Invalid completion code received",
    "Discovered IPMB address",
    # Of old BMCs, which go on without.
    "Unable to Get Channel Cipher Suites",
    # Said whatever went wrong before it.
    "Error: Unable to establish IPMI v2 / RMCP+ session",
)
LONGEST: Final = 200


def install() -> None:
    """Have the error say what ipmitool did. Raises when Ironic has another one."""
    from ironic.common import exception

    hook(exception.IPMIFailure)


def hook(failure: Any) -> None:
    if "%(cmd)s" not in failure._msg_fmt:
        raise AttributeError("the error of an IPMI call does not name the command")
    original = failure.__init__

    @functools.wraps(original)
    def __init__(self: Any, message: str | None = None, **kwargs: Any) -> None:
        # Ironic raises it while it handles the error of the program.
        printed = getattr(sys.exception(), "stderr", None)
        if not message and "cmd" in kwargs and isinstance(printed, str) and (why := telling(printed)):
            message = f"{failure._msg_fmt % kwargs} ipmitool says: {why}"
        original(self, message, **kwargs)

    failure.__init__ = __init__


def telling(printed: str) -> str:
    """The lines that are about this failure, in one."""
    lines = (line.strip(" >") for line in printed.splitlines())
    return "; ".join(dict.fromkeys(line for line in lines if line and not line.startswith(NOISE)))[:LONGEST]
