"""The BMCs' certificates: one for each address, made when somebody first asks for it.

All of a farm's BMCs share a key that lives as long as the process: what a certificate proves is the address, and a thousand
keys would prove no more. A certificate is made anew when a third of its life is over, or when the installation has another CA.
"""

from __future__ import annotations

import ssl
import tempfile
import time
from collections.abc import Callable
from typing import Final, Self

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ingot.trust import CERTIFICATE_LIFE, Authority

_LIFE: Final = CERTIFICATE_LIFE.total_seconds() / 3


class BmcCertificates:
    """`follow` tells which CA certificate holds now."""

    def __init__(self, authority: Authority, follow: Callable[[], bytes]) -> None:
        self._authority = authority
        self._follow = follow
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._key_bytes = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self._contexts: dict[str, _AtFirstUse] = {}

    def context(self, address: str) -> ssl.SSLContext:
        """For the listeners of this address; it has no certificate before the first handshake."""
        if address not in self._contexts:
            self._contexts[address] = _AtFirstUse.of(lambda: self._made(address), self._follow)
        return self._contexts[address]

    def _made(self, address: str) -> bytes:
        return self._key_bytes + self._authority.certify(self._key.public_key(), address, [address])


class _AtFirstUse(ssl.SSLContext):
    """A context that gets its certificate when the event loop begins the first handshake with it."""

    _make: Callable[[], bytes]
    _follow: Callable[[], bytes]
    _made_for: bytes = b""
    _made_at: float = 0.0

    @classmethod
    def of(cls, make: Callable[[], bytes], follow: Callable[[], bytes]) -> Self:
        context = cls(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Ironic's client opens a connection for every call and resumes none: tickets would be work for nothing.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
        context._make, context._follow = make, follow
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        if self._made_for != self._follow() or time.monotonic() - self._made_at > _LIFE:
            self._load()
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)

    def _load(self) -> None:
        made_for = self._follow()
        with tempfile.NamedTemporaryFile() as file:  # the ssl module reads files only; this one is ours alone
            file.write(self._make())
            file.flush()
            self.load_cert_chain(file.name)
        self._made_for, self._made_at = made_for, time.monotonic()
