"""Which versions of a Secret hold the same credentials, remembered for the hosts that use them.

The version of a Secret changes with every write to it, also where only a label is new. What is kept is a digest under a key
that dies with the process: it tells credentials apart and nobody what they are. After a restart nothing is remembered, and
credentials whose version has changed meanwhile are tried once more, which disturbs no machine.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

from ingot.api.baremetalhost import CredentialsStatus
from ingot.api.meta import Key


@dataclass(slots=True)
class _Known:
    digest: bytes
    versions: list[CredentialsStatus] = field(default_factory=list)


class KnownCredentials:
    """What was last read for each host."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._known: dict[Key, _Known] = {}
        self._given: dict[Key, CredentialsStatus] = {}

    def digest(self, *parts: str) -> bytes:
        """Tells one set of credentials from another."""
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=16).digest()

    def same_as(self, host: Key, version: CredentialsStatus, digest: bytes) -> list[CredentialsStatus]:
        """Note what this version holds; the earlier versions that are known to hold the same."""
        known = self._known.get(host)
        if known is None or known.digest != digest:
            known = self._known[host] = _Known(digest)
        if version not in known.versions:
            # Those before the last few are in no status any more.
            known.versions = [*known.versions[-7:], version]
        return known.versions

    def given(self, host: Key, version: CredentialsStatus) -> None:
        """The back end was given these."""
        self._given[host] = version

    def were_given(self, host: Key, version: CredentialsStatus) -> bool:
        return self._given.get(host) == version

    def forget(self, host: Key) -> None:
        self._known.pop(host, None)
        self._given.pop(host, None)
