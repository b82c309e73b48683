"""Inspecting: find out what the machine is made of.

The first inspection is content with whatever the back end ever found. Another one, of a host whose hardware is known, has to look
anew, and once only: its name is the time when it was begun, which is written before the back end is told (`states`).
Leaves what becomes of the findings to `hardware`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ingot.api.baremetalhost import Annotation, BareMetalHost, ErrorType, EventReason, State
from ingot.api.inspection import inspection_is_disabled
from ingot.hosts.beside.boots import note_boot, note_report
from ingot.hosts.beside.hardware import keep
from ingot.hosts.host_pass import Pass
from ingot.hosts.outcome import SOON, Advance, Fail, Outcome, Wait
from ingot.hosts.states.power import drop_obeyed_restart
from ingot.hosts.states.reboots import reboots
from ingot.provisioner import Busy, Failed, Inspection, NotRegistered, Ready

BEGINS: Final = f"{State.INSPECTING} starts"
"""What a host says from the moment that another inspection is decided on until the back end has answered."""


def inspection_is_asked_for(host: BareMetalHost) -> bool:
    """Whether somebody wants the hardware to be looked at again."""
    return Annotation.INSPECT in host.metadata.annotations and not inspection_is_disabled(host)


def looks_anew(host: BareMetalHost) -> bool:
    """Whether an inspection of the host, begun or about to begin, is another one."""
    return host.status.hardware is not msgspec.UNSET


async def inspecting(p: Pass) -> Outcome:
    if inspection_is_disabled(p.host):
        p.tell(EventReason.INSPECTION_SKIPPED, "Inspection is disabled")
        return Advance(State.PREPARING)
    if inspection_is_asked_for(p.host) and (p.told_last() == BEGINS or p.host.state is not State.INSPECTING):
        # Whoever asks until now gets this inspection; whoever asks later gets another one.
        await p.patch_host({"metadata": {"annotations": {Annotation.INSPECT: None}}})
    restart, again = reboots(p.current).once, p.failed_with(ErrorType.INSPECTION)
    answer = await p.tools.backend.inspect(
        p.ref,
        Inspection(renewal=_name(p), restart=restart),
        permit=p.permit,
        again=again,
    )
    if restart:
        await drop_obeyed_restart(p, answer)
    match answer:
        case Busy(why, detail):
            note_boot(p, since=p.status.operation_history.inspect.start, again=restart or again)
            return Wait(why, detail)
        case NotRegistered(why):
            return Wait(why, look_again=SOON)
        case Failed(message):
            return Fail(ErrorType.INSPECTION, f"{message.rstrip('.')}. {p.remark}" if p.remark else message)
        case Ready(found):
            if (held := await keep(p, found.hardware)) is not None:
                return held
            note_report(p, found.ramdisk, since=p.status.operation_history.inspect.start)
    p.completed()
    p.tell(EventReason.INSPECTION_COMPLETE, "Hardware inspection completed")
    return Advance(State.PREPARING)


def _name(p: Pass) -> str:
    begun = p.status.operation_history.inspect.start
    return begun.isoformat() if begun is not None and looks_anew(p.current) else ""
