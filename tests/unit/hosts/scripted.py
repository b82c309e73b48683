"""A back end for tests that does what its script says.

A real implementation of the protocol over machines in memory: without a script every order succeeds at once. `script` makes
the next answers of one verb different; `orders` is what was really done to a machine. Destructive orders ask the permit, as the
protocol demands, and are not carried out when it refuses.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ingot.api.baremetalhost import RAID, CustomDeploy, HardwareDetails, Image
from ingot.api.firmwareschema import SettingSchema
from ingot.api.hardwaredata import CPU, NIC
from ingot.api.meta import Key
from ingot.api.preprovisioningimage import ImageFormat
from ingot.provisioner import (
    EVERYTHING,
    Access,
    Act,
    BackendUnavailable,
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
    Sight,
    Subscription,
    Vitals,
    answer_to,
)

DETAILS = HardwareDetails(
    hostname="h1",
    ram_mebibytes=8192,
    cpu=CPU(arch="x86_64", count=4),
    nics=[NIC(name="eth0", mac="00:00:5e:00:53:01")],
)


@dataclass
class Machine:
    known: bool = False
    id: str = ""
    """What the machine is called, if not by its usual name; see `rename`."""
    on: bool = False
    instance: Image | None = None
    deployment: Deployment | None = None
    adopted: Image | None = None
    adopted_step: CustomDeploy | None = None
    access: Access | None = None
    settings: dict[str, str] = field(
        default_factory=lambda: {"ProcTurboMode": "Enabled", "QuietBoot": "true"}
    )
    schema: dict[str, SettingSchema] = field(
        default_factory=lambda: {
            "ProcTurboMode": SettingSchema(
                attribute_type="Enumeration", allowable_values=["Enabled", "Disabled"], read_only=False
            ),
            "QuietBoot": SettingSchema(attribute_type="Boolean", read_only=False),
        }
    )
    components: dict[str, Component] = field(default_factory=dict)
    raid: RAID | None = None
    order: str = ""
    """The name of the preparation or service that was last begun."""
    preparation: Preparation | None = None
    """The preparation that was begun and whose end nobody has asked for."""
    under_way: bool = False
    """Whether something slow is going on; see `finish`."""
    details: HardwareDetails = DETAILS
    reports: str = ""
    """The build that the ramdisk says it is."""
    """What an inspection finds."""
    inspections: list[Inspection] = field(default_factory=list)
    """Every order to inspect, whatever was answered."""
    renewal: str = ""
    flashed: list[str] = field(default_factory=list)
    """The firmware that was written, in order."""
    deaf: bool = False
    """The firmware takes settings and does not keep them."""
    service: Service | None = None
    """What is being changed of a machine in use."""
    broken: str = ""
    """Why the last service failed."""
    data_image: str = ""
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    record_in_the_way: bool = False
    """The machine runs, and the record of it has to be dropped and made anew before it can be adopted."""
    power_failure: bool = False
    restarts: int = 0
    """How often somebody wanted the ramdisk to be booted once more."""
    orders: list[str] = field(default_factory=list)


class ScriptedBackend:
    """Does at once what it is told, unless a script says otherwise."""

    def __init__(self) -> None:
        self.machines: dict[Key, Machine] = defaultdict(Machine)
        self.away = ""
        self.census: Census | None = None
        self.unknown_formats: set[str] = set()
        self.own_ramdisk_formats: tuple[ImageFormat, ...] = ()
        self.network_boot = False
        self.remark = ""
        self.slow: set[str] = set()
        """Verbs that begin what they are told and are not done until `finish`."""
        self.when_begun: Callable[[], None] | None = None
        """Called once, when a preparation was begun and nobody has been told so yet."""
        self.meanwhile: dict[str, Callable[[], Awaitable[Any]]] = {}
        """What others do once while a verb is carried out."""
        self._scripts: dict[str, deque[Any]] = defaultdict(deque)
        self._held: dict[str, Any] = {}
        self.asked: Counter[str] = Counter()
        """How often each verb was called."""
        self._changes: asyncio.Queue[Change] = asyncio.Queue()

    # What a test says

    def script(self, verb: str, *answers: Any) -> None:
        """The next answers of this verb, before it works again."""
        self._scripts[verb].extend(answers)

    def hold(self, verb: str, answer: Any) -> None:
        """The same answer from this verb, until it is let go."""
        self._held[verb] = answer

    def let_go(self, verb: str) -> None:
        self._held.pop(verb, None)

    def finish(self, key: Key) -> None:
        """What was slow comes to its end."""
        machine = self.machines[key]
        machine.under_way = False
        self._end_preparation(machine)
        self.tell(key)

    def break_off(self, key: Key, why: str) -> None:
        """What was slow fails."""
        machine = self.machines[key]
        machine.under_way, machine.broken = False, why
        self.tell(key)

    def rename(self, key: Key, backend_id: str) -> None:
        """Have a new record of the machine, which knows nothing of what was done before."""
        machine = self.machines[key]
        machine.id, machine.order, machine.preparation, machine.under_way = backend_id, "", None, False
        self.tell(key)

    def tell(self, key: Key) -> None:
        """There is news of this host."""
        self._changes.put_nowait(key)

    @property
    def is_heard_out(self) -> bool:
        """Whether all news was taken."""
        return self._changes.empty()

    def come_back(self) -> None:
        """Be there again, and say so."""
        self.away = ""
        self._changes.put_nowait(EVERYTHING)

    def lose_memory(self) -> None:
        """Forget every host; the machines themselves go on running."""
        for machine in self.machines.values():
            machine.known = False
        self._changes.put_nowait(EVERYTHING)

    # The protocol

    async def register(
        self, host: HostRef, access: Access, *, credentials_changed: bool, again: bool
    ) -> Ready[Registered] | Busy | Failed | NotRegistered:
        machine = self.machines[host.key]
        if access.credentials is None and not machine.known:
            return NotRegistered("the credentials are needed")
        await self._let_others_act("register")
        if (scripted := self._scripted("register")) is not None:
            return scripted
        if not machine.known:
            machine.known = True
            machine.orders.append("register")
        if credentials_changed:
            machine.orders.append(f"try {access.credentials.username}")
        if access.credentials is None and machine.access is not None:
            access = replace(access, credentials=machine.access.credentials)
        machine.access = access
        return Ready(Registered(machine.id or f"id-of-{host.key.name}", self.remark))

    async def inspect(
        self, host: HostRef, wanted: Inspection, *, permit: Permit, again: bool
    ) -> Ready[Findings] | Busy | Failed | NotRegistered:
        machine = self.machines[host.key]
        machine.restarts += wanted.restart
        machine.inspections.append(wanted)
        if (scripted := self._scripted("inspect")) is not None:
            return scripted
        if not wanted.renewal:
            machine.orders.append("inspect")
        elif machine.renewal != wanted.renewal:
            machine.renewal = wanted.renewal
            machine.orders.append("inspect anew")
        return Ready(Findings(hardware=machine.details, ramdisk=machine.reports))

    def ramdisk_formats(self, address: str) -> tuple[ImageFormat, ...]:
        return self.own_ramdisk_formats

    def boots_over_network(self, address: str) -> bool:
        return self.network_boot

    async def prepare(
        self, host: HostRef, wanted: Preparation, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        if (scripted := self._scripted("prepare")) is not None:
            return scripted
        machine = self.machines[host.key]
        if machine.broken:
            if not again:
                return Failed(machine.broken)
            machine.broken, machine.order, machine.preparation = "", "", None
        self._end_preparation(machine)
        if wanted and machine.preparation is None and machine.order != wanted.name:
            if (refused := await self._asked(host, permit, Act.CLEAN)) is not None:
                return refused
            machine.order, machine.preparation = wanted.name, wanted
            machine.under_way = "prepare" in self.slow
            machine.orders.append("prepare")
            await self._tell_that_it_began()
        if machine.under_way:
            return Busy("cleaning", begun=machine.order == wanted.name)
        self._end_preparation(machine)
        return Ready(None)

    def _end_preparation(self, machine: Machine) -> None:
        done = machine.preparation
        if done is None or machine.under_way:
            return
        machine.preparation = None
        if done.raid is not None:
            machine.raid = done.raid
        self._change_firmware(machine, done)

    async def _tell_that_it_began(self) -> None:
        if self.when_begun is not None:
            self.when_begun()
            self.when_begun = None
            # Long enough for whoever asked to be gone.
            await asyncio.sleep(0.1)

    async def service(
        self, host: HostRef, wanted: Service, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        if (scripted := self._scripted("service")) is not None:
            return scripted
        machine = self.machines[host.key]
        if not wanted:
            return self._end_service(machine)
        if machine.broken and not again:
            return Failed(machine.broken)
        if machine.service is None and (machine.broken or machine.order != wanted.name):
            if (refused := await self._asked(host, permit, Act.SERVICE)) is not None:
                return refused
            machine.order, machine.service, machine.broken = wanted.name, wanted, ""
            machine.orders.append("service")
        if machine.service is not None and "service" in self.slow:
            return Busy("changing the firmware", begun=machine.order == wanted.name)
        if (done := machine.service) is not None:
            self._change_firmware(machine, done)
            machine.service, machine.on = None, True
        if machine.order != wanted.name:
            # Something else came to its end just now; what is wanted is begun next.
            self.tell(host.key)
            return Busy("the machine is started")
        return Ready(None)

    @staticmethod
    def _end_service(machine: Machine) -> Ready[None]:
        if machine.service is not None or machine.broken:
            machine.orders.append("end service")
            machine.service, machine.broken, machine.on = None, "", True
        return Ready(None)

    @staticmethod
    def _change_firmware(machine: Machine, wanted: Preparation | Service) -> None:
        if not machine.deaf:
            machine.settings.update(wanted.firmware.settings)
        for update in wanted.firmware.updates:
            machine.flashed.append(update.url)
            before = machine.components.get(update.component)
            machine.components[update.component] = Component(
                name=update.component,
                initial_version=before.initial_version if before else "1.0",
                current_version=update.url.rpartition("/")[2],
                last_version_flashed=update.url.rpartition("/")[2],
            )

    async def firmware_settings(self, host: HostRef) -> Ready[FirmwareReport] | Busy | NotRegistered:
        if (scripted := self._scripted("firmware_settings")) is not None:
            return scripted
        machine = self.machines[host.key]
        return Ready(FirmwareReport(settings=dict(machine.settings), schema=machine.schema, vendor="Acme"))

    async def firmware_components(self, host: HostRef) -> Ready[tuple[Component, ...]] | Busy | NotRegistered:
        if (scripted := self._scripted("firmware_components")) is not None:
            return scripted
        return Ready(tuple(self.machines[host.key].components.values()))

    def cannot_deploy(self, image: Image | None, custom_deploy: CustomDeploy | None) -> str | None:
        unknown = image is not None and image.format in self.unknown_formats
        return f"this back end knows no {image.format}" if image is not None and unknown else None

    async def provision(
        self, host: HostRef, wanted: Deployment, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        machine = self.machines[host.key]
        machine.restarts += wanted.restart
        if (scripted := self._scripted("provision")) is not None:
            return scripted
        if machine.instance is None:
            if (refused := await self._asked(host, permit, Act.DEPLOY)) is not None:
                return refused
            machine.instance, machine.deployment, machine.on = wanted.image, wanted, True
            machine.orders.append("deploy")
        return Ready(None)

    async def deprovision(
        self, host: HostRef, *, automated_cleaning: bool, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        machine = self.machines[host.key]
        if (scripted := self._scripted("deprovision")) is not None:
            return scripted
        if machine.instance is not None:
            if (refused := await self._asked(host, permit, Act.UNDEPLOY)) is not None:
                return refused
            machine.instance, machine.on = None, False
            machine.orders.append("undeploy")
        return Ready(None)

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
        if (scripted := self._scripted("adopt")) is not None:
            return scripted
        machine = self.machines[host.key]
        if machine.record_in_the_way:
            if (refused := await self._asked(host, permit, Act.FORGET)) is not None:
                machine.orders.append("refused forget")
                return refused
            machine.record_in_the_way = machine.known = False
            machine.orders.append("forget")
            self.tell(host.key)
            return NotRegistered("the record was dropped")
        machine.adopted, machine.adopted_step = installed, custom_deploy
        return Ready(None)

    async def vitals(self, host: HostRef) -> Vitals | NotRegistered:
        machine = self.machines[host.key]
        if not machine.known:
            return NotRegistered("never heard of it")
        return Vitals(powered_on=machine.on, power_failure=machine.power_failure, health="OK")

    async def set_power(
        self, host: HostRef, wanted: Power, *, mode: PowerOffMode, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        machine = self.machines[host.key]
        await self._let_others_act("set_power")
        if (scripted := self._scripted("set_power")) is not None:
            return scripted
        if wanted is Power.OFF and (refused := await self._asked(host, permit, Act.POWER_OFF)) is not None:
            return refused
        if wanted is Power.OFF and machine.access is not None and machine.access.disable_power_off:
            machine.orders.append(f"reboot {mode.value}")
            return Ready(None)
        machine.on = wanted is Power.ON
        machine.orders.append(f"power {wanted.value}" if wanted is Power.ON else f"power off {mode.value}")
        return Ready(None)

    async def set_data_image(
        self, host: HostRef, url: str, *, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        if (scripted := self._scripted("set_data_image")) is not None:
            return scripted
        machine = self.machines[host.key]
        if machine.data_image != url:
            machine.orders.append(f"attach {url}" if url else "eject")
            machine.data_image = url
        return Ready(None)

    async def subscribe(
        self, host: HostRef, wanted: Subscription, *, again: bool
    ) -> Ready[str] | Busy | Failed | NotRegistered:
        await self._let_others_act("subscribe")
        if (scripted := self._scripted("subscribe")) is not None:
            return scripted
        subscriptions = self.machines[host.key].subscriptions
        for known, subscription in subscriptions.items():
            if subscription == wanted:
                return Ready(known)
        subscriptions[name := f"sub-{len(subscriptions) + 1}"] = wanted
        return Ready(name)

    async def unsubscribe(
        self, host: HostRef, subscription_id: str, *, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        if (scripted := self._scripted("unsubscribe")) is not None:
            return scripted
        self.machines[host.key].subscriptions.pop(subscription_id, None)
        return Ready(None)

    async def detach(self, host: HostRef, *, force: bool, permit: Permit) -> Ready[None] | Busy | Failed:
        machine = self.machines[host.key]
        if (scripted := self._scripted("detach")) is not None:
            return scripted
        if machine.known:
            if (refused := await self._asked(host, permit, Act.DETACH)) is not None:
                return refused
            machine.known = False
            machine.orders.append("detach by force" if force else "detach")
        return Ready(None)

    async def delete(self, host: HostRef, *, permit: Permit) -> Ready[None] | Busy | Failed:
        machine = self.machines[host.key]
        if (scripted := self._scripted("delete")) is not None:
            return scripted
        if machine.known:
            if (refused := await self._asked(host, permit, Act.DELETE)) is not None:
                return refused
            machine.known = False
            machine.orders.append("delete")
        return Ready(None)

    async def changes(self) -> AsyncIterator[Change]:
        while True:
            yield await self._changes.get()

    def notice(self) -> str:
        return ""

    def follow(self, census: Census) -> None:
        self.census = census

    async def check(self) -> None:
        if self.away:
            raise BackendUnavailable(self.away)

    # Inside

    def _scripted(self, verb: str) -> Any:
        if self.away:
            raise BackendUnavailable(self.away)
        self.asked[verb] += 1
        if verb in self._held:
            held = self._held[verb]
            if isinstance(held, Exception):
                raise held
            return held
        return self._scripts[verb].popleft() if self._scripts[verb] else None

    async def _let_others_act(self, verb: str) -> None:
        if (others := self.meanwhile.pop(verb, None)) is not None:
            await others()
            # Long enough for everybody to have heard of it.
            await asyncio.sleep(0.1)

    async def _asked(self, host: HostRef, permit: Permit, act: Act) -> Busy | Failed | None:
        machine = self.machines[host.key]
        sight = Sight(
            "id",
            "in a test",
            holds_instance=machine.instance is not None,
            powered_on=machine.on,
            deployed_for=machine.deployment.name if machine.deployment is not None else None,
        )
        refused = await permit(act, sight)
        return answer_to(refused) if refused is not None else None


def _keeps_the_protocol(backend: ScriptedBackend) -> Provisioner:
    """For the type checker: what the class promises."""
    return backend
