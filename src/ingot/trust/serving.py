"""Serving under a certificate that changes: a TLS context that follows it.

`look` asks for the certificate anew, which is also when an `Authority` renews one that is due, and loads it when it is another
than before, or somebody else wrote new files. Connections that are open stay; new ones see the new certificate. Files that do not
fit each other, because they are being replaced right now, leave everything as it is until the next look.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ingot.trust.authority import Certificate
from ingot.trust.errors import AuthorityError
from ingot.trust.files import write_private

log = logging.getLogger(__name__)

LOOK_EVERY: Final = 60.0


class ServingTls:
    """`context` is for a listener. `keep` runs beside it."""

    def __init__(self, certificate: Callable[[], Certificate], *, client_ca: Path | None = None) -> None:
        """`client_ca`: only callers with a certificate of this authority are let in."""
        self._certificate = certificate
        self._loaded = b""
        self._ca_file = Path()
        self.context: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        if client_ca is not None:
            self.context.load_verify_locations(client_ca)
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.look()

    @property
    def ca_file(self) -> Path:
        """The authority whom callers have to trust."""
        return self._ca_file

    def look(self) -> None:
        """Load the certificate if it is another one. Blocks for some milliseconds."""
        made = self._certificate()
        self._ca_file = made.ca_file
        chain, key = made.cert_file.read_bytes(), made.key_file.read_bytes()
        if chain + key == self._loaded:
            return
        with tempfile.TemporaryDirectory() as folder:
            # Copies, because the files may change between the trial and the loading; the folder is ours alone.
            cert_file, key_file = Path(folder) / "chain", Path(folder) / "key"
            write_private(cert_file, chain)
            write_private(key_file, key)
            # A context that fails to load a pair is left with half of it: so first one that nobody uses.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert_file, key_file)
            self.context.load_cert_chain(cert_file, key_file)
        self._loaded = chain + key

    async def keep(self, every: float = LOOK_EVERY) -> None:
        """Look again and again, until cancelled."""
        told = ""
        while True:
            await asyncio.sleep(every * random.uniform(0.9, 1.1))  # noqa: S311 - jitter
            try:
                await asyncio.to_thread(self.look)
                told = ""
            except (OSError, ValueError, AuthorityError) as error:
                # Also ssl.SSLError. What is loaded still serves; somebody has until it expires to mend the files.
                if str(error) != told:
                    log.warning("the serving certificate cannot be loaded: %s", error)
                    told = str(error)
