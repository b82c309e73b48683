"""The script: how long each verb takes at each machine, and how it ends.

A `Script` is a value: tests and benchmarks build it, a user writes it in a YAML or JSON file (`read_script`). What it leaves open
is as `USUAL` has it: a second or two a verb, and all goes well. `plan` works out what holds for one machine.

    default:
      inspect: {seconds: 5}
    hosts:
      rack-1/h7:
        provision: {fails: 2, message: the disk is full}
      "web-*":
        health: Warning
    outages:
    - {after: 60, seconds: 10, forgets: true}
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, dataclass_transform

import msgspec
import yaml
from msgspec import Meta, Struct

from ingot.api.preprovisioningimage import ImageFormat

Forever = Literal["forever"]
FOREVER: Final[Forever] = "forever"
Seconds = Annotated[float, Meta(ge=0, le=10_000_000)] | Forever
Count = Annotated[int, Meta(ge=0)]
Health = Literal["OK", "Warning", "Critical", ""]
Inventory = Literal["server", "small"]


class ScriptError(ValueError):
    """A script that cannot be played. The message is for whoever wrote it."""


class Verb(enum.StrEnum):
    """What a script can speak of; the values are the names of its fields."""

    REGISTER = "register"
    ADOPT = "adopt"
    INSPECT = "inspect"
    READ_FIRMWARE = "read_firmware"
    PREPARE = "prepare"
    SERVICE = "service"
    PROVISION = "provision"
    DEPROVISION = "deprovision"
    POWER_ON = "power_on"
    POWER_OFF = "power_off"
    SOFT_POWER_OFF = "soft_power_off"
    DATA_IMAGE = "data_image"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    DETACH = "detach"
    DELETE = "delete"


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Part(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Base of what stands in a script: a name that is not known is an error, never passed over."""


class Behaviour(Part):
    """How one verb goes. What is None is left to whatever is more general."""

    seconds: Seconds | list[Seconds] | None = None
    """How long it takes; of a list, each attempt its own, and the last for all that follow. 0 is at once."""
    fails: Count | Literal["always"] | None = None
    """How many attempts fail before one succeeds."""
    message: str = ""
    """How a failure is told."""
    refuses_credentials: bool = False
    """Where registering fails: it is the user name or password."""
    also_without_a_change: bool = False
    """Where there is nothing to prepare: it is acted out nevertheless."""


class HostScript(Part):
    """How one machine, or a group of them, behaves."""

    others: Behaviour = Behaviour()
    """Every verb that is not named here, but for `read_firmware`."""
    register: Behaviour = Behaviour()
    adopt: Behaviour = Behaviour()
    inspect: Behaviour = Behaviour()
    read_firmware: Behaviour = Behaviour()
    """Where it takes time: how long after the ramdisk ran for the first time the firmware settings are known."""
    prepare: Behaviour = Behaviour()
    service: Behaviour = Behaviour()
    provision: Behaviour = Behaviour()
    deprovision: Behaviour = Behaviour()
    power_on: Behaviour = Behaviour()
    power_off: Behaviour = Behaviour()
    soft_power_off: Behaviour = Behaviour()
    data_image: Behaviour = Behaviour()
    subscribe: Behaviour = Behaviour()
    unsubscribe: Behaviour = Behaviour()
    detach: Behaviour = Behaviour()
    delete: Behaviour = Behaviour()
    health: Health | None = None
    power_failure: bool | None = None
    """The management controller cannot be reached."""
    firmware_settings: bool | None = None
    """Whether the machine tells its BIOS settings; by default it does."""
    inventory: Inventory | None = None
    """What inspection finds: a rack server of middling size, 6 KB of it, or as little as a virtual machine has."""
    components: dict[str, str] | None = None
    """Parts with firmware, and the version each came with; none by default."""


class Outage(Part):
    """The back end as a whole is away for a while."""

    after: Annotated[float, Meta(ge=0)]
    """Seconds after its file was made."""
    seconds: Annotated[float, Meta(ge=0)] = 0
    forgets: bool = False
    """Whether it comes back without its records. The machines go on."""


class Script(Part):
    default: HostScript = HostScript()
    hosts: dict[str, HostScript] = {}
    """By namespace/name or name alone; `*` and `?` stand for any characters. The first that fits counts."""
    outages: list[Outage] = []
    network_boot: bool = False
    """The machines boot over the network, and take one of the few places that there are for it."""
    ramdisk_formats: list[ImageFormat] = []
    """Each machine boots a ramdisk of its own, in one of these formats."""


def _takes(seconds: Seconds) -> Behaviour:
    return Behaviour(seconds=seconds)


USUAL: Final = HostScript(
    others=_takes(0),
    register=_takes(1),
    adopt=_takes(1),
    inspect=_takes(2),
    prepare=_takes(2),
    service=_takes(2),
    provision=_takes(2),
    deprovision=_takes(1),
    power_on=_takes(1),
    power_off=_takes(1),
    soft_power_off=_takes(1),
    data_image=_takes(1),
    health="OK",
    power_failure=False,
    firmware_settings=True,
    components={},
)
"""What holds where no script says otherwise."""

AT_ONCE: Final = Script(default=HostScript(others=_takes(0)))
"""Everything is done when it is asked for."""

BENCHMARK: Final = Script(
    default=HostScript(others=_takes(0), register=_takes(5), inspect=_takes(2), inventory="small")
)
"""What operators are compared under: five seconds to register, two to inspect, nothing else, and small machines."""


def read_script(path: Path) -> Script:
    """The script in a file. Raises `ScriptError` with the place that is wrong."""
    try:
        # YAML is a superset of JSON, so one reader serves both.
        found: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScriptError(f"the demo script {path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ScriptError(f"the demo script {path} is neither YAML nor JSON: {error}") from error
    try:
        return msgspec.convert({} if found is None else found, Script)
    except msgspec.ValidationError as error:
        raise ScriptError(f"the demo script {path} cannot be played: {error}") from error
