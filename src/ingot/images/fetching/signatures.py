"""GPG signatures, checked by the real gpg in a home of its own that knows the given keys and nothing else.

A signature is good when gpg says so in its machine-readable words, for a key that was given, is not revoked and has not
expired, and ends with success. Everything else is a `NotVerified` with gpg's reason.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ingot.images.fetching.errors import NotVerified, Unwritable

LARGEST_SIGNATURE: Final = 256 << 10
_STATUS: Final = re.compile(r"^\[GNUPG:\] ([A-Z_]+)(?: (.*))?$", re.MULTILINE)
_REASONS: Final = {
    "BADSIG": "it does not belong to these bytes",
    "ERRSIG": "none of the given keys made it",
    "EXPSIG": "it has expired",
    "EXPKEYSIG": "the key that made it has expired",
    "REVKEYSIG": "the key that made it is revoked",
    "NODATA": "the file holds no signature",
}


@dataclass(frozen=True, slots=True)
class _Said:
    code: int
    words: tuple[tuple[str, str], ...]
    errors: str

    def first(self, *names: str) -> tuple[str, str] | None:
        return next((word for word in self.words if word[0] in names), None)


async def check_signature(descriptor: int, signature: bytes, keys: Sequence[Path], *, what: str) -> str:
    """The fingerprint of the key that signed what the open file holds; the file is read from where it stands."""
    with tempfile.TemporaryDirectory(prefix="ingot-gpg-") as home:  # made with mode 0700
        await _import(Path(home), keys)
        # The signature goes through a file, because standard input is the file that it is of.
        detached = Path(home) / "detached.sig"
        await asyncio.to_thread(detached.write_bytes, signature)
        said = await _gpg(home, ["--verify", "--", str(detached), "-"], stdin=descriptor)
    bad = said.first(*_REASONS)
    valid = said.first("VALIDSIG")
    if said.code == 0 and bad is None and valid is not None and said.first("GOODSIG") is not None:
        return valid[1].split(" ", 1)[0]
    reason = _REASONS[bad[0]] if bad else "gpg does not say that it is good"
    raise NotVerified(f"the signature of {what} is not good: {reason}. The file is not used")


async def _import(home: Path, keys: Sequence[Path]) -> None:
    for path in keys:
        try:
            with path.open("rb") as file:
                said = await _gpg(str(home), ["--import"], stdin=file.fileno())
        except OSError as error:
            raise Unwritable(f"{path}: {error.strerror}") from error
        if said.code != 0 or said.first("IMPORT_OK") is None:
            raise Unwritable(f"{path} holds no public keys that gpg can read")


async def _gpg(home: str, arguments: Sequence[str], *, stdin: int) -> _Said:
    # Nothing of the user's configuration, no agent, no network: a verdict over bytes.
    fixed = ["--homedir", home, "--no-options", "--batch", "--no-tty", "--no-autostart", "--status-fd", "1"]
    fixed += ["--trust-model", "always", "--no-auto-key-retrieve", "--no-auto-key-locate"]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": home}
    try:
        process = await asyncio.create_subprocess_exec(
            "gpg",
            *fixed,
            *arguments,
            stdin=stdin,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
    except FileNotFoundError as error:
        raise Unwritable(
            "the program gpg is not installed, which checks signatures; install it (Debian: gpg; Fedora: gnupg2)"
        ) from error
    try:
        out, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    words = tuple((name, rest) for name, rest in _STATUS.findall(out.decode(errors="replace")))
    assert process.returncode is not None
    return _Said(process.returncode, words, errors.decode(errors="replace"))
