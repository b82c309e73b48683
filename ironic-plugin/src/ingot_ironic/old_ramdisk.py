"""Whether the ramdisk that ran before a reboot runs still, which tells that the machine was not rebooted.

Ironic forgets an agent before it reboots the machine. Where to find it, and the fingerprint of its certificate, are noted with
the node in the same save. Each start of a ramdisk makes a certificate of its own, and Ironic knows it from an agent that had the
right token: who proves to have its key is that ramdisk, and a note of an earlier reboot fits nobody. Nothing is sent to whoever
answers, and the token is not kept. An agent without a certificate proves nothing.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

LOG: Final = logging.getLogger(__name__)

NOTE: Final = "ingot_rebooted_from"
PATIENCE: Final = 10.0
"""Seconds until an agent that is there has answered."""


def note(node: Any) -> None:
    """Saved by who comes next. Where no agent is known, an earlier note stays: that reboot may not have come to its end."""
    url = node.driver_internal_info.get("agent_url")
    certificate = node.driver_internal_info.get("agent_verify_ca")
    if not url or not certificate:
        return
    try:
        kept = _fingerprint(ssl.PEM_cert_to_DER_cert(Path(certificate).read_text()))
    except (OSError, ValueError) as error:  # the reboot is what matters; nobody can be asked then
        LOG.warning("The certificate of node %s cannot be noted (%s).", node.uuid, type(error).__name__)
        return
    node.set_driver_internal_info(NOTE, {"url": url, "certificate": kept})


def runs_still(node: Any, *, patience: float = PATIENCE) -> bool:
    """Whether it answers. Where nothing was noted, nothing is known."""
    noted = node.driver_internal_info.get(NOTE)
    if not noted:
        return False
    try:
        return bool(_who_answers(noted["url"], patience) == noted["certificate"])
    except (OSError, ValueError):  # nobody, or nobody who speaks TLS there
        return False


def _who_answers(url: str, patience: float) -> str:
    where = urlsplit(url)
    # The certificate is compared with the one that is known. There is no CA to ask: an agent signs its own.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection((where.hostname, where.port), patience) as line,
        tls.wrap_socket(line) as agent,
    ):
        return _fingerprint(agent.getpeercert(binary_form=True) or b"")


def _fingerprint(certificate: bytes) -> str:
    return hashlib.sha256(certificate).hexdigest()
