"""Real GPG keys, made on the spot, and what they sign."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Keys:
    """A home of gpg with secret keys in it."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def make(self, name: str, *, expires: str = "never", at: str | None = None) -> None:
        """A key that can sign; `at` is a time in the past (20200101T000000) to make it at."""
        self._gpg(*_at(at), "--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", expires)

    def public(self, name: str, folder: Path, *, armored: bool = True) -> Path:
        path = folder / f"{name}.{'asc' if armored else 'gpg'}"
        path.write_bytes(self._gpg(*(["--armor"] if armored else []), "--export", name))
        return path

    def sign(self, content: bytes, *names: str, at: str | None = None) -> bytes:
        """A detached signature by each of these keys."""
        who = [word for name in names for word in ("--local-user", name)]
        return self._gpg(*_at(at), *who, "--detach-sign", given=content)

    def revoke(self, name: str) -> None:
        fingerprint = self.fingerprint(name)
        text = (self.home / "openpgp-revocs.d" / f"{fingerprint}.rev").read_text()
        self._gpg("--import", given=text.replace(":-----BEGIN", "-----BEGIN").encode())

    def fingerprint(self, name: str) -> str:
        listed = self._gpg("--with-colons", "--list-keys", name).decode().splitlines()
        return next(line.split(":")[9] for line in listed if line.startswith("fpr"))

    def _gpg(self, *arguments: str, given: bytes = b"") -> bytes:
        command = ["gpg", "--homedir", str(self.home), "--batch", "--no-tty", "--quiet", "--yes", *arguments]
        return subprocess.run(command, input=given, capture_output=True, check=True).stdout


@contextmanager
def gpg_home() -> Iterator[Keys]:
    # The agent's socket is in it, and the path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="gpg-", ignore_cleanup_errors=True) as home:
        try:
            yield Keys(Path(home))
        finally:
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], capture_output=True, check=False)


def _at(time: str | None) -> list[str]:
    return ["--faked-system-time", time] if time else []
