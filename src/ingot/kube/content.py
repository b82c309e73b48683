"""Bytes that a kubeconfig names: written out in it, or in a file that somebody else may replace.

A file is read again once a minute, because kubelet and others renew tokens and certificates long before the old ones end, and
at once where there is reason to think that it holds something new. One that cannot be read any more, or is empty because it is
being written, has not changed: what it said last still counts.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Final, Protocol

from ingot.kube.errors import CredentialError

log = logging.getLogger(__name__)

REREAD_AFTER: Final = 60.0


class Content(Protocol):
    """Where some bytes come from."""

    def read(self) -> bytes: ...

    def look_again(self) -> bool:
        """Somebody found the bytes wanting. True if there are others now."""
        ...


class Given:
    """Bytes that stand in the kubeconfig itself."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def read(self) -> bytes:
        return self._content

    def look_again(self) -> bool:
        return False


class FileContent:
    """Bytes in a file that somebody else renews. `what` is the file's role in a sentence: "token file"."""

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what
        self._content: bytes | None = None
        self._read_at = 0.0

    def read(self) -> bytes:
        if self._content is None or time.monotonic() - self._read_at > REREAD_AFTER:
            self._content = self._read_now()
            self._read_at = time.monotonic()
        return self._content

    def look_again(self) -> bool:
        before, self._read_at = self._content, float("-inf")
        return self.read() != before

    def _read_now(self) -> bytes:
        try:
            content = self._path.read_bytes()
            wrong = "" if content else "is empty"
        except OSError as error:
            content, wrong = b"", f"cannot be read: {error.strerror}"
        if not wrong:
            return content
        sentence = f"the {self._what} {self._path} {wrong}"
        if self._content is None:
            raise CredentialError(sentence)
        log.warning("%s; going on with what it held before", sentence)
        return self._content
