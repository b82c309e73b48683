"""Serving under a certificate that changes: a TLS context that follows it.

`look` asks for the certificate anew, which is also when an `Authority` renews one that is due, and loads it when it is another
than before, or somebody else wrote new files. Connections that are open stay; new ones see the new certificate, and none meets
half of it. Files that do not fit each other, because they are being replaced right now, leave everything as it is until the next
look.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from ingot.trust.authority import Certificate
from ingot.trust.errors import AuthorityError

log = logging.getLogger(__name__)

LOOK_EVERY: Final = 10.0


class _Pair(NamedTuple):
    chain: bytes
    key: bytes

    def load_into(self, context: ssl.SSLContext) -> None:
        with tempfile.TemporaryDirectory() as folder:
            # The ssl module reads files only, and those that there are may change meanwhile; this folder is ours alone.
            cert_file, key_file = Path(folder) / "chain", Path(folder) / "key"
            cert_file.write_bytes(self.chain)
            key_file.write_bytes(self.key)
            context.load_cert_chain(cert_file, key_file, password=_no_password)


class ServingTls:
    """`context` is for a listener. `keep` runs beside it."""

    def __init__(self, certificate: Callable[[], Certificate]) -> None:
        self._certificate = certificate
        self._loaded: _Pair | None = None
        self._authority = b""
        self.certificate: Certificate
        """The files that were loaded last."""
        self.renewed: Final[list[Callable[[], None]]] = []
        """Called when another certificate was loaded."""
        self.context: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.look()

    def let_in_only(self, client_ca: Path) -> None:
        """From now on, only callers with a certificate of this authority."""
        self.context.load_verify_locations(client_ca)
        self.context.verify_mode = ssl.CERT_REQUIRED

    @property
    def authority(self) -> bytes:
        """Whom callers have to trust, PEM: the authority of the certificate that is served now."""
        return self._authority

    def look(self) -> None:
        """Load the certificate if it is another one. Blocks for some milliseconds; where connections come in, `keep` it."""
        self._load(*self._found())

    def _found(self) -> tuple[Certificate, _Pair, bytes]:
        """What there is, once it has proved to fit: a context that fails to load a pair is left with half of it."""
        made = self._certificate()
        pair = _Pair(made.cert_file.read_bytes(), made.key_file.read_bytes())
        if pair != self._loaded:
            pair.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        return made, pair, made.ca_file.read_bytes()

    def _load(self, certificate: Certificate, pair: _Pair, authority: bytes) -> None:
        self.certificate = certificate
        self._authority = authority
        if pair != self._loaded:
            pair.load_into(self.context)
            self._loaded = pair
            for tell in self.renewed:
                tell()

    async def keep(self, every: float = LOOK_EVERY) -> None:
        """Look again and again, until cancelled."""
        told = ""
        while True:
            await asyncio.sleep(every * random.uniform(0.9, 1.1))  # noqa: S311 - jitter
            try:
                found = await asyncio.to_thread(self._found)
                # On the loop, which makes the connections: one that began between chain and key would find no key.
                self._load(*found)
                told = ""
            except (OSError, ValueError, AuthorityError) as error:
                # Also ssl.SSLError. What is loaded still serves; somebody has until it expires to mend the files.
                if str(error) != told:
                    log.warning("the serving certificate cannot be loaded: %s", error)
                    told = str(error)


def _no_password() -> str:
    """Without this, a key with a password would have OpenSSL ask for it on the terminal."""
    raise OSError("the key of the serving certificate has a password; give one without")
