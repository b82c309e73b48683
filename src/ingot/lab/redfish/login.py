"""Who may talk to the BMC: HTTP basic authentication, or a session that was opened with the same password.

Sessions live in memory only: like those of a real BMC they are gone after a restart, and a client logs in again.
A changed password closes them all.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Collection
from typing import Final

from ingot.lab.chassis import Chassis
from ingot.lab.redfish.answers import Refusal
from ingot.trust import random_token

_MOST_SESSIONS: Final = 64


class Logins:
    __slots__ = ("_chassis", "_opened", "_password", "_sessions")

    def __init__(self, chassis: Chassis) -> None:
        self._chassis = chassis
        self._sessions: dict[str, str] = {}
        self._opened = 0
        self._password = chassis.plate.password

    def right(self, username: str, password: str) -> bool:
        plate = self._chassis.plate
        same_name = hmac.compare_digest(username.encode(), plate.username.encode())
        same_password = hmac.compare_digest(password.encode(), plate.password.encode())
        return same_name and same_password and not self._chassis.acts("refuse_password")

    def open(self) -> tuple[str, str]:
        """A new session: its id and its token. The oldest one ends when there are too many."""
        self._end_sessions_of_another_password()
        if len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._opened += 1
        token = random_token().reveal()
        self._sessions[str(self._opened)] = token
        self._chassis.note(f"session {self._opened} of the BMC is opened")
        return str(self._opened), token

    def close(self, session: str) -> bool:
        return self._sessions.pop(session, None) is not None

    def sessions(self) -> Collection[str]:
        return self._sessions.keys()

    def forget(self) -> None:
        """The BMC restarts."""
        self._sessions.clear()

    def check(self, *, token: str | None, authorization: str | None) -> None:
        """A `Refusal` for a caller who may not."""
        if not self._allowed(token, authorization):
            raise refused(expired=False)
        if self._chassis.acts("password_expired"):
            raise refused(expired=True)

    def _allowed(self, token: str | None, authorization: str | None) -> bool:
        self._end_sessions_of_another_password()
        if token is not None:
            given = token.encode(errors="replace")
            return any(hmac.compare_digest(known.encode(), given) for known in self._sessions.values())
        credentials = _basic(authorization or "")
        return credentials is not None and self.right(*credentials)

    def _end_sessions_of_another_password(self) -> None:
        if self._chassis.faults.refuse_password or self._password != self._chassis.plate.password:
            self._sessions.clear()
            self._password = self._chassis.plate.password


def refused(*, expired: bool) -> Refusal:
    if expired:
        return Refusal(
            403,
            "PasswordChangeRequired",
            "The password has expired and must be changed before anything else is answered.",
        )
    return Refusal(401, "NoValidSession", "The user name or the password is wrong, or the session has ended.")


def _basic(header: str) -> tuple[str, str] | None:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        username, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:  # not base64, or not text in it
        return None
    return (username, password) if colon else None
