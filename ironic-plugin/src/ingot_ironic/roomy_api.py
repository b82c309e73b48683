"""Ironic's HTTP server has room for a thousand hosts.

It keeps five connections waiting to be taken, ten idle ones open, and works on ten at a time. With more callers than that a new
connection waits a second or three until the kernel tries it again, most requests begin with a TLS handshake (in the one thread
that takes connections), and quick questions wait behind ten slow orders. Threads that wait cost next to nothing.
"""

from __future__ import annotations

import functools
from typing import Any, Final

LISTENING: Final = {"request_queue_size": 128, "keep_alive_conn_limit": 128}
THREADS: Final = 64
"""More than all connections that the operator and the front server open: what only asks how Ironic is gets one at once."""


def install() -> None:
    """Have every HTTP server that Ironic starts be roomy. Raises when it uses another one."""
    from ironic.common import wsgi_service

    server = wsgi_service.wsgi.Server
    missing = [name for name in LISTENING if not hasattr(server, name)]
    if missing:
        raise AttributeError(f"{server.__name__} has no {' or '.join(missing)}")
    hook(wsgi_service.BaseWSGIService)


def hook(service_class: Any) -> None:
    original = service_class.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        for name, value in LISTENING.items():
            setattr(self.server, name, value)
        self.server.requests.min = max(self.server.requests.min, THREADS)

    service_class.__init__ = __init__
