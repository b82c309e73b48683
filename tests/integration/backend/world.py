"""A world without an operator: Ironic, a farm of servers and the back end; and the bench, one server with the orders for it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ironic_room import free_ports

from ingot.api.baremetalhost import Image
from ingot.api.meta import Key
from ingot.lab.client import Lab
from ingot.lab.faults import Faults
from ingot.lab.labfile import Plate
from ingot.provisioner import (
    EVERYTHING,
    Access,
    Act,
    BackendUnavailable,
    Busy,
    ConfigDrive,
    Credentials,
    Deployment,
    HostRef,
    Inspection,
    NotRegistered,
    Power,
    PowerOffMode,
    Preparation,
    Ready,
    Refusal,
    Service,
    Sight,
)
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner, PushListen, Ramdisk
from ingot.provisioner.ironic.client import IronicClient
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Authority, Secret, kept_token, write_private

DEADLINE = 180.0
SERVERS = 15
USER_DATA = "#cloud-config\nhostname: deployed\n"


class World:
    """Ironic, a farm of servers, and the back end between the test and them."""

    def __init__(self, state: Path) -> None:
        self.state = state
        ironic_port, self.push_port, self.lab_port = free_ports(3)
        authority = Authority(state / "ca")
        self.ca_file = authority.ca_file
        serving = authority.issue(state / "ironic", "ironic", ["127.0.0.1"])
        self.auth = state / "auth" / "ironic"
        self.auth.mkdir(parents=True)
        write_private(self.auth / "username", b"ingot")
        kept_token(self.auth / "password")
        self.token_file = state / "operator" / "push-token"
        self.push = PushListen(
            host="127.0.0.1",
            port=self.push_port,
            tls=authority.issue(state / "operator", "operator", ["127.0.0.1"]).server_context(),
            token=kept_token(self.token_file),
        )
        self.settings = IronicSettings(
            paths=IronicPaths.below(state / "ironic"),
            cert_file=serving.cert_file,
            key_file=serving.key_file,
            ca_file=self.ca_file,
            username="ingot",
            password_file=self.auth / "password",
            listen_port=ironic_port,
            # Nobody listens there: the servers boot what they are told to, and take anything into their drives.
            http_url="https://127.0.0.1:9/",
            bmc_ca_file=self.ca_file,
            webserver_ca_file=self.ca_file,
            push_url=f"https://127.0.0.1:{self.push_port}/v1/push",
            push_ca_file=self.ca_file,
            push_token_file=self.token_file,
            # Heartbeats that get lost in a race heal quickly.
            agent_heartbeat_timeout=30,
            power_sync_interval=10,
        )
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.backend: IronicProvisioner | None = None
        self._untaken = iter(range(SERVERS))

    def use_ramdisk(self, ramdisk_url: str) -> IronicAccess:
        self.ironic_access = IronicAccess(
            endpoint=f"{self.settings.base_url}/v1",
            ca_file=self.ca_file,
            auth_folder=self.auth,
            ramdisk=Ramdisk(iso=ramdisk_url),
        )
        return self.ironic_access

    def start(self, name: str, *arguments: str, environment: dict[str, str] | None = None) -> None:
        with (self.state / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-c", "from ingot.cli.main import main; main()", *arguments],
                env=os.environ | (environment or {}),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_ironic(self) -> None:
        self.start("ironic", "service", "ironic", environment=self.settings.to_environment())

    def start_farm(self) -> None:
        arguments = [
            "--state",
            str(self.state),
            "--listen",
            f"127.0.0.1:{self.lab_port}",
            "--count",
            str(SERVERS),
        ]
        self.start(
            "lab", "lab", "farm", *arguments, "--agent-api", self.settings.base_url, "--boot-seconds", "1"
        )

    def plate(self, lab: Lab) -> Plate:
        """Of a server that no other test uses."""
        number = next(self._untaken, None)
        assert number is not None, f"the world has {SERVERS} servers, and one more is asked for"
        return lab.file.servers[number]

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        process = self.processes.pop(name)
        os.killpg(process.pid, how)
        process.wait(60)

    async def kill_ironic_at(self, bench: Bench, step: str, state: str = "deploying") -> None:
        """kill -9 at this moment of a node's life, and a start right after, as the supervisor does it."""
        async with asyncio.timeout(DEADLINE), IronicClient(self.ironic_access) as client:
            slowed = False
            while True:
                node = await client.node(bench.ref.backend_id)
                if node.provision_state == state and (node.step or "") == step:
                    break
                if node.step == "write_image" and not slowed:
                    # What comes next is over in an instant; a slow BMC leaves time to hit it.
                    await bench.lab.set_faults(bench.plate.name, Faults(slow_seconds=0.5))
                    slowed = True
        self.stop("ironic", signal.SIGKILL)
        await bench.lab.set_faults(bench.plate.name, Faults())
        self.start_ironic()

    async def ready(self, what: Callable[[], Awaitable[Any]]) -> Any:
        end = time.monotonic() + DEADLINE
        while True:
            try:
                return await what()
            except Exception:  # whatever is missing while it starts
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(0.2)


async def _answer(call: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await call()
    except BackendUnavailable:
        return Busy("Ironic is away")


class Bench:
    """One server of the farm, with the orders for it."""

    def __init__(self, world: World, lab: Lab, *, cleaning: bool = True) -> None:
        self.world = world
        self.lab = lab
        self.cleaning = cleaning
        self.plate = world.plate(lab)
        self.ref = HostRef(Key("rack", self.plate.name), str(uuid.uuid4()))
        self.acts: list[Act] = []
        self.said: list[str] = []

    @property
    def backend(self) -> IronicProvisioner:
        assert self.world.backend is not None
        return self.world.backend

    def access(self, password: str | None = None) -> Access:
        return Access(
            address=self.plate.bmc_address,
            credentials=Credentials(
                username=self.plate.username, password=Secret(password or self.plate.password)
            ),
            boot_mac=self.plate.macs[0],
            automated_cleaning=self.cleaning,
        )

    def order(self, form: str = "raw", checksum: str = "") -> Deployment:
        sample = self.lab.file.image(form)
        image = Image(url=sample.url, checksum=checksum or sample.sha256, checksum_type="sha256", format=form)
        return Deployment(image=image, config_drive=ConfigDrive(user_data=Secret(USER_DATA)))

    async def permit(self, act: Act, sight: Sight) -> Refusal | None:
        self.acts.append(act)
        return None

    async def done(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Calls whenever the back end names the host, as a controller does, until the answer is final."""
        async with asyncio.timeout(DEADLINE):
            changes = self.backend.changes()
            first = asyncio.ensure_future(anext(changes))
            answer = await _answer(call)
            while isinstance(answer, Busy | NotRegistered):
                if not self.said or self.said[-1] != answer.why:
                    self.said.append(answer.why)
                change = await first
                first = asyncio.ensure_future(anext(changes))
                if change in (EVERYTHING, self.ref.key):
                    answer = await _answer(call)
            first.cancel()
            return answer

    async def register(self, *, password: str | None = None, changed: bool = True) -> Any:
        news = iter([changed])

        async def call() -> Any:
            # A controller says once that the credentials changed.
            return await self.backend.register(
                self.ref, self.access(password), credentials_changed=next(news, False), again=False
            )

        answer = await self.done(call)
        if isinstance(answer, Ready):
            self.ref = replace(self.ref, backend_id=answer.value.backend_id)
        return answer

    async def inspect(self, renewal: str = "") -> Any:
        wanted = Inspection(renewal=renewal)
        return await self.done(
            lambda: self.backend.inspect(self.ref, wanted, permit=self.permit, again=False)
        )

    async def prepare(self, wanted: Preparation, *, again: bool = False) -> Any:
        return await self.done(
            lambda: self.backend.prepare(self.ref, wanted, permit=self.permit, again=again)
        )

    async def service(self, wanted: Service, *, again: bool = False) -> Any:
        return await self.done(
            lambda: self.backend.service(self.ref, wanted, permit=self.permit, again=again)
        )

    async def provision(self, order: Deployment | None = None) -> Any:
        wanted = order or self.order()
        return await self.done(
            lambda: self.backend.provision(self.ref, wanted, permit=self.permit, again=False)
        )

    async def deprovision(self, *, cleaning: bool = True) -> Any:
        return await self.done(
            lambda: self.backend.deprovision(
                self.ref, automated_cleaning=cleaning, permit=self.permit, again=False
            )
        )

    async def kept(self, image: Image) -> Any:
        """What a controller does in every pass of a provisioned host: register, adopt."""

        async def one_pass() -> Any:
            answer = await self.backend.register(
                self.ref, self.access(), credentials_changed=False, again=False
            )
            if not isinstance(answer, Ready):
                return answer
            self.ref = replace(self.ref, backend_id=answer.value.backend_id)
            return await self.backend.adopt(self.ref, image, permit=self.permit, again=False)

        return await self.done(one_pass)

    async def switch(self, wanted: Power) -> Any:
        return await self.done(
            lambda: self.backend.set_power(
                self.ref, wanted, mode=PowerOffMode.HARD, permit=self.permit, again=False
            )
        )

    async def data_image(self, url: str) -> Any:
        return await self.done(lambda: self.backend.set_data_image(self.ref, url, again=False))

    async def delete(self) -> Any:
        return await self.done(lambda: self.backend.delete(self.ref, permit=self.permit))

    async def server(self) -> Any:
        return await self.lab.server(self.plate.name)
