"""The seam: what a back end must be able to do with a host.

A back end is asked for facts and told what is wanted; it never decides whether that is right. Every call is idempotent: asked
again with the same order it goes on where it was, and once the order is fulfilled it answers `Ready` without acting.

A back end that was itself interrupted in the middle of an order goes on with it, and says nothing of that but `Busy`.

What it answers with, and how it asks before it destroys, is in `answers`; what it is told is in `orders`.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator
from typing import Protocol

from ingot.api.baremetalhost import CustomDeploy, Image
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import ImageFormat
from ingot.provisioner.answers import Busy, Failed, NotRegistered, Permit, Ready
from ingot.provisioner.census import Census
from ingot.provisioner.orders import (
    Access,
    Component,
    Deployment,
    Findings,
    FirmwareReport,
    HostRef,
    Inspection,
    Power,
    PowerOffMode,
    Preparation,
    Registered,
    Service,
    Subscription,
    Vitals,
)


class _Everything(enum.Enum):
    EVERYTHING = enum.auto()


EVERYTHING = _Everything.EVERYTHING
"""In `changes()`: something may have been missed, look at every host again."""

Change = Key | _Everything


class Provisioner(Protocol):
    """A back end. See the module's docstring for the rules that all calls keep.

    `again` on a call says that the failure of the last attempt has been reported and the next attempt is due.
    """

    # Management

    async def register(
        self, host: HostRef, access: Access, *, credentials_changed: bool, again: bool
    ) -> Ready[Registered] | Busy | Failed | NotRegistered:
        """Make the host known and prove that its credentials work.

        Called in every pass, so it is cheap when nothing changed. Changed credentials are handed on and tried. Asked without
        credentials, a back end that needs them answers `NotRegistered`, and does so at no other time.
        A host that is known by its MAC or name from an earlier life is found again, never registered twice.
        """
        ...

    def ramdisk_formats(self, address: str) -> tuple[ImageFormat, ...]:
        """Which formats of a ramdisk of its own a host with this BMC address can boot, best first; empty for none."""
        ...

    def boots_over_network(self, address: str) -> bool:
        """Whether such a host takes one of the few places that network boot has (DHCP, TFTP) while its ramdisk boots."""
        ...

    async def adopt(
        self,
        host: HostRef,
        installed: Image | None,
        *,
        custom_deploy: CustomDeploy | None = None,
        permit: Permit,
        again: bool,
        provisioning: str = "",
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        """Take over a host that runs already, without touching it. `Ready` when it is already managed so.

        What runs is the image, or what the custom deploy step has installed, with an image or without one. `provisioning`: the
        name of the one that put it there, which is noted where the back end knows none.

        Where the back end's record stands in the way it is dropped, which the permit is asked for as `FORGET`; the
        answer is then `NotRegistered`.
        """
        ...

    async def delete(self, host: HostRef, *, permit: Permit) -> Ready[None] | Busy | Failed:
        """Forget the host. `Ready` when the back end does not know it (any more)."""
        ...

    async def detach(self, host: HostRef, *, force: bool, permit: Permit) -> Ready[None] | Busy | Failed:
        """Forget the host and leave the machine as it is. `force`: whatever is waiting for its ramdisk is given up for it."""
        ...

    # Hardware and firmware

    async def inspect(
        self, host: HostRef, wanted: Inspection, *, permit: Permit, again: bool
    ) -> Ready[Findings] | Busy | Failed | NotRegistered:
        """Find out what the machine is made of."""
        ...

    async def prepare(
        self, host: HostRef, wanted: Preparation, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        """Change RAID volumes and firmware of a machine without a system. An order without a change is `Ready` as soon as
        nothing is under way."""
        ...

    async def service(
        self, host: HostRef, wanted: Service, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        """Change the firmware of a machine in use: its system is stopped, and started again afterwards."""
        ...

    async def firmware_settings(self, host: HostRef) -> Ready[FirmwareReport] | Busy | NotRegistered:
        """The settings as the machine last reported them; an empty report where it has none to tell."""
        ...

    async def firmware_components(self, host: HostRef) -> Ready[tuple[Component, ...]] | Busy | NotRegistered:
        """The parts with firmware and their versions; empty where the machine does not tell."""
        ...

    # The operating system

    def cannot_deploy(self, image: Image | None, custom_deploy: CustomDeploy | None) -> str | None:
        """Why this back end can never deploy this, as a sentence; None if it can be tried.

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

    # Power, virtual media, events

    async def vitals(self, host: HostRef) -> Vitals | NotRegistered:
        """What is known of power and health, from memory: cheap enough for every pass."""
        ...

    async def set_power(
        self, host: HostRef, wanted: Power, *, mode: PowerOffMode, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        """Switch the host on or off. A soft power off falls back to a hard one where soft is not offered.

        A host that was registered with `disable_power_off` is rebooted instead of switched off, and is on afterwards.
        """
        ...

    async def set_data_image(
        self, host: HostRef, url: str, *, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        """Have the image of this URL, and no other, in the machine's virtual CD drive; "": have it empty."""
        ...

    async def subscribe(
        self, host: HostRef, wanted: Subscription, *, again: bool
    ) -> Ready[str] | Busy | Failed | NotRegistered:
        """Have events of the management controller sent; the value is its name for the subscription. One that is there
        already is found, not made a second time."""
        ...

    async def unsubscribe(
        self, host: HostRef, subscription_id: str, *, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        """End a subscription. `Ready` when there is none of that name."""
        ...

    # The back end itself

    def changes(self) -> AsyncIterator[Change]:
        """Hosts to look at again, as they change. Ends only when the back end is closed."""
        ...

    def notice(self) -> str:
        """What is not as it should be although orders are taken, as a sentence; "" when all is well."""
        ...

    def follow(self, census: Census) -> None:
        """Whom there is, from now on: records of hosts that are gone are found and dropped, and their machines left alone.

        A record that the back end did not make is never touched.
        """
        ...

    async def check(self) -> None:
        """Raise `BackendUnavailable`, saying why, while the back end cannot take orders."""
        ...
