"""The Ironic back end against the real Ironic and simulated servers that boot, write disks and are asked what happened to them.

One Ironic, one farm and one back end for the whole file: starting them costs more than any test. Each test has its own server.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import openstack_sdk
import pytest
import pytest_asyncio

from ingot.api.baremetalhost import Image
from ingot.api.meta import Key
from ingot.lab.client import Lab
from ingot.lab.faults import Faults
from ingot.provisioner import (
    EVERYTHING,
    Access,
    Act,
    BackendUnavailable,
    Busy,
    ConfigDrive,
    Credentials,
    Deployment,
    Failed,
    FirmwareChange,
    HostRef,
    Inspection,
    KnownHost,
    NotRegistered,
    Permit,
    Power,
    PowerOffMode,
    Preparation,
    Ready,
    Refusal,
    Service,
    Sight,
    Subscription,
)
from ingot.provisioner.changes import Changes
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner, PushListen, Ramdisk
from ingot.provisioner.ironic.cache import NodeCache
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.errors import NotFound
from ingot.provisioner.ironic.inventory import Inventory
from ingot.provisioner.ironic.model import BiosSetting, FirmwareComponent, FullNode, HistoryEntry, Node, Port
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.orphans import Orphans
from ingot.services.environment import ensure
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Authority, Secret, kept_token, write_private

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not any(shutil.which(name) for name in ("mkisofs", "genisoimage", "xorrisofs", "xorriso")),
        reason="Ironic builds config drives with xorriso, and it is not installed",
    ),
]

DEADLINE = 180.0
TURBO = FirmwareChange(settings={"Turbo": "Enabled"})
EVENTS = Subscription(destination="https://127.0.0.1/events", headers={"Authorization": Secret("s3cret")})
USER_DATA = "#cloud-config\nhostname: deployed\n"


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


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

    def start_farm(self, servers: int) -> None:
        arguments = [
            "--state",
            str(self.state),
            "--listen",
            f"127.0.0.1:{self.lab_port}",
            "--count",
            str(servers),
        ]
        self.start(
            "lab", "lab", "farm", *arguments, "--agent-api", self.settings.base_url, "--boot-seconds", "1"
        )

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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    await asyncio.to_thread(ensure)
    world = World(tmp_path_factory.mktemp("world"))
    try:
        world.start_farm(15)
        world.start_ironic()

        async def ramdisk_url() -> str:
            async with Lab.open(world.state) as lab:
                await lab.servers()
                assert lab.file.ramdisk_url
                return lab.file.ramdisk_url

        async with IronicProvisioner(
            world.use_ramdisk(await world.ready(ramdisk_url)), world.push
        ) as backend:
            world.backend = backend
            await world.ready(backend.check)
            yield world
    finally:
        for name in list(world.processes):
            world.stop(name, signal.SIGKILL)


async def _answer(call: Callable[[], Awaitable[Any]]) -> Any:
    try:
        return await call()
    except BackendUnavailable:
        return Busy("Ironic is away")


class Bench:
    """One server of the farm, with the orders for it."""

    def __init__(self, world: World, lab: Lab, number: int, *, cleaning: bool = True) -> None:
        self.world = world
        self.lab = lab
        self.cleaning = cleaning
        self.plate = lab.file.servers[number]
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


@pytest_asyncio.fixture(loop_scope="module")
async def lab(world: World) -> AsyncIterator[Lab]:
    async with Lab.open(world.state) as opened:
        yield opened


async def test_the_whole_life_of_a_host_on_real_ironic(world: World, lab: Lab):
    bench = Bench(world, lab, 0)
    assert isinstance(await bench.register(), Ready)

    inspected = await bench.inspect()
    assert isinstance(inspected, Ready)
    assert {nic.mac for nic in inspected.value.hardware.nics} == set(bench.plate.macs)
    assert inspected.value.hardware.cpu.arch == "x86_64"
    assert inspected.value.hardware.storage

    assert await bench.provision() == Ready(None)
    server = await bench.server()
    sample = lab.file.image("raw")
    assert server.deployments == 1
    assert server.cleanings == 1
    assert server.running is not None
    assert server.running.image_sha256 == sample.disk_sha256
    assert server.running.user_data == USER_DATA
    assert (await bench.backend.vitals(bench.ref)).powered_on is True

    assert await bench.switch(Power.OFF) == Ready(None)
    assert (await bench.server()).power == "Off"
    assert await bench.switch(Power.ON) == Ready(None)
    assert (await bench.server()).power == "On"

    # A change that the machine cannot make is told, and given up: what ran goes on.
    running = (await bench.server()).running
    told = await bench.service(Service(name="turbo", firmware=TURBO))
    assert isinstance(told, Failed)
    assert "The BIOS has no attribute Turbo" in told.message
    assert await bench.service(Service(name="nothing")) == Ready(None)
    assert (await bench.server()).running == running

    assert await bench.deprovision() == Ready(None)
    server = await bench.server()
    assert server.running is None
    assert server.cleanings == 2
    assert await bench.delete() == Ready(None)
    assert isinstance(await bench.backend.vitals(bench.ref), NotRegistered)
    assert bench.acts == [
        Act.POWER_OFF,
        Act.CLEAN,
        Act.DEPLOY,
        Act.POWER_OFF,
        Act.SERVICE,
        Act.SERVICE,
        Act.UNDEPLOY,
        Act.DELETE,
    ]
    assert world.backend is not None
    assert world.backend.push_is_heard


async def test_a_machine_tells_its_firmware_settings_and_survives_an_order_for_one_it_does_not_have(
    world: World, lab: Lab
):
    bench = Bench(world, lab, 10)
    await bench.register()
    told = await bench.backend.firmware_settings(bench.ref)
    assert isinstance(told, Ready)
    assert told.value.settings["ProcTurboMode"] == "Enabled"
    assert "Turbo" not in told.value.settings
    components = await bench.backend.firmware_components(bench.ref)
    assert isinstance(components, Ready)
    assert {component.name for component in components.value} >= {"bios", "bmc"}
    assert await bench.prepare(Preparation(name="nothing")) == Ready(None)

    for _ in range(2):
        assert isinstance(await bench.inspect("on monday"), Ready)
    assert (await bench.server()).boots == 1

    for again in (False, True):
        told = await bench.prepare(Preparation(name="turbo", firmware=TURBO), again=again)
        assert isinstance(told, Failed)
        assert "the step bios.apply_configuration failed" in told.message
        assert "The BIOS has no attribute Turbo" in told.message
    assert await bench.prepare(Preparation(name="nothing")) == Ready(None)
    async with IronicClient(world.ironic_access) as client:
        node = await client.node(bench.ref.backend_id)
    assert node.provision_state == "manageable"
    assert not node.maintenance
    assert bench.acts == [Act.POWER_OFF, Act.CLEAN, Act.CLEAN]


async def test_a_machine_in_use_gets_a_data_image_is_detached_and_taken_over_again(world: World, lab: Lab):
    bench = Bench(world, lab, 11, cleaning=False)
    await bench.register()
    order = bench.order()
    assert await bench.provision(order) == Ready(None)
    assert await bench.switch(Power.OFF) == Ready(None)
    iso = lab.file.ramdisk_url
    for url, loaded in ((iso, True), (iso, True), ("", False)):
        assert await bench.data_image(url) == Ready(None)
        assert bool((await bench.server()).media) is loaded
    assert await bench.switch(Power.ON) == Ready(None)

    told = await bench.backend.subscribe(bench.ref, EVENTS, again=False)
    assert isinstance(told, Ready)
    assert await bench.backend.subscribe(bench.ref, EVENTS, again=False) == told
    assert await bench.backend.unsubscribe(bench.ref, told.value, again=False) == Ready(None)

    before = await bench.server()
    assert await bench.done(
        lambda: bench.backend.detach(bench.ref, force=False, permit=bench.permit)
    ) == Ready(None)
    assert isinstance(await bench.backend.vitals(bench.ref), NotRegistered)
    assert await bench.kept(order.image) == Ready(None)
    after = await bench.server()
    assert (after.running, after.power_actions) == (before.running, before.power_actions)
    assert bench.acts[-1] is Act.DETACH


async def test_a_wrong_password_is_told_and_the_right_one_goes_on(world: World, lab: Lab):
    bench = Bench(world, lab, 1)
    told = await bench.register(password="certainly-wrong")
    assert isinstance(told, Failed)
    assert told.refused_credentials
    assert "refused the user name or password (HTTP 401)" in told.message
    assert f"{bench.plate.host}:{bench.plate.bmc_port}" in told.message
    assert "certainly-wrong" not in told.message
    assert isinstance(await bench.register(), Ready)

    # The password is changed while the host is under management.
    await lab.set_password(bench.plate.name, "rotated-password")
    refused = await bench.register(password="certainly-wrong")
    assert isinstance(refused, Failed)
    assert refused.refused_credentials
    actions = (await bench.server()).power_actions
    assert isinstance(await bench.register(password="rotated-password"), Ready)
    assert (await bench.server()).power_actions == actions


async def test_a_bmc_that_is_down_is_told_as_such(world: World, lab: Lab):
    bench = Bench(world, lab, 2)
    await lab.set_faults(bench.plate.name, Faults(bmc_down=True))
    told = await bench.register()
    assert isinstance(told, Failed)
    assert not told.refused_credentials
    assert "does not answer" in told.message
    await lab.set_faults(bench.plate.name, Faults())


async def test_an_image_that_does_not_match_its_checksum_is_told_with_the_agents_words(
    world: World, lab: Lab
):
    bench = Bench(world, lab, 3)
    await bench.register()
    told = await bench.provision(bench.order(checksum="0" * 64))
    assert isinstance(told, Failed)
    assert "the image does not match its checksum" in told.message
    assert (await bench.server()).running is None

    missing = bench.order()
    assert await bench.deprovision(cleaning=False) == Ready(None)
    gone = Image(url=missing.image.url + "-gone", checksum="0" * 64, checksum_type="sha256", format="raw")
    told = await bench.provision(replace(missing, image=gone))
    assert isinstance(told, Failed)
    assert "its URL answers HTTP 404" in told.message
    assert await bench.deprovision(cleaning=False) == Ready(None)


@pytest.mark.parametrize(
    ("number", "step"),
    [
        pytest.param(5, "", id="before the first step"),
        pytest.param(6, "deploy", id="while the ramdisk is booted"),
        pytest.param(7, "tear_down_agent", id="while the ramdisk is stopped"),
        pytest.param(8, "boot_instance", id="while the system is started"),
    ],
)
async def test_an_ironic_killed_while_it_deploys_goes_on_without_an_error_and_deploys_once(
    world: World, lab: Lab, number: int, step: str
):
    bench = Bench(world, lab, number, cleaning=False)
    await bench.register()
    order = bench.order()
    killing = asyncio.create_task(world.kill_ironic_at(bench, step))

    # `done` ends at the first failure that is told.
    assert await bench.done(
        lambda: bench.backend.provision(bench.ref, order, permit=bench.permit, again=False)
    ) == Ready(None)
    await killing
    assert await bench.kept(order.image) == Ready(None)
    async with IronicClient(world.ironic_access) as client:
        node = await client.node(bench.ref.backend_id)
    assert node.provision_state == "active"
    assert node.instance_uuid == bench.ref.uid

    server = await world.ready(lambda: running(bench))
    assert server.deployments == 1
    assert server.running.image_sha256 == lab.file.image("raw").disk_sha256
    assert server.running.user_data == USER_DATA
    assert Act.UNDEPLOY not in bench.acts
    assert Act.CLEAN not in bench.acts[1:]
    assert (Act.FORGET in bench.acts) is (step in ("tear_down_agent", "boot_instance"))


async def running(bench: Bench) -> Any:
    server = await bench.server()
    assert server.booted_into == "instance"
    return server


async def test_an_ironic_killed_while_it_inspects_inspects_again_without_an_error(world: World, lab: Lab):
    bench = Bench(world, lab, 9)
    await bench.register()
    killing = asyncio.create_task(world.kill_ironic_at(bench, "", state="inspecting"))
    assert isinstance(await bench.inspect(), Ready)
    await killing


async def test_a_cleaning_that_was_cut_off_leaves_no_step_that_the_next_one_takes_for_done(
    world: World, lab: Lab
):
    bench = Bench(world, lab, 13)
    await bench.register()
    world.stop("ironic", signal.SIGKILL)
    # What a kill leaves in the moment between two steps.
    step = {"interface": "deploy", "step": "erase_devices_metadata", "priority": 10}
    with closing(sqlite3.connect(world.settings.paths.database_file)) as database:
        database.execute(
            "UPDATE nodes SET provision_state = 'cleaning', target_provision_state = 'available', clean_step = ? WHERE uuid = ?",
            (json.dumps(step), bench.ref.backend_id),
        )
        database.commit()
    world.start_ironic()
    assert await bench.provision() == Ready(None)
    server = await running(bench)
    assert (server.cleanings, server.deployments) == (1, 1)


async def test_a_deployment_that_was_over_when_ironic_was_killed_is_ended_and_not_done_again(
    world: World, lab: Lab
):
    bench = Bench(world, lab, 14)
    await bench.register()
    order = bench.order()
    assert await bench.provision(order) == Ready(None)
    before = await running(bench)
    world.stop("ironic", signal.SIGKILL)
    # What a kill leaves in the moment between the last step and the end.
    with closing(sqlite3.connect(world.settings.paths.database_file)) as database:
        kept = database.execute(
            "SELECT driver_internal_info FROM nodes WHERE uuid = ?", (bench.ref.backend_id,)
        )
        since = json.loads(kept.fetchone()[0])["ingot_deployment_is_over"]["since"]
        database.execute(
            "UPDATE nodes SET provision_state = 'deploying', target_provision_state = 'active', provision_updated_at = ? "
            "WHERE uuid = ?",
            (datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%d %H:%M:%S.%f"), bench.ref.backend_id),
        )
        database.commit()
    world.start_ironic()
    assert await bench.provision(order) == Ready(None)
    after = await running(bench)
    assert (after.deployments, after.power_actions) == (1, before.power_actions)


async def test_a_running_host_is_adopted_after_ironic_was_killed_and_lost_its_database(
    world: World, lab: Lab
):
    bench = Bench(world, lab, 4)
    await bench.register()
    order = bench.order("qcow2")
    assert await bench.provision(order) == Ready(None)
    before = await bench.server()
    assert before.deployments == 1
    assert before.running is not None

    world.stop("ironic", signal.SIGKILL)
    for file in world.settings.paths.state.glob("ironic.db*"):
        file.unlink()
    world.start_ironic()
    assert world.backend is not None
    await world.ready(world.backend.check)

    old = bench.ref.backend_id
    assert await bench.kept(order.image) == Ready(None)
    assert bench.ref.backend_id != old
    after = await bench.server()
    assert after.deployments == 1
    assert after.power_actions == before.power_actions
    assert after.running == before.running
    assert await bench.delete() == Ready(None)
    assert (await bench.server()).power == "On"


SDK_WORDS = {
    "automated_clean": "is_automated_clean_enabled",
    "instance_uuid": "instance_id",
    "maintenance": "is_maintenance",
    "uuid": "id",
}
SDK_CANNOT_READ = {
    "disable_power_off",
    "health",
    "inspection_finished_at",
    "network_data",
    "provision_updated_at",
}
"""Fields of a node that this openstacksdk does not know."""


async def test_what_our_client_reads_is_what_openstacksdk_reads(world: World, lab: Lab):
    """Two readers written by different people: what both misread is not read at all."""
    bench = Bench(world, lab, 12)
    assert isinstance(await bench.register(password="wrong"), Failed)
    assert isinstance(await bench.register(), Ready)
    assert isinstance(await bench.inspect(), Ready)
    async with IronicClient(world.ironic_access) as client, asyncio.timeout(DEADLINE):
        version = await client.version()
        ours = await Reading.of(client, bench.ref.backend_id)
        while True:
            theirs = await asyncio.to_thread(openstack_sdk.read, world.ironic_access, version)
            before, ours = ours, await Reading.of(client, bench.ref.backend_id)
            if before == ours:
                # Ironic looks at its hosts and notes what it found whenever it likes; here it did not while both read.
                break

    assert {node.uuid for node in ours.listed} == {one["node"]["id"] for one in theirs}
    seen = next(one for one in theirs if one["node"]["id"] == ours.node.uuid)
    sdk = seen["node"]
    named = {SDK_WORDS.get(name, name): value for name, value in msgspec.to_builtins(ours.node).items()}
    assert named.keys() - sdk.keys() == SDK_CANNOT_READ
    different = {
        name: (named[name], sdk[name])
        for name in named.keys() & sdk.keys()
        if _same(named[name]) != _same(sdk[name])
    }
    assert different == {}
    assert next(one for one in ours.listed if one.uuid == ours.node.uuid) == ours.node.remembered()

    ports = {(port.address, port.node_uuid, port.pxe_enabled) for port in ours.ports}
    assert ports == {(one["address"], one["node_id"], one["is_pxe_enabled"]) for one in seen["ports"]}
    assert {address for address, _, _ in ports} == set(bench.plate.macs)

    for setting, other in zip(ours.bios, seen["bios"]["bios"], strict=True):
        assert msgspec.to_builtins(setting) == {name: other[name] for name in setting.__struct_fields__}
    for part, other in zip(ours.firmware, seen["firmware"]["firmware"], strict=True):
        assert msgspec.to_builtins(part) == {name: other[name] for name in part.__struct_fields__}
    assert ours.history
    for entry, other in zip(ours.history, seen["history"]["history"][: len(ours.history)], strict=True):
        assert (entry.event, entry.severity) == (other["event"], other["severity"])
    inventory = seen["inventory"]["inventory"]
    assert ours.inventory.memory is not None
    assert ours.inventory.memory.physical_mb == inventory["memory"]["physical_mb"]
    assert [nic.mac_address for nic in ours.inventory.interfaces or ()] == [
        nic["mac_address"] for nic in inventory["interfaces"]
    ]


@dataclass(frozen=True)
class Reading:
    """All that our client reads of a node, and the list of all nodes."""

    node: FullNode
    listed: list[Node]
    ports: list[Port]
    bios: list[BiosSetting]
    firmware: list[FirmwareComponent]
    history: list[HistoryEntry]
    inventory: Inventory

    @classmethod
    async def of(cls, client: IronicClient, uuid: str) -> Reading:
        return cls(
            node=await client.node(uuid),
            listed=[node async for page in client.pages_of_nodes() for node in page],
            ports=await client.ports(node_uuid=uuid),
            bios=await client.bios_settings(uuid),
            firmware=await client.firmware(uuid),
            history=await client.history(uuid),
            inventory=(await client.inventory(uuid)).inventory,
        )


def _same(value: Any) -> Any:
    """Nothing is nothing, and a moment is a moment, however they are written."""
    if isinstance(value, str) and value.endswith(("Z", "+00:00")):
        return value.removesuffix("Z").removesuffix("+00:00")
    return value or None


class Gone:
    """The hosts of a namespace of its own, which are gone, but for those that are set."""

    def __init__(self) -> None:
        self.known: list[KnownHost] = []

    def hosts(self) -> list[KnownHost]:
        return self.known

    def covers(self, namespace: str) -> bool:
        return namespace == "abandoned"

    def permit(self, key: Key) -> Permit:
        async def permit(act: Act, sight: Sight) -> Refusal | None:
            return None

        return permit


async def test_real_ironic_gives_a_node_that_no_host_owns_to_its_heir_or_forgets_it(world: World, lab: Lab):
    mac = "52:54:00:aa:bb:cc"
    async with IronicClient(world.ironic_access) as client:
        nodes, census = Nodes(client, NodeCache(), Changes()), Gone()
        orphans = Orphans(nodes, after=0)
        orphans.census = census
        made = {
            "name": "abandoned~h1",
            "driver": "redfish",
            "extra": {"ingot_host": "of a host that is gone"},
            # Nobody listens there, and nobody is to ask.
            "driver_info": {"redfish_address": "https://127.0.0.1:9"},
        }
        node = await nodes.create(made)
        foreign = await nodes.create({"name": "abandoned~foreign", "driver": "redfish"})
        await client.create_port(node.uuid, mac, pxe_enabled=True)
        census.known = [KnownHost(key=Key("abandoned", "h2"), uid="u", boot_mac=mac)]
        for _ in range(2):
            await orphans.sweep()
        assert (await client.node(node.uuid)).name == "abandoned~h2"
        census.known = [KnownHost(key=Key("abandoned", "h3"), uid="u3")]
        for _ in range(2):
            await orphans.sweep()
        with pytest.raises(NotFound):
            await client.node(node.uuid)
        assert (await client.node(foreign.uuid)).name == "abandoned~foreign"
        await client.delete_node(foreign.uuid)
