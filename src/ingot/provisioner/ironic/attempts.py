"""What was started, and which failures a person has not been told yet.

A verb tells a failure once and tries again when it is called with `again`. The caller sets that after it has reported a
failure; but when the next attempt fails before the caller has looked again, `again` still means the old one. So it is noted
here that something was started, and its failure is told before anything is tried anew. Only memory: after a restart an
attempt may come early, never not at all.
"""

from __future__ import annotations

import enum


class Scope(enum.Enum):
    """Power is switched independently of the node's state, so its attempts are counted apart."""

    STATE = "state"
    POWER_ON = "power on"
    POWER_OFF = "power off"
    STOP_RAMDISK = "stop the ramdisk"
    START = "start what is on the disk"
    MEDIA = "virtual media"
    GIVE_UP = "give up a service"


class Retry(enum.Enum):
    """Whether what failed may be tried again now."""

    NO = "it has to be told first"
    DUE = "it was told, and the next attempt is due"
    INTERRUPTED = "nothing failed: Ironic was interrupted"

    @property
    def allowed(self) -> bool:
        return self is not Retry.NO


class Attempts:
    def __init__(self) -> None:
        self._told: dict[tuple[str, Scope], bool] = {}

    def started(self, uuid: str, scope: Scope) -> None:
        self._told[uuid, scope] = False

    def told(self, uuid: str, scope: Scope) -> None:
        """Its failure was told."""
        self._told[uuid, scope] = True

    def done(self, uuid: str, scope: Scope) -> None:
        """It succeeded."""
        self._told.pop((uuid, scope), None)

    def was_started(self, uuid: str, scope: Scope) -> bool:
        """Something was started and did not succeed, as far as we know."""
        return (uuid, scope) in self._told

    def was_told(self, uuid: str, scope: Scope) -> bool:
        """Its failure was told, as far as we remember."""
        return self._told.get((uuid, scope), False)

    def may_retry(self, uuid: str, scope: Scope, *, again: bool) -> bool:
        return again and self._told.get((uuid, scope), True)

    def forget(self, uuid: str) -> None:
        for scope in Scope:
            self.done(uuid, scope)
