"""How a server misbehaves: the steady faults, and a plan of faults in time.

Pure. What holds at a moment is `in_force`; `Chassis.faults` asks it for now. The BMC acts out its faults, the agent its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, get_args

import msgspec

ALWAYS: Final = -1
"""A counted fault with this count never ends by itself."""

Counted = Literal["unavailable", "lose_heartbeats"]
COUNTED: Final = get_args(Counted)


class Faults(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The defaults are good behaviour."""

    bmc_down: bool = False
    """The BMC's port is closed."""
    bmc_restarting: bool = False
    """The BMC's port is closed, and its sessions are forgotten: with an end in a plan, a reset of the BMC."""
    refuse_password: bool = False
    """Every login is refused, also the right one."""
    password_expired: bool = False
    """Every login is answered with 403: the password must be changed first."""
    slow_seconds: float = 0.0
    """Each answer of the BMC takes this much longer."""
    unavailable: int = 0
    """So many next answers of the BMC are 503; -1 is all of them."""
    no_json_errors: bool = False
    """Errors of the BMC have no body."""
    broken_json: bool = False
    """Answers of the BMC end in the middle."""
    fail_power: bool = False
    """Every reset is answered with an error."""
    power_stuck: bool = False
    """A reset is answered well, and nothing changes."""
    deaf_system: bool = False
    """What runs on the server does not heed the wish to shut down."""
    power_lie: Literal["", "On", "Off"] = ""
    """What the BMC says of the power, whatever it is."""
    health: Literal["", "Warning", "Critical"] = ""
    """What the BMC says of the server's health."""
    fail_insert_media: bool = False
    media_stuck: bool = False
    """Ejecting a medium fails, and it stays."""
    fail_boot_device: bool = False
    fail_tasks: str = ""
    """Firmware and RAID tasks end in an exception with this message."""
    bios_ignored: bool = False
    """BIOS settings are taken, and never applied."""
    fail_steps: dict[str, str] = {}
    """Agent steps that fail, by name, with what the agent says."""
    die_in_step: str = ""
    """The agent dies in the middle of the step of this name."""
    boots_at_once: bool = False
    """The ramdisk runs as soon as the server is switched on, before anybody waits for it."""
    silent_agent: bool = False
    """The ramdisk boots, but its agent never speaks."""
    agent_garbles: bool = False
    """The agent answers its next orders with something that is no JSON."""
    lose_heartbeats: int = 0
    """So many next heartbeats are never sent; -1 is all of them."""
    wrong_macs: bool = False
    """The agent posts and looks up other MAC addresses than the server has."""
    inventory_lacks: list[str] = []
    """Keys that are left out of the inventory."""
    inspection_error: str = ""
    """What the agent says went wrong while it collected its inventory."""


class Planned(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Faults for a time: from `after` seconds after the plan was set, for `lasts` seconds, or for good."""

    after: float = 0.0
    lasts: float | None = None
    faults: Faults

    def __post_init__(self) -> None:
        if self.after < 0 or (self.lasts is not None and self.lasts < 0):
            raise ValueError("`after` and `lasts` of planned faults are seconds from 0 up")


class Plan(msgspec.Struct, kw_only=True):
    """What was planned, and when."""

    set_at: datetime
    steps: list[Planned] = []

    def at(self, now: datetime) -> list[Faults]:
        """The faults that the plan has for this moment, in its order."""
        passed = (now - self.set_at).total_seconds()
        return [
            step.faults
            for step in self.steps
            if step.after <= passed and (step.lasts is None or passed < step.after + step.lasts)
        ]

    def next_change(self, now: datetime) -> datetime | None:
        """When something begins or ends next; None when the plan is over."""
        return min((edge for edge in self._edges() if edge > now), default=None)

    def _edges(self) -> Iterator[datetime]:
        for step in self.steps:
            yield self.set_at + timedelta(seconds=step.after)
            if step.lasts is not None:
                yield self.set_at + timedelta(seconds=step.after + step.lasts)


def in_force(steady: Faults, plan: Plan | None, now: datetime) -> Faults:
    """The steady faults and those that the plan has for this moment as one."""
    planned = plan.at(now) if plan is not None else []
    if not planned:
        return steady
    values: dict[str, Any] = {}
    for faults in (steady, *planned):
        for name in Faults.__struct_fields__:
            given, good = getattr(faults, name), getattr(_GOOD, name)
            if given != good:
                values[name] = _both(name, values[name], given) if name in values else given
    return Faults(**values)


def spend(name: Counted, steady: Faults, plan: Plan | None, now: datetime) -> bool:
    """Whether the counted fault acts this time; it then has one time less."""
    for faults in (steady, *(plan.at(now) if plan is not None else [])):
        left: int = getattr(faults, name)
        if left > 0:
            setattr(faults, name, left - 1)
        if left:
            return True
    return False


def _both(name: str, first: Any, second: Any) -> Any:
    """Two values of one fault: what adds up is added up, of the rest the later one holds."""
    if isinstance(first, Mapping):
        return {**first, **second}
    if isinstance(first, list):
        return [*first, *(entry for entry in second if entry not in first)]
    if name in COUNTED:
        return ALWAYS if ALWAYS in (first, second) else first + second
    return second


_GOOD: Final = Faults()
