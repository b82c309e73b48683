"""A fast key for Ironic's cache of Redfish sessions.

Ironic looks a session up by a hash of its password, made with 600,000 rounds of PBKDF2 at each Redfish call: 0.44 s of CPU,
dozens of times for each host and operation. The hash never leaves the process, so a keyed hash with a secret of this process
guards it as well: who could read the secret could read the passwords beside it. Session handling stays Ironic's; only the
name `hashlib` in its module is replaced.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, Final

_PROBE: Final = {"address": "https://selfcheck.invalid", "username": "", "password": "", "verify_ca": True}


class FastHashlib:
    """hashlib, with a `pbkdf2_hmac` that takes a microsecond. For cache keys only."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(hashlib, name)

    def pbkdf2_hmac(
        self, hash_name: str, password: bytes, salt: bytes, iterations: int, dklen: int | None = None
    ) -> bytes:
        self.calls += 1
        mixed = hashlib.blake2b(key=self._secret, digest_size=dklen or 64)
        # Lengths first, so that no two pairs of salt and password run together into the same bytes.
        for part in (hash_name.encode(), salt, password, str(iterations).encode()):
            mixed.update(len(part).to_bytes(8, "big") + part)
        return mixed.digest()


def install() -> None:
    """Replace the name in Ironic's module, and see that it is used. Raises, and changes nothing, when it is not."""
    from ironic.drivers.modules.redfish import utils

    fast, original = FastHashlib(), utils.hashlib
    utils.hashlib = fast
    try:
        utils.SessionCache(dict(_PROBE))
    except Exception:
        utils.hashlib = original
        raise
    if fast.calls != 1:
        utils.hashlib = original
        raise AttributeError("ironic.drivers.modules.redfish.utils.SessionCache makes its key in another way")
