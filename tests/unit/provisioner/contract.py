"""The stage on which a back end shows that it keeps the protocol's promises.

A `Stage` is one back end with a machine behind it that a test can look at and spoil. The tests in test_contract_*.py know
nothing else, so that every back end takes the same ones: it needs a stage, and an entry in `stages.py`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from ironic_orders import IMAGE, MAC, ORDER, Guard
from msgspec.structs import replace

from ingot.api.baremetalhost import RAID
from ingot.api.baremetalhost.parts import SoftwareRAIDVolume
from ingot.api.hostfirmwarecomponents import FirmwareUpdate
from ingot.api.meta import Key
from ingot.provisioner import (
    EVERYTHING,
    Access,
    Busy,
    Census,
    ConfigDrive,
    Credentials,
    Deployment,
    FirmwareChange,
    HostRef,
    Inspection,
    Power,
    PowerOffMode,
    Preparation,
    Provisioner,
    Ready,
    Service,
    Subscription,
)
from ingot.trust import Secret

PATIENCE = 60
KEY = Key("rack", "h1")
UID = "5a6f7c3e-0000-4000-8000-000000000001"
ACCESS = Access(
    address="redfish-virtualmedia+https://127.0.0.1:8443/redfish/v1/Systems/1",
    credentials=Credentials(username="admin", password=Secret("s3cret")),
    boot_mac=MAC,
)
OTHER_IMAGE = replace(IMAGE, url="https://127.0.0.1/other.raw")
OTHER_ORDER = Deployment(image=OTHER_IMAGE, config_drive=ConfigDrive())
MIRROR = RAID(software_raid_volumes=[SoftwareRAIDVolume(level="1")])
SETTINGS = FirmwareChange(settings={"ProcTurboMode": "Disabled"})
UPDATE = FirmwareUpdate(component="bios", url="https://127.0.0.1/bios-3.0.bin")
EVENTS = Subscription(destination="https://127.0.0.1/events", context="rack")


class Stage(ABC):
    """A back end, and what a test may know and spoil of it."""

    backend: Provisioner
    answers_at_once: frozenset[str] = frozenset()
    """Verbs that are done while the caller waits: each call is an attempt, and tells its own failure."""

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    async def restart(self) -> None:
        """The operator ends and another begins, over the same machines and the same memory of them."""
        await self.close()
        await self.open()

    @abstractmethod
    def done(self, deed: str) -> int:
        """How often this was really done to the machine: inspect, prepare, service, deploy, undeploy, power off, reboot."""

    @abstractmethod
    def powered_on(self) -> bool: ...

    @abstractmethod
    def on_disk(self) -> str:
        """The URL of the image that is on the disk; "" for an empty disk."""

    @abstractmethod
    def will_fail(self, verb: str, times: int = 1) -> None:
        """The next attempts at this verb fail."""

    @abstractmethod
    async def lose_memory(self) -> None:
        """The back end forgets its hosts; the machine goes on."""

    @abstractmethod
    async def all_told(self) -> None:
        """Until everything that has happened is known to who was to be told."""

    @abstractmethod
    async def look_around(self, census: Census) -> None:
        """The back end compares all that it knows with the hosts that there are."""

    @abstractmethod
    def away(self, away: bool) -> None:
        """Whether the back end answers."""


class Play:
    """A host on a stage, and what a test asks for it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.permit = Guard()
        self.id = ""
        self.access = ACCESS
        self.heard: list[Key] = []
        self._news = asyncio.Event()

    @property
    def backend(self) -> Provisioner:
        return self.stage.backend

    @property
    def host(self) -> HostRef:
        return HostRef(KEY, UID, self.id)

    async def listen(self) -> None:
        async for change in self.backend.changes():
            if change is EVERYTHING or change == KEY:
                self.heard.append(KEY)
                self._news.set()

    def look_again(self) -> None:
        """As an operator does that has just begun: what happened before it listened, nobody told it."""
        self._news.set()

    async def to_end(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Ask, and ask again whenever there is news of the host, until the answer is not that it is under way."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    self._news.clear()
                    answer = await call()
                    if not isinstance(answer, Busy):
                        return answer
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"nothing was heard of the host any more after {answer}") from None

    # One verb each, in the words of the tests

    async def register(self, *, again: bool = False) -> Any:
        answer = await self.to_end(
            lambda: self.backend.register(self.host, self.access, credentials_changed=True, again=again)
        )
        if isinstance(answer, Ready):
            self.id = answer.value.backend_id
        return answer

    async def inspect(self, renewal: str = "", *, again: bool = False) -> Any:
        wanted = Inspection(renewal=renewal)
        return await self.to_end(
            lambda: self.backend.inspect(self.host, wanted, permit=self.permit, again=again)
        )

    async def prepare(self, wanted: Preparation | None = None, *, again: bool = False) -> Any:
        order = Preparation(name="first", raid=MIRROR, firmware=SETTINGS) if wanted is None else wanted
        return await self.to_end(
            lambda: self.backend.prepare(self.host, order, permit=self.permit, again=again)
        )

    async def service(self, wanted: Service | None = None, *, again: bool = False) -> Any:
        order = Service(name="first", firmware=SETTINGS) if wanted is None else wanted
        return await self.to_end(
            lambda: self.backend.service(self.host, order, permit=self.permit, again=again)
        )

    async def provision(self, wanted: Deployment = ORDER, *, again: bool = False) -> Any:
        return await self.to_end(
            lambda: self.backend.provision(self.host, wanted, permit=self.permit, again=again)
        )

    async def deprovision(self, *, again: bool = False) -> Any:
        return await self.to_end(
            lambda: self.backend.deprovision(
                self.host, automated_cleaning=True, permit=self.permit, again=again
            )
        )

    async def adopt(self, *, again: bool = False) -> Any:
        return await self.to_end(
            lambda: self.backend.adopt(self.host, IMAGE, permit=self.permit, again=again)
        )

    async def power(
        self, wanted: Power, mode: PowerOffMode = PowerOffMode.HARD, *, again: bool = False
    ) -> Any:
        return await self.to_end(
            lambda: self.backend.set_power(self.host, wanted, mode=mode, permit=self.permit, again=again)
        )

    async def data_image(self, url: str, *, again: bool = False) -> Any:
        return await self.to_end(lambda: self.backend.set_data_image(self.host, url, again=again))

    async def subscribe(self, wanted: Subscription = EVENTS, *, again: bool = False) -> Any:
        return await self.to_end(lambda: self.backend.subscribe(self.host, wanted, again=again))

    async def unsubscribe(self, name: str, *, again: bool = False) -> Any:
        return await self.to_end(lambda: self.backend.unsubscribe(self.host, name, again=again))

    async def detach(self, *, force: bool = False) -> Any:
        return await self.to_end(lambda: self.backend.detach(self.host, force=force, permit=self.permit))

    async def delete(self) -> Any:
        return await self.to_end(lambda: self.backend.delete(self.host, permit=self.permit))

    # And on to where a test begins

    async def registered(self) -> None:
        assert isinstance(await self.register(), Ready)
        self.permit.asked.clear()

    async def inspected(self) -> None:
        await self.registered()
        assert isinstance(await self.inspect(), Ready)
        self.permit.asked.clear()

    async def provisioned(self) -> None:
        await self.inspected()
        assert await self.provision() == Ready(None)
        await self.stage.all_told()
        self.permit.asked.clear()


@asynccontextmanager
async def playing(stage: Stage) -> AsyncIterator[Play]:
    """Opens the stage, and listens to its news through every restart."""
    await stage.open()
    play = Play(stage)

    async def listen() -> None:
        while True:
            await play.listen()
            # The stream ended because the back end was closed; another is opened.
            await asyncio.sleep(0.005)
            play.look_again()

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    try:
        yield play
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await stage.close()
