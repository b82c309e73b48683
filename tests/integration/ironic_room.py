"""A room: one real Ironic, one farm of simulated servers, the embedded API and the operator, and what a test does with them.

Ironic, the farm and the operator are processes of their own, so that each can be killed; the API runs here, or is that of a
cluster. A test takes a server that nobody else uses, describes it with objects, waits for what its BareMetalHost says, and asks
the farm what really happened.
Ironic's clocks are short: what takes it minutes on real machines takes it seconds here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from push_tap import PushTap

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation, BareMetalHost
from ingot.api.core import EVENTS, NAMESPACES, SECRETS
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.api.meta import Key, Object, Resource
from ingot.embedded.server import serve
from ingot.formats.boot_parameters import grub_config
from ingot.formats.iso9660 import build_iso
from ingot.kube import Client, Informer, NotFound
from ingot.lab.client import Lab
from ingot.lab.faults import COUNTED, Faults
from ingot.lab.views import AddedImage, ServerView
from ingot.provisioner import BackendUnavailable
from ingot.provisioner.ironic import IronicAccess
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.errors import NotFound as NoNode
from ingot.provisioner.ironic.model import FullNode
from ingot.services.environment import DEFAULT_VERSION, ensure
from ingot.services.settings import IronicPaths, IronicSettings
from ingot.trust import Authority, kept_token, write_private

T = TypeVar("T", bound=Object)

NAMESPACE = "farm"
PATIENCE = 400.0
"""Seconds, on a machine that may be busy."""
NEEDS = "mkisofs", "genisoimage", "xorrisofs", "xorriso"
"""One of these builds Ironic's config drives."""

VENDORS = "dell", "hpe", "supermicro", "lenovo", "ami"
"""A room has one more server of each of these, beside the plain ones."""
OTHERS: Final = (*VENDORS, "dell")
"""All that are not plain: of some, somebody needs a second one."""

QUICK = {
    # A server that does not switch, or an agent that is gone, is noticed within a test's patience.
    "OS_CONDUCTOR__POWER_STATE_CHANGE_TIMEOUT": "20",
    "OS_REDFISH__FIRMWARE_UPDATE_REQUIRED_SUCCESSES": "1",
    "OS_REDFISH__FIRMWARE_UPDATE_VALIDATION_INTERVAL": "1",
    "OS_REDFISH__FIRMWARE_UPDATE_REBOOT_DELAY": "5",
    "OS_REDFISH__FIRMWARE_UPDATE_BMC_VERSION_CHECK_INTERVAL": "2",
}


def can_run() -> bool:
    return any(shutil.which(name) for name in NEEDS)


class Room:
    """Use `open`."""

    version = DEFAULT_VERSION
    """Of Ironic; a room with another one is a class of its own."""

    def __init__(self, state: Path, client: Client, *, servers: int) -> None:
        self.state = state
        self.client = client
        self._servers = servers
        self._taken = 0
        self._lent: set[int] = set()
        """Those of vendors that are taken."""
        self._rules: tuple[str, ...] = ()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._log_begins: dict[str, int] = {}
        ironic_port, tap_port, self._push_port, self._lab_port = free_ports(4)
        authority = Authority(state / "ca")
        serving = authority.issue(state / "ironic", "ironic", ["127.0.0.1"])
        self._auth_root = state / "auth"
        auth = self._auth_root / "ironic"
        auth.mkdir(parents=True)
        write_private(auth / "username", b"ingot")
        kept_token(auth / "password")
        token_file = state / "operator" / "push-token"
        kept_token(token_file)
        tap = authority.issue(state / "tap", "push", ["127.0.0.1"])
        self.pushed = PushTap(tap, port=tap_port, operator_port=self._push_port)
        self.settings = IronicSettings(
            paths=IronicPaths.below(state / "ironic"),
            cert_file=serving.cert_file,
            key_file=serving.key_file,
            ca_file=authority.ca_file,
            username="ingot",
            password_file=auth / "password",
            listen_port=ironic_port,
            # Nobody listens there: what Ironic would serve itself is not asked for.
            http_url="https://127.0.0.1:9/",
            bmc_ca_file=authority.ca_file,
            webserver_ca_file=authority.ca_file,
            push_url=self.pushed.url,
            push_ca_file=authority.ca_file,
            push_token_file=token_file,
            agent_heartbeat_timeout=30,
            agent_callback_timeout=60,
            provision_check_interval=5,
            power_sync_interval=10,
            power_recovery_interval=5,
            bmc_task_interval=2,
            version=self.version,
        )
        self._access = IronicAccess(
            endpoint=f"{self.settings.base_url}/v1", ca_file=authority.ca_file, auth_folder=auth
        )
        self.lab: Lab
        self.hosts: Informer[BareMetalHost] = Informer(client, BARE_METAL_HOSTS, namespace=NAMESPACE)
        self._heard = asyncio.Event()
        self.hosts.subscribe(lambda _: self._heard.set())

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, state: Path, *, servers: int, cluster: str = "") -> AsyncIterator[Room]:
        """Everything started and ready; all of it ends with the block. `cluster`: the kubeconfig of one to live on, for good."""
        await asyncio.to_thread(ensure, cls.version)
        async with contextlib.AsyncExitStack() as stack:
            if cluster:
                (state / "kubeconfig").symlink_to(cluster)
            else:
                await stack.enter_async_context(serve(state))
            client = await stack.enter_async_context(Client.from_kubeconfig(state / "kubeconfig"))
            await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
            room = cls(state, client, servers=servers)
            if cluster:
                # It has to be told of the rules; the embedded API has them built in.
                room._rules = ("--webhook-listen", "127.0.0.1:0")
            watching = asyncio.create_task(room.hosts.run())
            stack.push_async_callback(_ended, watching)
            await stack.enter_async_context(room.pushed.listening())
            stack.callback(room._stop_all)
            # The farm first: what it serves may be something that Ironic is told of.
            room.start_farm()
            room.lab = await stack.enter_async_context(await room._lab_ready())
            await room.begin()
            room.start_ironic()
            room.start_operator()
            await room.ironic_ready()
            await room.operator_ready()
            yield room

    async def begin(self) -> None:
        """For rooms that have something to do between the farm and Ironic."""

    # Processes

    def start(self, name: str, *arguments: str, environment: Mapping[str, str]) -> None:
        with (self.state / f"{name}.log").open("ab") as log:
            self._log_begins[name] = log.tell()
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-c", "from ingot.cli.main import main; main()", *arguments],
                env={**os.environ, **environment},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_ironic(self, *, patient: bool = False) -> None:
        """`patient`: with an agent that is not heard of for a long time, as a server has that somebody holds."""
        settings = replace(self.settings, agent_callback_timeout=900) if patient else self.settings
        self.start("ironic", "service", "ironic", environment=settings.to_environment() | QUICK)

    def start_farm(self, *options: str) -> None:
        listen = f"127.0.0.1:{self._lab_port}"
        where = ("--state", str(self.state), "--listen", listen, "--agent-api", self.settings.base_url)
        profiles = ["generic"] * self._servers + list(OTHERS)
        turns = [word for profile in profiles for word in ("--profile", profile)]
        self.start(
            "lab",
            *("lab", "farm", *where, "--count", str(len(profiles)), *turns, "--boot-seconds", "1", *options),
            environment={},
        )

    def start_operator(self, **more: str) -> None:
        environment = {
            "KUBECONFIG": str(self.state / "kubeconfig"),
            "IRONIC_ENDPOINT": self._access.endpoint,
            "IRONIC_CACERT_FILE": str(self.settings.ca_file),
            "METAL3_AUTH_ROOT_DIR": str(self._auth_root),
            "DEPLOY_ISO_URL": self.lab.file.ramdisk_url,
            **more,
        }
        push = f"127.0.0.1:{self._push_port}"
        self.start(
            "operator",
            *("operator", "--state", str(self.state), "--push-listen", push, "--namespace", NAMESPACE),
            *self._rules,
            environment=environment,
        )

    def runs(self, name: str) -> bool:
        """Whether somebody has started it."""
        return name in self._processes

    def kill(self, name: str) -> None:
        """kill -9."""
        process = self._processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)

    def check(self) -> None:
        """Nobody ended who should run."""
        gone = [name for name, process in self._processes.items() if process.poll() is not None]
        assert not gone, f"{', '.join(gone)} ended by itself\n{self.logs()}"

    def _stop_all(self) -> None:
        for name in list(self._processes):
            self.kill(name)

    def lose_ironics_database(self) -> None:
        for file in self.settings.paths.state.glob("ironic.db*"):
            file.unlink()

    async def _lab_ready(self) -> contextlib.AbstractAsyncContextManager[Lab]:
        async def answers() -> None:
            async with Lab.open(self.state) as lab:
                await lab.servers()

        await self._ready(answers)
        return Lab.open(self.state)

    async def ironic_ready(self) -> None:
        """Ironic answers, and has somebody who does the work."""
        async with self.ironic() as client:

            async def has_drivers() -> None:
                assert await client.drivers()

            await self._ready(has_drivers)

    async def operator_ready(self, name: str = "operator") -> None:
        log, begin = self.state / f"{name}.log", self._log_begins[name]

        async def says_so() -> None:
            assert b"operator ready" in log.read_bytes()[begin:]

        await self._ready(says_so)

    def ironic(self) -> IronicClient:
        """Ironic itself, for what only it can tell."""
        return IronicClient(self._access)

    async def _ready(self, what: Callable[[], Awaitable[None]]) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return await what()
            except Exception:  # whatever is missing while it starts
                self.check()
                if time.monotonic() > end:
                    raise AssertionError(self.logs()) from None
                await asyncio.sleep(0.2)

    def logs(self) -> str:
        """The end of every log, for the report of a failed test."""
        return "\n".join(f"--- {log.name}\n{_tail(log)}" for log in sorted(self.state.glob("*.log")))

    # Objects

    async def create(self, kind: Resource[T], name: str, **fields: Any) -> T:
        return await self.client.create(kind, {"metadata": {"name": name}, **fields}, namespace=NAMESPACE)

    async def until_object(self, kind: Resource[T], name: str, condition: Callable[[T], bool]) -> T:
        """Wait until the object is there and as the condition says."""
        found: T | None = None
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(NotFound):
                found = await self.client.get(kind, Key(NAMESPACE if kind.namespaced else "", name))
                if condition(found):
                    return found
            assert time.monotonic() < end, (
                f"{kind.kind} {name} never came there; it is {found}\n{self.logs()}"
            )
            await asyncio.sleep(0.3)

    async def live_image(self) -> AddedImage:
        """An operating system that runs from its medium."""
        config = grub_config(kernel="/vmlinuz", initrd="/initrd", values={"live": "1"}).encode()
        files = {"/vmlinuz": b"kernel", "/initrd": b"ramdisk"}
        files |= dict.fromkeys(("/boot/grub/grub.cfg", "/EFI/BOOT/grub.cfg"), config)
        iso = build_iso(files, label="LIVE", made_at=datetime(2026, 1, 1, tzinfo=UTC))
        return await self.lab.add_image(iso, name="live.iso")

    def server(self) -> Host:
        """A server that no other test uses, and that no object describes yet."""
        number, self._taken = self._taken, self._taken + 1
        assert number < self._servers, f"the room has {self._servers} servers, and one more is asked for"
        return Host(self, number)

    def server_of(self, vendor: str) -> Host:
        """A server that this vendor built, and that no other test uses."""
        numbers = (self._servers + at for at, profile in enumerate(OTHERS) if profile == vendor)
        number = next((number for number in numbers if number not in self._lent), None)
        assert number is not None, f"the room has no more servers of {vendor}"
        self._lent.add(number)
        return Host(self, number)

    async def changed(self) -> None:
        """Until some host has changed, or a moment is over."""
        self.check()
        self._heard.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._heard.wait()


class Host:
    """One server of the room and its BareMetalHost."""

    def __init__(self, room: Room, number: int) -> None:
        self.room = room
        self.plate = room.lab.file.servers[number]
        self.name = self.plate.name
        self.key = Key(NAMESPACE, self.name)
        self._acted_out: dict[str, int] = {}
        """What it had acted out when it was told how to misbehave."""

    # What a user does

    async def create(
        self,
        *,
        address: str = "",
        password: str = "",
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """Its Secret and its BareMetalHost. Cleaning takes the time of a boot, so that only who wants it has it."""
        secret = {"username": self.plate.username, "password": password or self.plate.password}
        await self.room.create(SECRETS, f"{self.name}-bmc", stringData=secret)
        bmc = {"address": address or self.plate.bmc_address, "credentialsName": f"{self.name}-bmc"}
        usual = {
            "online": True,
            "bmc": bmc,
            "bootMACAddress": self.plate.macs[0],
            "automatedCleaningMode": "disabled",
        }
        metadata = {
            "name": self.name,
            "annotations": dict(annotations or {}),
            "labels": dict(labels or {}),
        }
        await self.room.client.create(
            BARE_METAL_HOSTS, {"metadata": metadata, "spec": usual | spec}, namespace=NAMESPACE
        )

    async def change(self, **spec: Any) -> None:
        await self.room.client.patch(BARE_METAL_HOSTS, self.key, {"spec": spec})

    async def annotate(self, annotation: str, value: str | None = "") -> None:
        """Set an annotation; None removes it."""
        await self.room.client.patch(
            BARE_METAL_HOSTS, self.key, {"metadata": {"annotations": {annotation: value}}}
        )

    async def reboot(self) -> ServerView:
        """Ask for a reboot, and wait until the server runs its image again."""
        boots = (await self.seen()).boots
        await self.annotate(Annotation.REBOOT)
        await self.until_seen(lambda seen: seen.boots > boots, "rebooted")
        await self.until(lambda found: Annotation.REBOOT not in found.metadata.annotations, "rebooted")
        await self.until_power(on=True)
        return await self.until_running()

    async def set_secret(self, name: str, **values: str) -> None:
        await self.room.client.patch(SECRETS, Key(NAMESPACE, name), {"stringData": values})

    async def wants_settings(self, **settings: object) -> None:
        """BIOS settings, once those of the machine are known."""
        kind = HOST_FIRMWARE_SETTINGS
        await self.room.until_object(kind, self.name, lambda found: bool(found.status.settings))
        await self.room.client.patch(kind, self.key, {"spec": {"settings": settings}})

    async def wants_firmware(self, component: str, version: str) -> None:
        """Firmware of which the farm has an image, once the machine's components are known."""
        kind = HOST_FIRMWARE_COMPONENTS
        await self.room.until_object(kind, self.name, lambda found: bool(found.status.components))
        content = f"ingot-firmware {component} {version}\n".encode() + bytes(4096)
        image = await self.room.lab.add_image(content, name=f"{component}.bin")
        update = {"component": component, "url": image.url}
        await self.room.client.patch(kind, self.key, {"spec": {"updates": [update]}})

    async def delete(self) -> None:
        await self.room.client.delete(BARE_METAL_HOSTS, self.key)
        await self.until_gone()

    async def try_again(self) -> None:
        """What a person does who has mended something and does not want to wait for the next try."""
        await self.annotate("test.metal3.io/mended", str(time.time_ns()))

    def image(self, image_format: str = "raw") -> dict[str, str]:
        sample = self.room.lab.file.image(image_format)
        return {
            "url": sample.url,
            "checksum": sample.sha256,
            "checksumType": "sha256",
            "format": image_format,
        }

    async def secret(self, name: str, **values: str) -> dict[str, str]:
        """A Secret of this host's own, as a spec names it."""
        await self.room.create(SECRETS, f"{self.name}-{name}", stringData=values)
        return {"name": f"{self.name}-{name}", "namespace": NAMESPACE}

    # What a user sees

    async def _wait(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise await self._complaint(f"is not {what}")
            await self.room.changed()

    async def _complaint(self, what: str) -> AssertionError:
        """With all that is known about it."""
        host = self.room.hosts.get(self.key)
        said = f"{self.name} {what}: {host and host.status}"
        return AssertionError(f"{said}\n{await self.story()}\n{self.room.logs()}")

    async def until(self, condition: Callable[[BareMetalHost], bool], what: str) -> BareMetalHost:
        """Wait until the host is as the condition says."""
        found: list[BareMetalHost] = []

        def is_there() -> bool:
            host = self.room.hosts.get(self.key)
            found[:] = [host] if host is not None else []
            return host is not None and condition(host)

        await self._wait(is_there, what)
        return found[0]

    async def until_well(self, state: str) -> BareMetalHost:
        return await self.until(
            lambda host: host.status.provisioning.state == state and not host.status.error_message, state
        )

    async def until_error(self, fragment: str) -> BareMetalHost:
        return await self.until(
            lambda host: fragment in host.status.error_message, f"in error about {fragment!r}"
        )

    async def until_power(self, on: bool) -> BareMetalHost:
        return await self.until(
            lambda host: host.status.powered_on is on and not host.status.error_message,
            "on" if on else "off",
        )

    async def until_gone(self) -> None:
        await self._wait(lambda: self.room.hosts.get(self.key) is None, "deleted")

    async def reaches(self, state: str) -> BareMetalHost:
        """Until it is there, without any failure on the way."""

        def there_or_failed(host: BareMetalHost) -> bool:
            return bool(host.status.error_message) or host.status.provisioning.state == state

        host = await self.until(there_or_failed, state)
        if host.status.error_message:
            raise await self._complaint(f"failed on its way to {state}")
        return host

    async def troubles(self) -> list[str]:
        """What its user was warned of."""
        found = await self.room.client.list(EVENTS, namespace=NAMESPACE)
        return [
            f"{event.reason}: {event.message}"
            for event in found.items
            if event.involved_object.name == self.name and event.type == "Warning"
        ]

    async def node(self) -> FullNode | None:
        """What Ironic has of it."""
        async with self.room.ironic() as ironic:
            with contextlib.suppress(NoNode):
                return await ironic.node(f"{NAMESPACE}~{self.name}")
        return None

    async def until_node(self, condition: Callable[[FullNode], bool], what: str, name: str = "") -> FullNode:
        end = time.monotonic() + PATIENCE
        async with self.room.ironic() as ironic:
            while True:
                with contextlib.suppress(NoNode, BackendUnavailable):
                    node = await ironic.node(name or f"{NAMESPACE}~{self.name}")
                    if condition(node):
                        return node
                if time.monotonic() > end:
                    raise await self._complaint(f"is not {what}")
                await asyncio.sleep(0.1)

    # What the server itself knows

    async def seen(self) -> ServerView:
        return await self.room.lab.server(self.name)

    async def until_seen(self, condition: Callable[[ServerView], bool], what: str) -> ServerView:
        end = time.monotonic() + PATIENCE
        while not condition(seen := await self.seen()):
            if time.monotonic() > end:
                raise await self._complaint(f"is not {what}")
            await asyncio.sleep(0.2)
        return seen

    async def until_running(self) -> ServerView:
        """Until the server has booted from its disk: Ironic is done a moment before the machine is."""
        return await self.until_seen(lambda seen: seen.booted_into == "instance", "running its image")

    async def behave(self, faults: Faults | None = None) -> None:
        """Misbehave like this from now on; without faults, be well."""
        if faults is not None:
            self._acted_out = (await self.seen()).acted_out
        await self.room.lab.set_faults(self.name, faults or Faults())

    async def has_acted_out(self, faults: Faults) -> None:
        """That it misbehaved in each of these ways since it was told to, and as often where that is counted, by the farm's own
        record: a story of a fault that nobody came across shows nothing."""
        seen = await self.seen()
        for name, value in msgspec.to_builtins(faults).items():
            times = seen.acted_out.get(name, 0) - self._acted_out.get(name, 0)
            if times < (value if name in COUNTED and value > 0 else 1):
                raise await self._complaint(f"has acted out {name} {times} times")

    async def hold(self, place: str) -> None:
        """Wait there, from the next time that it comes there until it is released."""
        await self.room.lab.hold(self.name, place)

    async def story(self) -> str:
        """The server's own log, for the report of a failed test."""
        lines = (await self.seen()).log
        return "\n".join(f"{line.at:%H:%M:%S} {line.text}" for line in lines)


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _tail(log: Path, lines: int = 25) -> str:
    return "\n".join(line[:300] for line in log.read_text(errors="replace").splitlines()[-lines:])
