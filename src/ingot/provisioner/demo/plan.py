"""What holds for one machine: the script for it, for its group, for all, and what is usual, in this order.

Hosts that carry the name of one of Metal3's demo hosts behave as that one does, unless the script says something of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, TypeVar

from ingot.api.meta import Key
from ingot.provisioner.demo.script import (
    FOREVER,
    USUAL,
    Behaviour,
    Forever,
    HostScript,
    Script,
    Seconds,
    Verb,
)

T = TypeVar("T")

_WILD: Final = frozenset("*?[")
_HANGS: Final = Behaviour(seconds=FOREVER)
# A host for which there is nothing to prepare passes preparing without asking, unless it has to wait there for something.
_LATE: Final = Behaviour(seconds=3)
BY_NAME: Final = {
    "demo-registration-error": HostScript(
        register=Behaviour(fails="always", message="failed to register new host")
    ),
    "demo-registering": HostScript(register=_HANGS),
    "demo-available": HostScript(),
    "demo-inspecting": HostScript(inspect=_HANGS),
    "demo-preparing-error": HostScript(
        read_firmware=_LATE,
        prepare=Behaviour(fails="always", message="failed to prepare host", also_without_a_change=True),
    ),
    "demo-preparing": HostScript(
        read_firmware=_LATE, prepare=Behaviour(seconds=FOREVER, also_without_a_change=True)
    ),
    "demo-validation-error": HostScript(provision=Behaviour(fails="always", message="validation failed")),
    "demo-provisioning": HostScript(provision=_HANGS),
    "demo-provisioned": HostScript(),
}
"""Metal3's demo hosts: each stays in the state of its name."""

FAILURES: Final = {
    Verb.REGISTER: "the management controller of the demo machine does not answer",
    Verb.ADOPT: "the running demo machine cannot be taken over",
    Verb.INSPECT: "the ramdisk of the demo machine found no disks",
    Verb.READ_FIRMWARE: "the demo machine does not tell its firmware settings",
    Verb.PREPARE: "the demo machine did not take the new configuration",
    Verb.SERVICE: "the demo machine did not take the new firmware",
    Verb.PROVISION: "the image cannot be written to the demo machine's disk",
    Verb.DEPROVISION: "the demo machine's disk cannot be cleaned",
    Verb.POWER_ON: "the demo machine does not switch on",
    Verb.POWER_OFF: "the demo machine does not switch off",
    Verb.SOFT_POWER_OFF: "the system on the demo machine does not react to the power button",
    Verb.DATA_IMAGE: "the demo machine's virtual drive does not take the image",
    Verb.SUBSCRIBE: "the demo machine takes no more subscriptions",
    Verb.UNSUBSCRIBE: "the demo machine does not let go of the subscription",
    Verb.DETACH: "the record of the demo machine is locked",
    Verb.DELETE: "the record of the demo machine is locked",
}


@dataclass(frozen=True, slots=True)
class Course:
    """How the attempts of one verb at one machine go. Attempts count from one."""

    seconds: tuple[Seconds, ...]
    fails: float
    """Infinite for always."""
    message: str
    refuses_credentials: bool
    also_without_a_change: bool

    def lasts(self, attempt: int) -> float | Forever:
        return self.seconds[min(attempt, len(self.seconds)) - 1]

    def failure(self, attempt: int) -> str:
        """How the attempt fails; "" when it does not."""
        return self.message if attempt <= self.fails else ""


class MachinePlan:
    """All of the script that concerns one machine."""

    def __init__(self, *layers: HostScript) -> None:
        self._layers = layers
        self._courses: dict[Verb, Course] = {}
        self.health = _first([layer.health for layer in layers], "")
        self.power_failure = _first([layer.power_failure for layer in layers], False)
        self.tells_settings = _first([layer.firmware_settings for layer in layers], True)
        self.inventory = _first([layer.inventory for layer in layers], "server")
        self.components = _first([layer.components for layer in layers], {})

    @property
    def reads_late(self) -> bool:
        """The firmware of the machine is not known at once."""
        return self.course(Verb.READ_FIRMWARE).lasts(1) != 0

    def course(self, verb: Verb) -> Course:
        if verb not in self._courses:
            self._courses[verb] = self._worked_out(verb)
        return self._courses[verb]

    def _worked_out(self, verb: Verb) -> Course:
        said: list[Behaviour] = []
        for layer in self._layers:
            said.append(getattr(layer, verb.value))
            if verb is Verb.SOFT_POWER_OFF and layer is not USUAL:
                said.append(layer.power_off)
            # Firmware settings are there to be read, on most machines, whatever else is slow.
            if verb is not Verb.READ_FIRMWARE:
                said.append(layer.others)
        seconds = next((one.seconds for one in said if one.seconds is not None), 0.0)
        fails = next((one.fails for one in said if one.fails is not None), 0)
        return Course(
            seconds=(tuple(seconds) or (0.0,)) if isinstance(seconds, list) else (seconds,),
            fails=float("inf") if fails == "always" else fails,
            message=next((one.message for one in said if one.message), FAILURES[verb]),
            refuses_credentials=any(one.refuses_credentials for one in said),
            also_without_a_change=any(one.also_without_a_change for one in said),
        )


class Plan:
    """The script, by machine."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._machines: dict[Key, MachinePlan] = {}
        # Names are looked up: a script may have one for each of many machines.
        self._places: dict[str, int] = {}
        self._patterns: dict[str, int] = {}
        for place, pattern in enumerate(script.hosts):
            (self._patterns if _WILD & set(pattern) else self._places)[pattern] = place

    def of(self, key: Key) -> MachinePlan:
        if (found := self._machines.get(key)) is None:
            found = self._machines[key] = MachinePlan(self._own(key), self.script.default, USUAL)
        return found

    def _own(self, key: Key) -> HostScript:
        found = {
            place: name for name in (str(key), key.name) if (place := self._places.get(name)) is not None
        }
        for pattern, place in self._patterns.items():
            if fnmatchcase(str(key) if "/" in pattern else key.name, pattern):
                found[place] = pattern
                break
        return self.script.hosts[found[min(found)]] if found else BY_NAME.get(key.name, HostScript())


def _first(found: Sequence[T | None], otherwise: T) -> T:
    return next((one for one in found if one is not None), otherwise)
