"""Rules for the annotations a host obeys: each has to be one that can be obeyed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from ingot.api.admission.errors import FieldError, forbidden, invalid
from ingot.api.baremetalhost import (
    HELD_REBOOT_PREFIX,
    Annotation,
    BareMetalHost,
    BareMetalHostStatus,
    HardwareDetails,
)
from ingot.api.hostclaim import HostClaim
from ingot.api.inspection import inspection_is_disabled
from ingot.api.strict import problem_with

_SHOWN_CHARACTERS = 60


class _Reboot(msgspec.Struct):
    mode: Literal["", "hard", "soft"] = ""
    force: bool = False


def restored_status(host: BareMetalHost) -> Iterator[FieldError]:
    text = host.metadata.annotations.get(Annotation.STATUS)
    if text is None:
        return
    problem = problem_with(text, BareMetalHostStatus)
    if problem is not None:
        yield invalid(_path(Annotation.STATUS), _short(text), f"the status to restore {problem}.")


def reboots(host: BareMetalHost | HostClaim) -> Iterator[FieldError]:
    for key, value in host.metadata.annotations.items():
        if value and (key == Annotation.REBOOT or key.startswith(HELD_REBOOT_PREFIX)):
            try:
                msgspec.json.decode(value, type=_Reboot)
            except (msgspec.DecodeError, RecursionError):
                yield invalid(
                    _path(key),
                    _short(value),
                    'leave the value empty, or write JSON like {"mode": "hard"}; mode is hard or soft, force a boolean.',
                )


def inspection(host: BareMetalHost) -> Iterator[FieldError]:
    value = host.metadata.annotations.get(Annotation.INSPECT, "")
    if value not in ("", "disabled"):
        yield invalid(
            _path(Annotation.INSPECT),
            _short(value),
            "the value has to be empty, which asks for an inspection, or 'disabled'.",
        )
    mode = host.spec.inspection_mode
    if value == "disabled" and mode not in (None, "disabled"):
        yield invalid(
            _path(Annotation.INSPECT),
            value,
            f"the annotation disables inspection and spec.inspectionMode asks for {mode!r}. Remove the annotation.",
        )


def hardware_details(host: BareMetalHost) -> Iterator[FieldError]:
    text = host.metadata.annotations.get(Annotation.HARDWARE_DETAILS)
    if text is None:
        return
    path = _path(Annotation.HARDWARE_DETAILS)
    if not inspection_is_disabled(host):
        yield forbidden(
            path,
            _short(text),
            "inspection would overwrite these details. Set spec.inspectionMode to disabled.",
        )
    if problem := problem_with(text, HardwareDetails):
        yield invalid(path, _short(text), f"the description of the hardware {problem}.")


def _path(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
