"""Whom we believe, and how we show our certificate: from PEM to TLS contexts.

Contexts are made anew when what they are made of changes: they cannot forget an authority, and connections that were made with an
old certificate must not be used for a new identity.
"""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ingot.kube.content import Content
from ingot.kube.errors import CredentialError
from ingot.kube.identity import ClientCertificate


@dataclass(frozen=True, slots=True)
class Trust:
    """Which servers are believed: those of one authority, or without one, those that this machine trusts anyway."""

    authority: Content | None = None
    verify: bool = True

    def read(self) -> bytes:
        return self.authority.read() if self.authority else b""

    def look_again(self) -> bool:
        return self.authority is not None and self.authority.look_again()


def client_context(trust: Trust, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """The context of new connections."""
    try:
        context = ssl.create_default_context(cadata=trust.read().decode("ascii") or None)
    except (ssl.SSLError, ValueError) as error:
        raise CredentialError(f"the certificate authority cannot be used: {error}") from error
    if not trust.verify:
        # The user's explicit wish in their own file; kubectl does the same.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load(context, certificate)
    return context


def _load(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    try:
        with tempfile.TemporaryDirectory() as folder:
            # The ssl module reads certificates from files only; this folder is ours alone and gone in a moment.
            chain, key = Path(folder) / "chain", Path(folder) / "key"
            chain.write_bytes(certificate.chain)
            key.write_bytes(certificate.key.reveal().encode())
            context.load_cert_chain(chain, key, password=_no_password)
    except OSError as error:
        # Also ssl.SSLError; and a disk without space.
        raise CredentialError(f"the client certificate cannot be used: {error}") from error


def _no_password() -> str:
    """Without this, a key with a password would have OpenSSL ask for it on the terminal."""
    raise CredentialError("the key of the client certificate has a password; give one without")
