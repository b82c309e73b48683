"""A worker ends with its master.

Ironic is a master and a worker forked from it. When the master is killed, the worker goes on for up to a minute: it answers on
the API's port and drives hosts, beside the Ironic that is started in its place. The kernel can end it at once (PR_SET_PDEATHSIG).
Only direct children of the master are bound this way.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1


def install() -> None:
    """Bind every worker that this process, the master, forks from now on. Raises where the kernel has no such thing."""
    prctl: Callable[..., Any] = ctypes.CDLL(None, use_errno=True).prctl
    master = os.getpid()
    in_master = True

    def bind() -> None:
        nonlocal in_master
        if not in_master:
            return
        in_master = False  # in this copy of the memory: what the worker forks is not bound
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != master:  # it died before the kernel knew what to do then
            os.kill(os.getpid(), signal.SIGKILL)

    os.register_at_fork(after_in_child=bind)
