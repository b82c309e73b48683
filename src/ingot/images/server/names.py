"""Names of images that nobody can guess and that a restart does not change.

A BMC can present no credentials, so who knows the name has the image. It is worked out from what the image is for and a key that
never leaves this installation: the same parts give the same name as long as the key's file is there, and a name says nothing
about another one. The key belongs in a file, with `trust.kept_token`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from pathlib import Path
from typing import Final, Self

from ingot.trust import kept_token

_BYTES: Final = 24
"""192 bits, and 32 characters of base64 without a rest."""
_SHOWN: Final = 6
NAME: Final = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)
_SHORTEST_KEY: Final = 16


class Names:
    """The names that belong to one key."""

    def __init__(self, key: bytes) -> None:
        if len(key) < _SHORTEST_KEY:
            raise ValueError(
                f"the key of image names has {len(key)} bytes; names made with it could be guessed"
            )
        self._key = key

    @classmethod
    def kept_in(cls, path: Path) -> Self:
        """With the key in this file, which is made if it is not there. Blocks while it is."""
        return cls(kept_token(path).reveal().encode())

    def name(self, *parts: str) -> str:
        """The name of what these parts describe. Each is told apart from its neighbours: "ab", "c" is not "a", "bc"."""
        told = b"".join(len(part).to_bytes(8) + part for part in (text.encode() for text in parts))
        return base64.urlsafe_b64encode(hmac.digest(self._key, told, hashlib.sha256)[:_BYTES]).decode()


def shown(name: str) -> str:
    """What of a name may stand in a log: enough to tell two apart, far too little to ask for the image."""
    return f"{name[:_SHOWN]}…" if NAME.fullmatch(name) else "…"
