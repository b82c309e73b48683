"""How a pass ends: what its outcome means for the status, and when the host is looked at again.

Decided here and nowhere else. Each ending is one write of the status, none where nothing changed.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from ingot.api.baremetalhost import ErrorType, EventReason, OperationalStatus
from ingot.hosts.history import ERROR_EVENT
from ingot.hosts.host_pass import Pass, Tools
from ingot.hosts.leaving.deleting import WITHOUT_BACKEND, waits_for_backend
from ingot.hosts.metrics import METRICS
from ingot.hosts.outcome import Advance, Block, Delay, Fail, Gone, Outcome, Stay, Wait
from ingot.hosts.retries import Retries, grounds
from ingot.hosts.states.servicing import is_serviced
from ingot.kube import Again, Done
from ingot.trust import redact

log = logging.getLogger(__name__)

BACKEND_AWAY: Final = 30.0
"""Seconds until a host is looked at again when the back end did not answer. Its return is also told by `changes()`."""
UNSETTLED: Final = 10.0
"""Seconds until a host is looked at again after the guard refused something, or a detail was not written."""
WELL_BY_NOW: Final = frozenset({OperationalStatus.NONE, OperationalStatus.DELAYED, OperationalStatus.ERROR})
"""What a host without an error is not any more once a pass has come to its end."""


class Conclusions:
    def __init__(self, tools: Tools, retries: Retries) -> None:
        self._tools = tools
        self._retries = retries

    async def without_backend(self, p: Pass, why: str) -> Again:
        log.info("%s: the back end is away: %s", p.key, why)
        METRICS.count("provisioner_not_ready")
        await p.save(_without_backend(p, why))
        return Again(BACKEND_AWAY, why)

    async def of(self, p: Pass, outcome: Outcome) -> Done | Again:
        match outcome:
            case Gone():
                self._retries.forget(p.key)
                p.send_events()
                return Done()
            case Fail(kind, message):
                self._note_error(p, kind, _sentence(message), counted=True)
                left = self._retries.pause(p.status.error_count)
                p.change(next_try=self._tools.now() + timedelta(seconds=round(left)))
                await p.save(p.status.error_message)
                self._retries.failed(
                    p.key, left, grounds=grounds(p.host, self._tools.secrets, self._tools.companions)
                )
                return Again(left, message)
            case Block(kind, message, event):
                message = _sentence(message)
                self._note_error(p, kind, message, counted=p.status.error_message != message, event=event)
                p.change(next_try=None)
                await p.save(p.status.error_message)
                self._retries.forget(p.key)
                return Done()
            case Delay(why, kind):
                if p.status.operational_status is not OperationalStatus.DELAYED:
                    METRICS.count_host(kind, p.key)
                p.change(operational_status=OperationalStatus.DELAYED)
                await p.save(why)
                return Done()
            case Wait(why, detail, look_again):
                self._well(p)
                whole = await p.save(why, detail)
                # What was refused has no event that would end the waiting; and a detail that is still true in a while is
                # worth a write then.
                settled = whole and not p.refused
                return Again(look_again if settled else min(look_again, UNSETTLED), why)
            case Stay(why):
                self._well(p)
                p.completed()
                await p.save(why)
                return Done()
            case Advance(state):
                raise RuntimeError(f"{p.key}: a pass ended on the way to {state}")

    def _well(self, p: Pass) -> None:
        self._retries.forget(p.key)
        if p.detached:
            # What was wrong when it was let go is still wrong when it is attached again.
            return
        if p.status.error_type:
            # What was begun of servicing goes on until it is said to be over.
            serviced = is_serviced(p.status)
            p.clear_error()
            if serviced:
                p.change(operational_status=OperationalStatus.SERVICING)
        elif p.status.operational_status in WELL_BY_NOW:
            p.change(operational_status=OperationalStatus.OK)

    @staticmethod
    def _note_error(
        p: Pass, kind: ErrorType, message: str, *, counted: bool, event: EventReason | None = None
    ) -> None:
        # An error of another kind in the middle of servicing must not make anybody forget that the machine is in it.
        serviced = is_serviced(p.status) and kind is not ErrorType.SERVICING
        p.change(
            error_type=kind,
            error_message=message,
            operational_status=OperationalStatus.SERVICING if serviced else OperationalStatus.ERROR,
            error_count=p.status.error_count + counted,
        )
        if counted:
            METRICS.failed(str(kind))
            p.tell(event or ERROR_EVENT[kind], message, "Warning")


def _without_backend(p: Pass, why: str) -> str:
    """What is said of a host while the back end is away. What was said before stays, where it is about the same state."""
    told = p.told_last()
    if p.deleting:
        return told if told.startswith(WITHOUT_BACKEND) else waits_for_backend(why)
    return (
        told
        if told and p.state is p.host.state
        else f"waiting for the back end, which does not answer: {why}"
    )


def _sentence(message: str) -> str:
    """What a person may read, with the full stop that a back end leaves out."""
    clean = redact(message).rstrip()
    return clean if clean.endswith((".", "!", "?")) else f"{clean}."
