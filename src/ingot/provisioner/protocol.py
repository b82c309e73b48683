"""The seam: what a back end must be able to do with a host, and how it answers.

A back end is asked for facts and told what is wanted; it never decides whether that is right. Every call is idempotent: asked
again with the same order it goes on where it was, and once the order is fulfilled it answers `Ready` without acting.

A back end that was itself interrupted in the middle of an order goes on with it, and says nothing of that but `Busy`.

Answers are values:

    Ready(value)        done; the value is what came of it
    Busy(why)           under way; `changes()` will name the host when there is something new to see
    Failed(message)     the back end tried and could not; told once, and then tried anew when called with `again=True`
    NotRegistered(why)  the back end does not know the host (any more): register it first

What is not an answer is an exception: `BackendUnavailable` for weather (nobody answers, answers 5xx, is starting up).

**Destroying.** Verbs that can destroy (`Act`) take a `Permit`. The back end reads its own record of the host afresh, says in a
`Sight` what it sees there, and asks the permit directly before it acts. The permit reads the API object afresh and answers with
a `Refusal` or with None. So both sides have been looked at just before anything is lost, and neither knows the other's words.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from ingot.api.baremetalhost import BootMode, HardwareDetails, Image, RootDeviceHints
from ingot.api.meta import Key
from ingot.trust import Secret

T_co = TypeVar("T_co", covariant=True)


# Answers


@dataclass(frozen=True, slots=True)
class Ready(Generic[T_co]):
    value: T_co


@dataclass(frozen=True, slots=True)
class Busy:
    why: str
    """The phase, as a sentence: what is going on."""
    detail: str = ""
    """Where in that phase. It may change every second, so nobody is woken or written for it alone."""


@dataclass(frozen=True, slots=True)
class Failed:
    message: str
    """What went wrong, as a sentence without a full stop."""
    refused_credentials: bool = False
    """It is the user name or the password that was refused."""


@dataclass(frozen=True, slots=True)
class NotRegistered:
    why: str


class BackendError(Exception):
    """Something between us and the back end went wrong."""


class BackendUnavailable(BackendError):
    """Nobody answers, or not yet. Try again later; nothing is known about the host."""


# Before destroying


class Act(enum.Enum):
    """What can cost somebody a running machine or its data."""

    CLEAN = "clean"
    DEPLOY = "deploy"
    UNDEPLOY = "undeploy"
    POWER_OFF = "power off"
    DELETE = "delete"
    FORGET = "forget"
    """Drop the back end's record of a host, to make it anew. The machine is not touched, but for a while nobody manages it."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What the back end sees at the host right now, in words that any back end can use."""

    backend_id: str
    state: str
    """The back end's own word for the state; for messages only."""
    holds_instance: bool
    """An operating system was deployed or adopted here and has not been removed."""
    powered_on: bool | None


@dataclass(frozen=True, slots=True)
class Refusal:
    why: str


Permit = Callable[[Act, Sight], Awaitable[Refusal | None]]


# Orders


@dataclass(frozen=True, slots=True)
class HostRef:
    """Which host is meant."""

    key: Key
    uid: str
    backend_id: str = ""
    """What the back end called the host when it was registered; "" before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    username: str
    password: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """All that a back end needs to take a host under management."""

    address: str
    credentials: Credentials
    verify_certificate: bool = True
    boot_mac: str = ""
    boot_mode: BootMode = "UEFI"
    architecture: str = ""
    automated_cleaning: bool = True
    disable_power_off: bool = False
    inspection: str = "agent"
    """agent, fast, or disabled."""
    nic_macs: tuple[str, ...] = ()
    runs_a_system: bool = False
    """What runs on the machine belongs to this host and is to stay."""


@dataclass(frozen=True, slots=True)
class Registered:
    backend_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigDrive:
    """What a new operating system is told at its first boot. All of it is secret."""

    user_data: Secret = field(default_factory=lambda: Secret(""))
    network_data: Secret = field(default_factory=lambda: Secret(""))
    """JSON or YAML text, as the user wrote it."""
    meta_data: Mapping[str, object] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What is to be on the host's disk."""

    image: Image
    config_drive: ConfigDrive
    root_device: RootDeviceHints | None = None
    boot_mode: BootMode = "UEFI"


class Power(enum.Enum):
    ON = "on"
    OFF = "off"


class PowerOffMode(enum.Enum):
    SOFT = "soft"
    HARD = "hard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """What can be told of a host without asking it."""

    powered_on: bool | None
    """None: not known."""
    power_failure: bool = False
    """The back end cannot reach the power controls."""
    health: str = ""
    """OK, Warning, Critical, or "" where the back end does not say."""


class _Everything(enum.Enum):
    EVERYTHING = enum.auto()


EVERYTHING = _Everything.EVERYTHING
"""In `changes()`: something may have been missed, look at every host again."""

Change = Key | _Everything


class Provisioner(Protocol):
    """A back end. See the module's docstring for the rules that all calls keep.

    `again` on a call says that the failure of the last attempt has been reported and the next attempt is due.
    """

    async def register(
        self, host: HostRef, access: Access, *, credentials_changed: bool, again: bool
    ) -> Ready[Registered] | Busy | Failed:
        """Make the host known and prove that its credentials work.

        Called in every pass, so it is cheap when nothing changed. Changed credentials are handed on and tried.
        A host that is known by its MAC or name from an earlier life is found again, never registered twice.
        """
        ...

    async def inspect(
        self, host: HostRef, *, permit: Permit, again: bool, refresh: bool
    ) -> Ready[HardwareDetails] | Busy | Failed | NotRegistered:
        """Find out what the machine is made of. `refresh`: do it anew although it was done before."""
        ...

    def cannot_deploy(self, image: Image) -> str | None:
        """Why this back end can never deploy this image, as a sentence; None if it can be tried.

        Asked before the machine is touched: what could never work should cost nobody a cleaned disk.
        """
        ...

    async def provision(
        self, host: HostRef, wanted: Deployment, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        """Put the image on the disk and start it."""
        ...

    async def deprovision(
        self, host: HostRef, *, automated_cleaning: bool, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        """Stop what runs on the host and clean its disks, unless cleaning is off."""
        ...

    async def adopt(
        self, host: HostRef, installed: Image | None, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        """Take over a host that runs already, without touching it. `Ready` when it is already managed so.

        Where the back end's record stands in the way it is dropped, which the permit is asked for as `FORGET`; the
        answer is then `NotRegistered`.
        """
        ...

    async def vitals(self, host: HostRef) -> Vitals | NotRegistered:
        """What is known of power and health, from memory: cheap enough for every pass."""
        ...

    async def set_power(
        self, host: HostRef, wanted: Power, *, mode: PowerOffMode, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        """Switch the host on or off. A soft power off falls back to a hard one where soft is not offered."""
        ...

    async def delete(self, host: HostRef, *, permit: Permit) -> Ready[None] | Busy | Failed:
        """Forget the host. `Ready` when the back end does not know it (any more)."""
        ...

    def changes(self) -> AsyncIterator[Change]:
        """Hosts to look at again, as they change. Ends only when the back end is closed."""
        ...

    async def check(self) -> None:
        """Raise `BackendUnavailable`, saying why, while the back end cannot take orders."""
        ...
