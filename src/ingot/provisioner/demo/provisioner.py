"""`DemoProvisioner`: the protocol over machines that are not there, dispatched to one module per verb.

Use as an async context manager. What is under way when it is closed or killed goes on when it is opened again over the same file.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from ingot.api.baremetalhost import CustomDeploy, Image
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import ImageFormat
from ingot.provisioner import (
    EVERYTHING,
    Access,
    Busy,
    Census,
    Change,
    Component,
    Deployment,
    Failed,
    Findings,
    FirmwareReport,
    HostRef,
    Inspection,
    NotRegistered,
    Permit,
    Power,
    PowerOffMode,
    Preparation,
    Provisioner,
    Ready,
    Registered,
    Service,
    Subscription,
    Vitals,
)
from ingot.provisioner.census import ORPHANED_AFTER
from ingot.provisioner.demo.adopt import adopt
from ingot.provisioner.demo.bmc import set_data_image, subscribe, unsubscribe
from ingot.provisioner.demo.configure import firmware_components, firmware_settings, prepare, service
from ingot.provisioner.demo.deploy import deprovision, provision
from ingot.provisioner.demo.hall import Hall
from ingot.provisioner.demo.inspect import inspect
from ingot.provisioner.demo.leave import delete, detach
from ingot.provisioner.demo.machine import Machine
from ingot.provisioner.demo.orphans import Orphans
from ingot.provisioner.demo.outages import Outages
from ingot.provisioner.demo.plan import Plan
from ingot.provisioner.demo.power import set_power, vitals
from ingot.provisioner.demo.register import register
from ingot.provisioner.demo.script import Script


class DemoProvisioner:
    """A back end whose machines are rows in a file, or only in memory where no file is given."""

    def __init__(
        self,
        path: Path | None = None,
        script: Script = Script(),  # noqa: B008 - frozen
        *,
        clock: Callable[[], float] = time.time,
        orphaned_after: float = ORPHANED_AFTER,
    ) -> None:
        self._hall = Hall(path, script, clock)
        self._outages = Outages(self._hall)
        self._orphans = Orphans(self._hall, orphaned_after)

    async def __aenter__(self) -> Self:
        await self._hall.open()
        self._outages.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._orphans.close()
        await self._hall.close()

    # What a test or a demonstration does to the machines

    def machine(self, key: Key) -> Machine:
        """The machine that this host's name stands for."""
        return self._hall.machine(key)

    def play(self, script: Script, *, quietly: bool = False) -> None:
        """Go by another script from now on. What is under way ends as was decided when it began; outages stay as they were.

        `quietly`: nobody is told to look again, as when somebody mends a machine by hand.
        """
        self._hall.plan = Plan(script)
        if not quietly:
            self._hall.changes.announce(EVERYTHING)

    def go_away(self, why: str = "the demo back end was told to be away") -> None:
        """Answer nobody."""
        self._outages.go_away(why)

    def come_back(self) -> None:
        self._outages.come_back()

    def lose_memory(self) -> None:
        """Forget every host; the machines themselves go on."""
        self._hall.forget_all()

    # The protocol

    async def register(
        self, host: HostRef, access: Access, *, credentials_changed: bool, again: bool
    ) -> Ready[Registered] | Busy | Failed | NotRegistered:
        self._hall.check()
        return await register(self._hall, host, access, again=again)

    def ramdisk_formats(self, address: str) -> tuple[ImageFormat, ...]:
        return tuple(self._hall.plan.script.ramdisk_formats)

    def boots_over_network(self, address: str) -> bool:
        return self._hall.plan.script.network_boot

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
        self._hall.check()
        return await adopt(self._hall, host, permit=permit, again=again, provisioning=provisioning)

    async def delete(self, host: HostRef, *, permit: Permit) -> Ready[None] | Busy | Failed:
        self._hall.check()
        return await delete(self._hall, host, permit=permit)

    async def detach(self, host: HostRef, *, force: bool, permit: Permit) -> Ready[None] | Busy | Failed:
        self._hall.check()
        return await detach(self._hall, host, force=force, permit=permit)

    async def inspect(
        self, host: HostRef, wanted: Inspection, *, permit: Permit, again: bool
    ) -> Ready[Findings] | Busy | Failed | NotRegistered:
        self._hall.check()
        return await inspect(self._hall, host, wanted, permit=permit, again=again)

    async def prepare(
        self, host: HostRef, wanted: Preparation, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        self._hall.check()
        return await prepare(self._hall, host, wanted, permit=permit, again=again)

    async def service(
        self, host: HostRef, wanted: Service, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        self._hall.check()
        return await service(self._hall, host, wanted, permit=permit, again=again)

    async def firmware_settings(self, host: HostRef) -> Ready[FirmwareReport] | Busy | NotRegistered:
        self._hall.check()
        return await firmware_settings(self._hall, host)

    async def firmware_components(self, host: HostRef) -> Ready[tuple[Component, ...]] | Busy | NotRegistered:
        self._hall.check()
        return firmware_components(self._hall, host)

    def cannot_deploy(self, image: Image | None, custom_deploy: CustomDeploy | None) -> str | None:
        return None

    async def provision(
        self, host: HostRef, wanted: Deployment, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        self._hall.check()
        return await provision(self._hall, host, wanted, permit=permit, again=again)

    async def deprovision(
        self, host: HostRef, *, automated_cleaning: bool, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        self._hall.check()
        return await deprovision(
            self._hall, host, automated_cleaning=automated_cleaning, permit=permit, again=again
        )

    async def vitals(self, host: HostRef) -> Vitals | NotRegistered:
        self._hall.check()
        return vitals(self._hall, host)

    async def set_power(
        self, host: HostRef, wanted: Power, *, mode: PowerOffMode, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        self._hall.check()
        return await set_power(self._hall, host, wanted, mode=mode, permit=permit, again=again)

    async def set_data_image(
        self, host: HostRef, url: str, *, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        self._hall.check()
        return await set_data_image(self._hall, host, url, again=again)

    async def subscribe(
        self, host: HostRef, wanted: Subscription, *, again: bool
    ) -> Ready[str] | Busy | Failed | NotRegistered:
        self._hall.check()
        return await subscribe(self._hall, host, wanted, again=again)

    async def unsubscribe(
        self, host: HostRef, subscription_id: str, *, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        self._hall.check()
        return await unsubscribe(self._hall, host, subscription_id, again=again)

    def changes(self) -> AsyncIterator[Change]:
        return self._hall.changes.listen()

    def notice(self) -> str:
        return ""

    def follow(self, census: Census) -> None:
        self._orphans.follow(census)

    async def check(self) -> None:
        self._hall.check()


def _keeps_the_protocol(backend: DemoProvisioner) -> Provisioner:
    """For the type checker: what the class promises."""
    return backend
