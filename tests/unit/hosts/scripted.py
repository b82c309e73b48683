"""A back end for tests that does what its script says.

A real implementation of the protocol over machines in memory: without a script every order succeeds at once. `script` makes
the next answers of one verb different; `orders` is what was really done to a machine. Destructive orders ask the permit, as the
protocol demands, and are not carried out when it refuses.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from ingot.api.baremetalhost import HardwareDetails, Image
from ingot.api.hardwaredata import CPU, NIC
from ingot.api.meta import Key
from ingot.provisioner import (
    EVERYTHING,
    Access,
    Act,
    BackendUnavailable,
    Busy,
    Change,
    Deployment,
    Failed,
    HostRef,
    NotRegistered,
    Permit,
    Power,
    PowerOffMode,
    Ready,
    Registered,
    Sight,
    Vitals,
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
    on: bool = False
    instance: Image | None = None
    deployment: Deployment | None = None
    adopted: Image | None = None
    access: Access | None = None
    record_in_the_way: bool = False
    """The machine runs, and the record of it has to be dropped and made anew before it can be adopted."""
    orders: list[str] = field(default_factory=list)


class ScriptedBackend:
    """Does at once what it is told, unless a script says otherwise."""

    def __init__(self) -> None:
        self.machines: dict[Key, Machine] = defaultdict(Machine)
        self.away = ""
        self.unknown_formats: set[str] = set()
        self._scripts: dict[str, deque[Any]] = defaultdict(deque)
        self._held: dict[str, Any] = {}
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

    def tell(self, key: Key) -> None:
        """There is news of this host."""
        self._changes.put_nowait(key)

    def lose_memory(self) -> None:
        """Forget every host; the machines themselves go on running."""
        for machine in self.machines.values():
            machine.known = False
        self._changes.put_nowait(EVERYTHING)

    # The protocol

    async def register(
        self, host: HostRef, access: Access, *, credentials_changed: bool, again: bool
    ) -> Ready[Registered] | Busy | Failed:
        machine = self.machines[host.key]
        if (scripted := self._scripted("register")) is not None:
            return scripted
        if not machine.known:
            machine.known = True
            machine.orders.append("register")
        if credentials_changed:
            machine.orders.append(f"try {access.credentials.username}")
        machine.access = access
        return Ready(Registered(f"id-of-{host.key.name}"))

    async def inspect(
        self, host: HostRef, *, permit: Permit, again: bool, refresh: bool
    ) -> Ready[HardwareDetails] | Busy | Failed | NotRegistered:
        if (scripted := self._scripted("inspect")) is not None:
            return scripted
        self.machines[host.key].orders.append("inspect")
        return Ready(DETAILS)

    def cannot_deploy(self, image: Image) -> str | None:
        return f"this back end knows no {image.format}" if image.format in self.unknown_formats else None

    async def provision(
        self, host: HostRef, wanted: Deployment, *, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        machine = self.machines[host.key]
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
        self, host: HostRef, installed: Image | None, *, permit: Permit, again: bool
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
        machine.adopted = installed
        return Ready(None)

    async def vitals(self, host: HostRef) -> Vitals | NotRegistered:
        machine = self.machines[host.key]
        if not machine.known:
            return NotRegistered("never heard of it")
        return Vitals(powered_on=machine.on, health="OK")

    async def set_power(
        self, host: HostRef, wanted: Power, *, mode: PowerOffMode, permit: Permit, again: bool
    ) -> Ready[None] | Busy | Failed | NotRegistered:
        machine = self.machines[host.key]
        if (scripted := self._scripted("set_power")) is not None:
            return scripted
        if wanted is Power.OFF and (refused := await self._asked(host, permit, Act.POWER_OFF)) is not None:
            return refused
        machine.on = wanted is Power.ON
        machine.orders.append(f"power {wanted.value}" if wanted is Power.ON else f"power off {mode.value}")
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

    async def check(self) -> None:
        if self.away:
            raise BackendUnavailable(self.away)

    # Inside

    def _scripted(self, verb: str) -> Any:
        if self.away:
            raise BackendUnavailable(self.away)
        if verb in self._held:
            return self._held[verb]
        return self._scripts[verb].popleft() if self._scripts[verb] else None

    async def _asked(self, host: HostRef, permit: Permit, act: Act) -> Busy | None:
        machine = self.machines[host.key]
        sight = Sight("id", "in a test", holds_instance=machine.instance is not None, powered_on=machine.on)
        refused = await permit(act, sight)
        return Busy(refused.why) if refused is not None else None
