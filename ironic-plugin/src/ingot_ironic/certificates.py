"""A renewed certificate is served without a restart.

Ironic reads the certificate of its API once. Its own way to a new one, SIGHUP, stops the conductor with all that it is doing.
Instead a thread looks at the files every few seconds and, when they changed and fit each other, gives the listener a new TLS
context: connections that are open stay, new ones see the new certificate. Only the process that serves does this: the first
one that the master forks.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import ssl
import threading
import time
import weakref
from typing import Any, Final

LOG: Final = logging.getLogger(__name__)

EVERY: Final = 10.0
_NEEDED: Final = ("certificate", "private_key", "certificate_chain", "ciphers")


class Follower:
    """The TLS adapters of this process, and the thread that looks after their certificates."""

    def __init__(self, every: float = EVERY) -> None:
        self._every = every
        self._adapters: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._running = False

    def add(self, adapter: Any) -> None:
        self._adapters[adapter] = _state_of(adapter)

    def start(self) -> None:
        """Begin to look, when that has not happened yet in this process."""
        if not self._running:
            self._running = True
            threading.Thread(target=self._run, name="ingot-certificates", daemon=True).start()

    def look(self) -> None:
        for adapter, seen in list(self._adapters.items()):
            state = _state_of(adapter)
            if state != seen and state is not None:
                self._take_up(adapter, state)

    def _take_up(self, adapter: Any, state: Any) -> None:
        try:
            adapter.context = _context_for(adapter)
        except (
            OSError,
            ValueError,
        ) as error:  # also ssl.SSLError: being replaced right now; the next look tells
            LOG.warning("The renewed certificate %s cannot be used yet: %s", adapter.certificate, error)
            return
        self._adapters[adapter] = state
        LOG.warning("The renewed certificate %s is served from now on.", adapter.certificate)

    def _run(self) -> None:
        while True:
            time.sleep(self._every)
            try:
                self.look()
            except Exception as error:  # the thread must outlive whatever a library comes up with
                LOG.warning("Looking for renewed certificates failed: %s", type(error).__name__)


def install() -> None:
    """Follow the certificates of every listener that is made from now on. Raises when they are made in another way."""
    from cheroot.ssl import builtin

    follower = Follower()
    hook(builtin.BuiltinSSLAdapter, follower)
    os.register_at_fork(after_in_child=follower.start)


def hook(adapter_class: Any, follower: Follower) -> None:
    original = adapter_class.__init__
    known = inspect.signature(original).parameters
    missing = [name for name in _NEEDED if name not in known]
    if missing or not isinstance(adapter_class.context, property) or adapter_class.context.fset is None:
        raise AttributeError(
            f"{adapter_class.__name__} does not have {', '.join(missing) or 'a context to replace'}"
        )

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        follower.add(self)

    adapter_class.__init__ = __init__


def _state_of(adapter: Any) -> tuple[tuple[int, int], ...] | None:
    """What changes when a file is replaced; None while one of them is missing."""
    try:
        return tuple(
            (s.st_ino, s.st_mtime_ns) for s in map(os.stat, (adapter.certificate, adapter.private_key))
        )
    except OSError:
        return None


def _context_for(adapter: Any) -> ssl.SSLContext:
    fresh = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=adapter.certificate_chain)
    fresh.load_cert_chain(adapter.certificate, adapter.private_key)
    if adapter.ciphers is not None:
        fresh.set_ciphers(adapter.ciphers)
    fresh.minimum_version = adapter.context.minimum_version
    return fresh
