"""Reboot annotations: what somebody asks for with `reboot.metal3.io` and `reboot.metal3.io/<key>`.

Pure. The plain one asks for one reboot and is removed once the machine has been seen off. One with a key keeps the machine off
until whoever wrote it removes it. The value is empty, or JSON like `{"mode": "hard", "force": true}`; one hard request among
several makes the power off hard, and a value that cannot be read counts as an empty one.

A host that runs a system obeys all of them. In every other state only those with `force` count: the machine is busy with
something that a reboot would spoil, and whoever wants that says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from ingot.api.baremetalhost import HELD_REBOOT_PREFIX, Annotation, BareMetalHost
from ingot.api.installed import RUNS_A_SYSTEM
from ingot.provisioner import PowerOffMode


class _Wish(msgspec.Struct, frozen=True):
    mode: Literal["", "hard", "soft"] = ""
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reboots:
    """What all annotations that count ask for together; false when there are none."""

    once: bool = False
    """Switch it off, and on again."""
    held_by: tuple[str, ...] = ()
    """The annotations that keep it off."""
    mode: PowerOffMode = PowerOffMode.SOFT
    unreadable: tuple[str, ...] = ()
    """The annotations whose value says nothing."""

    def __bool__(self) -> bool:
        return self.once or bool(self.held_by)


def reboots(host: BareMetalHost) -> Reboots:
    """What counts for the host in the state that it is in."""
    read = {name: _read(value) for name, value in _annotations(host).items()}
    counted = {
        name: wish
        for name, wish in read.items()
        if host.state in RUNS_A_SYSTEM or (wish is not None and wish.force)
    }
    hard = any(wish is not None and wish.mode == "hard" for wish in counted.values())
    return Reboots(
        once=Annotation.REBOOT in counted,
        held_by=tuple(sorted(name for name in counted if name != Annotation.REBOOT)),
        mode=PowerOffMode.HARD if hard else PowerOffMode.SOFT,
        unreadable=tuple(sorted(name for name, wish in counted.items() if wish is None)),
    )


def _annotations(host: BareMetalHost) -> dict[str, str]:
    return {
        name: value
        for name, value in host.metadata.annotations.items()
        if name == Annotation.REBOOT or name.startswith(HELD_REBOOT_PREFIX)
    }


def _read(value: str) -> _Wish | None:
    if not value:
        return _Wish()
    try:
        return msgspec.json.decode(value, type=_Wish)
    except (msgspec.DecodeError, RecursionError):
        return None
