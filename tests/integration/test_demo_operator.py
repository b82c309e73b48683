"""`ingot operator --provisioner demo` on the embedded API: hosts go their way through the API, also when operators are killed."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import EVENTS, LEASES, SECRETS
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.meta import Key
from ingot.embedded.server import Running, serve
from ingot.kube import Client, NotFound

PATIENCE = 120
IMAGE = {
    "url": "https://images.example/a.raw",
    "checksum": "0" * 64,
    "checksumType": "sha256",
    "format": "raw",
}
SCRIPT = """
default:
  others: {seconds: 0.2}
hosts:
  slow-*: {provision: {seconds: 3}}
  twice: {inspect: {fails: 1, message: no disks were found}}
"""


class Site:
    """The API, and operators with one state folder."""

    def __init__(self, api: Running, client: Client, folder: Path) -> None:
        self._folder = folder
        self.client = client
        self.environment = {
            "PATH": os.environ["PATH"],
            "INGOT_STATE": str(folder / "state"),
            "KUBECONFIG": str(api.kubeconfig),
        }
        self.script = folder / "script.yaml"
        self.script.write_text(SCRIPT)

    @asynccontextmanager
    async def operator(self, *options: str) -> AsyncIterator[Process]:
        command = [str(Path(sys.executable).with_name("ingot")), "operator", "--provisioner", "demo"]
        command += ["--demo-script", str(self.script), *options]
        with (self._folder / "operator.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command, env=self.environment, stdout=PIPE, stderr=log
            )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()

    async def host(self, name: str, **spec: Any) -> Key:
        await self.client.create(
            SECRETS,
            {"metadata": {"name": f"{name}-bmc"}, "stringData": {"username": "admin", "password": "x"}},
            namespace="default",
        )
        bmc = {"address": f"redfish://192.0.2.1/redfish/v1/Systems/{name}", "credentialsName": f"{name}-bmc"}
        body = {"metadata": {"name": name}, "spec": {"online": True, "bmc": bmc} | spec}
        await self.client.create(BARE_METAL_HOSTS, body, namespace="default")
        return Key("default", name)

    async def until(self, key: Key, condition: Callable[[BareMetalHost], bool]) -> BareMetalHost:
        last: BareMetalHost | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    last = await self.client.get(BARE_METAL_HOSTS, key)
                    if condition(last):
                        return last
                    await asyncio.sleep(0.05)
        except TimeoutError:
            log = (self._folder / "operator.log").read_text()[-4000:]
            raise AssertionError(f"{key} never came there: {last and last.status}\n{log}") from None

    async def until_state(self, key: Key, state: str) -> BareMetalHost:
        return await self.until(key, lambda host: host.status.provisioning.state == state)

    async def until_gone(self, key: Key) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.client.get(BARE_METAL_HOSTS, key)
                except NotFound:
                    return
                await asyncio.sleep(0.05)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with serve(tmp_path / "api-state") as api, Client.from_kubeconfig(api.kubeconfig) as client:
        yield Site(api, client, tmp_path)


async def says(process: Process, line: bytes) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        while not (said := await process.stdout.readline()).startswith(line):
            assert said, "it ended without saying it"


async def test_a_host_goes_its_whole_way_through_the_api(site: Site):
    async with site.operator() as operator:
        await says(operator, b"operator ready, driving demo machines")
        key = await site.host("h1")
        host = await site.until_state(key, "available")
        assert host.status.powered_on
        assert host.status.provisioning.id
        hardware = (await site.client.get(HARDWARE_DATA, key)).spec.hardware
        assert hardware is not None
        assert hardware.cpu.arch == "x86_64"
        await site.client.patch(BARE_METAL_HOSTS, key, {"spec": {"image": IMAGE}})
        host = await site.until_state(key, "provisioned")
        assert host.status.provisioning.image is not None
        assert host.status.provisioning.image.url == IMAGE["url"]
        await site.client.patch(BARE_METAL_HOSTS, key, {"spec": {"online": False}})
        await site.until(key, lambda host: not host.status.powered_on)
        await site.client.patch(BARE_METAL_HOSTS, key, {"spec": {"image": None, "online": True}})
        await site.until(
            key, lambda host: host.status.provisioning.state == "available" and host.status.powered_on
        )
        await site.client.delete(BARE_METAL_HOSTS, key)
        await site.until_gone(key)
        events = [event.reason for event in (await site.client.list(EVENTS, namespace="default")).items]
        assert {"Registered", "InspectionComplete", "ProvisioningComplete", "DeprovisioningComplete"} <= {
            *events
        }
        operator.terminate()
        async with asyncio.timeout(PATIENCE):
            assert await operator.wait() == 0


async def test_a_failure_of_the_script_is_the_error_of_the_host(site: Site):
    async with site.operator():
        key = await site.host("twice")
        host = await site.until(key, lambda host: bool(host.status.error_message))
        assert host.status.error_type == "inspection error"
        assert "no disks were found" in host.status.error_message


def _is(state: str, message: str) -> Callable[[BareMetalHost], bool]:
    return lambda host: host.status.provisioning.state == state and message in host.status.error_message


async def test_metal3s_demo_hosts_come_to_the_state_of_their_name(site: Site):
    async with site.operator():
        image = {"image": IMAGE}
        wanted: dict[str, tuple[str, str, dict[str, Any]]] = {
            "demo-registration-error": ("registering", "failed to register new host", {}),
            "demo-registering": ("registering", "", {}),
            "demo-available": ("available", "", {}),
            "demo-inspecting": ("inspecting", "", {}),
            "demo-preparing-error": ("preparing", "failed to prepare host", {}),
            "demo-preparing": ("preparing", "", {}),
            "demo-validation-error": ("provisioning", "validation failed", image),
            "demo-provisioning": ("provisioning", "", image),
            "demo-provisioned": ("provisioned", "", image),
        }
        keys = {name: await site.host(name, **spec) for name, (_, _, spec) in wanted.items()}
        for name, (state, message, _) in wanted.items():
            host = await site.until(keys[name], _is(state, message))
            assert bool(host.status.error_message) is bool(message)
        # Each can be deleted from where it hangs.
        for key in keys.values():
            await site.client.delete(BARE_METAL_HOSTS, key)
        for name in ("demo-registering", "demo-inspecting", "demo-preparing", "demo-provisioning"):
            await site.until_gone(keys[name])


async def test_hosts_go_on_when_the_leader_of_two_operators_is_killed(site: Site):
    elect = (
        "--leader-elect",
        "--lease-duration-seconds=3",
        "--renew-deadline-seconds=2",
        "--retry-period-seconds=0.5",
    )
    async with site.operator(*elect) as first:
        await says(first, b"operator ready")
        async with site.operator(*elect) as second:
            keys = [await site.host(f"slow-{number}", image=IMAGE) for number in range(5)]
            for key in keys:
                await site.until_state(key, "provisioning")
            before = await site.client.get(LEASES, Key("default", "baremetal-operator"))
            first.kill()
            await first.wait()
            await says(second, b"operator ready")
            for key in keys:
                host = await site.until_state(key, "provisioned")
                assert host.status.error_count == 0
                assert host.status.provisioning_fail_count == 0
            after = await site.client.get(LEASES, Key("default", "baremetal-operator"))
            assert before.spec.holder_identity != after.spec.holder_identity
            events = (await site.client.list(EVENTS, namespace="default")).items
            assert not [event for event in events if event.type == "Warning"]
