"""Who we are: what a request shows to the API so that it knows us.

A token goes into a header, a certificate into the TLS handshake; a user of a kubeconfig may have either, both, or none. Where
they come from is the business of an `IdentitySource`: `KnownIdentity` for what stands in a kubeconfig or beside it,
`exec_plugin.ExecPlugin` for what a program hands out. Sources belong to one event loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ingot.kube.content import Content, Given
from ingot.kube.errors import CredentialError
from ingot.trust import Secret


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A chain and its key, as PEM."""

    chain: bytes
    key: Secret


@dataclass(frozen=True, slots=True)
class Identity:
    """What we show at one moment."""

    token: Secret | None = None
    certificate: ClientCertificate | None = None

    def __post_init__(self) -> None:
        """A token that no header can carry would be an error in the middle of a request, and not one of ours."""
        if self.token is not None and not all("!" <= letter <= "~" for letter in self.token.reveal()):
            raise CredentialError("a token holds spaces or line ends, or letters that are not ASCII")


class IdentitySource(Protocol):
    """Where our identity comes from."""

    async def identity(self) -> Identity: ...

    async def refused(self, identity: Identity) -> bool:
        """The API did not know this one (401). True if there may be another one now."""
        ...


class KnownIdentity:
    """A token and a certificate that somebody wrote down, and may renew."""

    def __init__(
        self,
        *,
        token: Secret | Content | None = None,
        certificate: Content | None = None,
        key: Content | None = None,
    ) -> None:
        self._token: Content | None = Given(token.reveal().encode()) if isinstance(token, Secret) else token
        self._pair = (certificate, key) if certificate and key else None

    async def identity(self) -> Identity:
        return self.now()

    def now(self) -> Identity:
        token = _secret(self._token.read().strip()) if self._token else None
        if self._pair is None:
            return Identity(token)
        chain, key = self._pair
        return Identity(token, ClientCertificate(chain.read(), _secret(key.read())))

    async def refused(self, identity: Identity) -> bool:
        for content in (self._token, *(self._pair or ())):
            if content is not None:
                content.look_again()
        return self.now() != identity


def _secret(content: bytes) -> Secret:
    try:
        return Secret(content.decode("ascii"))
    except UnicodeDecodeError:
        # The error of the codec would show the bytes.
        raise CredentialError("a token or a key holds bytes that are not ASCII text") from None
