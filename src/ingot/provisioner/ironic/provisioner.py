"""`IronicProvisioner`: the protocol, dispatched to one module per verb.

Owns the life of the parts: client, cache, the watch that keeps the cache true, the push receiver. Use as an async context
manager; while it is open the background work runs, and `changes()` ends when it closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from ingot.api.baremetalhost import CustomDeploy, Image
from ingot.api.preprovisioningimage import ImageFormat
from ingot.provisioner import (
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
from ingot.provisioner.changes import Changes
from ingot.provisioner.ironic.adopt import adopt
from ingot.provisioner.ironic.cache import NodeCache
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.data_image import set_data_image
from ingot.provisioner.ironic.delete import delete
from ingot.provisioner.ironic.deprovision import deprovision
from ingot.provisioner.ironic.detach import detach
from ingot.provisioner.ironic.errors import Unavailable
from ingot.provisioner.ironic.firewall import Firewall
from ingot.provisioner.ironic.firmware import firmware_components, firmware_settings
from ingot.provisioner.ironic.inspect import inspect
from ingot.provisioner.ironic.instance import UnusableOrder, check_order
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.orphans import Orphans
from ingot.provisioner.ironic.power import set_power, vitals
from ingot.provisioner.ironic.prepare import prepare
from ingot.provisioner.ironic.provision import provision
from ingot.provisioner.ironic.push import PushListen, PushReceiver
from ingot.provisioner.ironic.ramdisks import boots_over_network, ramdisk_formats
from ingot.provisioner.ironic.register import Registrar
from ingot.provisioner.ironic.service import service
from ingot.provisioner.ironic.settings import IronicAccess
from ingot.provisioner.ironic.subscriptions import subscribe, unsubscribe
from ingot.provisioner.ironic.trials import Trials
from ingot.provisioner.ironic.watch import Watch


class IronicProvisioner:
    """A back end that drives one Ironic. What users supply passes the firewall first."""

    def __init__(self, access: IronicAccess, push: PushListen | None = None) -> None:
        self._client = IronicClient(access)
        self._changes = Changes()
        self._nodes = Nodes(
            self._client,
            NodeCache(),
            self._changes,
            is_told=lambda: self._watch.push_is_heard,
            inspections=access.inspections,
        )
        self._orphans = Orphans(self._nodes, access.orphaned_after)
        self._trials = Trials(self._client, self._changes)
        self._registrar = Registrar(self._nodes, self._trials, access.ramdisk, access.site)
        self._watch = Watch(
            self._client,
            self._nodes.cache,
            self._changes,
            after_list=self._orphans.sweep,
            started_anew=self._registrar.doubt_all,
            moved_on=self._nodes.inspections.moved_on,
        )
        self._persistent_boot = access.persistent_boot
        self._shared = access.shared
        self._firewall = Firewall(access.site.policy)
        self._receiver = PushReceiver(push, self._watch.take) if push else None
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._receiver is not None:
            await self._receiver.start()
        self._watching = asyncio.create_task(self._watch.run(), name="watch Ironic's nodes")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._receiver is not None:
            await self._receiver.stop()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await self._trials.close()
        self._changes.close()
        await self._client.close()

    @property
    def push_port(self) -> int | None:
        """Where push is received; None without a receiver."""
        return self._receiver.port if self._receiver else None

    @property
    def push_is_heard(self) -> bool:
        """Whether Ironic pushes right now; otherwise its nodes are listed every two seconds while something is in flight."""
        return self._watch.push_is_heard

    async def register(
        self, host: HostRef, access: Access, *, credentials_changed: bool, again: bool
    ) -> Ready[Registered] | Busy | Failed | NotRegistered:
        if refused := self._firewall.access(host, access):
            return refused
        return await self._registrar.register(
            host, access, credentials_changed=credentials_changed, again=again
        )

    async def inspect(
        self, host: HostRef, wanted: Inspection, *, permit: Permit, again: bool
    ) -> Ready[Findings] | Busy | Failed | NotRegistered:
        return await inspect(self._nodes, host, wanted, permit=permit, again=again)

    async def prepare(
        self, host: HostRef, wanted: Preparation, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        if refused := self._firewall.preparation(wanted):
            return refused
        return await prepare(self._nodes, host, wanted, permit=permit, again=again)

    async def service(
        self, host: HostRef, wanted: Service, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        if refused := self._firewall.service(wanted):
            return refused
        return await service(self._nodes, host, wanted, permit=permit, again=again)

    async def firmware_settings(self, host: HostRef) -> Ready[FirmwareReport] | NotRegistered:
        return await firmware_settings(self._nodes, host)

    async def firmware_components(self, host: HostRef) -> Ready[tuple[Component, ...]] | NotRegistered:
        return await firmware_components(self._nodes, host)

    def ramdisk_formats(self, address: str) -> tuple[ImageFormat, ...]:
        return ramdisk_formats(address)

    def boots_over_network(self, address: str) -> bool:
        return boots_over_network(address)

    def cannot_deploy(self, image: Image | None, custom_deploy: CustomDeploy | None) -> str | None:
        if refused := self._firewall.image(image, custom_deploy):
            return refused.message
        try:
            check_order(image, custom_deploy)
        except UnusableOrder as problem:
            return str(problem)
        return None

    async def provision(
        self, host: HostRef, wanted: Deployment, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        if refused := self._firewall.deployment(wanted):
            return refused
        return await provision(
            self._nodes,
            host,
            wanted,
            persistent_boot=self._persistent_boot,
            permit=permit,
            again=again,
        )

    async def deprovision(
        self, host: HostRef, *, automated_cleaning: bool, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        return await deprovision(
            self._nodes, host, automated_cleaning=automated_cleaning, permit=permit, again=again
        )

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
        if self._firewall.installed(installed):
            # The machine runs all the same. What today's rules refuse is not handed on, and that is all.
            installed = None
        return await adopt(
            self._nodes,
            host,
            installed,
            custom_deploy,
            permit=permit,
            again=again,
            provisioning=provisioning,
        )

    async def vitals(self, host: HostRef) -> Vitals | NotRegistered:
        return await vitals(self._nodes, host)

    async def set_power(
        self, host: HostRef, wanted: Power, *, mode: PowerOffMode, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        return await set_power(self._nodes, host, wanted, mode=mode, permit=permit, again=again)

    async def delete(self, host: HostRef, *, permit: Permit) -> Ready[None] | Busy | Failed:
        outcome = await delete(self._nodes, host, permit=permit)
        if isinstance(outcome, Ready):
            self._registrar.forget(host)
        return outcome

    async def detach(self, host: HostRef, *, force: bool, permit: Permit) -> Ready[None] | Busy | Failed:
        outcome = await detach(self._nodes, host, force=force, permit=permit)
        if isinstance(outcome, Ready):
            self._registrar.forget(host)
        return outcome

    async def set_data_image(
        self, host: HostRef, url: str, *, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        if refused := self._firewall.data_image(url):
            return refused
        return await set_data_image(self._nodes, host, url, again=again)

    async def subscribe(
        self, host: HostRef, wanted: Subscription, *, again: bool
    ) -> Ready[str] | Busy | Failed | NotRegistered:
        if refused := self._firewall.subscription(wanted):
            return refused
        # The BMC answers at once, so there is no failure of an earlier attempt that would have to be told before.
        return await subscribe(self._nodes, host, wanted)

    async def unsubscribe(
        self, host: HostRef, subscription_id: str, *, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        if refused := self._firewall.subscription_id(subscription_id):
            return refused
        return await unsubscribe(self._nodes, host, subscription_id)

    def changes(self) -> AsyncIterator[Change]:
        return self._changes.listen()

    def notice(self) -> str:
        push = self._watch.notice if self._receiver is not None else ""
        return "; ".join(filter(None, (push, self._orphans.notice)))

    def follow(self, census: Census) -> None:
        if not self._shared:
            self._orphans.census = census

    async def check(self) -> None:
        """Ironic answers, speaks a version we know, and has a conductor with a driver."""
        if self._watching is not None and self._watching.done():
            # It only ends by a bug; nobody would hear of changes any more.
            self._watching.result()
        if not await self._client.drivers():
            raise Unavailable("Ironic answers, but no conductor has a driver ready yet; it is starting up")


def _keeps_the_protocol(backend: IronicProvisioner) -> Provisioner:
    """For the type checker: what the class promises."""
    return backend
