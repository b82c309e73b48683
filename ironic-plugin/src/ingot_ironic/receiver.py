"""The connection to the operator's receiver: HTTPS, kept alive, with a bearer token that may be rotated at any time.

`post` says whether the message was taken. It reads CA and token again for each new connection, and the token after a 401;
a connection that the other side closed while idle is replaced without counting as a failure.

    NotTaken            the message did not arrive, or not now: send it again
    └── NotUnderstood   the other side says that this very message is wrong: sending it again changes nothing
"""

from __future__ import annotations

import http.client
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

_TAKEN: Final = 204
_REFUSED: Final = 401
_NOT_UNDERSTOOD: Final = frozenset({400, 413, 422})
_ANSWER_LIMIT: Final = 65_536


class NotTaken(Exception):
    """The message did not arrive, or was not accepted; the text says why, in words for a log."""


class NotUnderstood(NotTaken):
    """The message arrived, and will never be accepted."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to push, whom to believe there, and what to show."""

    url: str
    ca_file: str
    token_file: str
    timeout: float = 10.0


class Receiver:
    """One connection at a time; not for use by two threads."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: http.client.HTTPSConnection | None = None
        self._token = ""

    def post(self, body: bytes) -> None:
        """Deliver, or raise NotTaken."""
        kept_alive = self._connection is not None
        try:
            status = self._exchange(body)
        except (
            http.client.RemoteDisconnected,
            ConnectionResetError,
            BrokenPipeError,
            ssl.SSLEOFError,
        ) as error:
            if not kept_alive:
                raise NotTaken(f"{self._address.url} closed the connection") from error
            status = self._exchange_or_explain(body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotTaken(_explain(self._address.url, error)) from error
        if status == _REFUSED and self._token_was_rotated():
            status = self._exchange_or_explain(body)
        if status != _TAKEN:
            problem = NotUnderstood if status in _NOT_UNDERSTOOD else NotTaken
            raise problem(f"{self._address.url} answered {status}, expected {_TAKEN}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _exchange_or_explain(self, body: bytes) -> int:
        try:
            return self._exchange(body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NotTaken(_explain(self._address.url, error)) from error

    def _exchange(self, body: bytes) -> int:
        parts = urlsplit(self._address.url)
        path = parts.path or "/"
        try:
            connection = self._connection or self._connect(parts.hostname or "", parts.port)
            headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            answer.read(_ANSWER_LIMIT)
            if (
                not answer.isclosed()
            ):  # it says more than we care to hear; the rest would disturb the next answer
                self.close()
            return answer.status
        except BaseException:
            self.close()
            raise

    def _connect(self, host: str, port: int | None) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=self._address.ca_file)
        self._token = self._read_token()
        self._connection = http.client.HTTPSConnection(
            host, port, timeout=self._address.timeout, context=context
        )
        return self._connection

    def _token_was_rotated(self) -> bool:
        try:
            token = self._read_token()
        except OSError as error:
            raise NotTaken(f"the token file cannot be read: {error.strerror}") from error
        rotated = token != self._token
        self._token = token
        return rotated

    def _read_token(self) -> str:
        token = Path(self._address.token_file).read_bytes().strip()
        # Checked here, because the library that refuses it in a header would quote it in its error.
        if not (token.isascii() and token.decode("ascii").isprintable() and token):
            raise NotTaken(f"{self._address.token_file} does not hold a token: one line of plain characters")
        return token.decode("ascii")


def _explain(url: str, error: Exception) -> str:
    return f"{url} cannot be reached: {error or type(error).__name__}"
