"""The target image belongs to whoever claims a host: changing it installs the machine anew, removing it deprovisions the host.

All controllers together on the embedded API, with the demo back end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import CONFIG_MAPS, NAMESPACES, SECRETS
from ingot.api.hostclaim import HOST_CLAIMS
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.machine import MACHINES, Machine
from ingot.api.meta import Key, Object, Resource
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES
from ingot.api.wire import wire
from ingot.embedded.server import serve
from ingot.hosts import HostController
from ingot.hosts.ownership import images_of
from ingot.kube import Client, EventRecorder, Manager, NotFound
from ingot.machines.defaults import NAME
from ingot.machines.running import MachineSettings, machines
from ingot.provisioner.demo import Behaviour, DemoProvisioner, HostScript, Script

PATIENCE = 60.0
RACKS, TENANT = "racks", "tenant"
A, B, C = (
    {"url": f"https://images.example/{name}.qcow2", "checksum": name * 64, "checksumType": "sha256"}
    for name in "abc"
)
CLAIM, MACHINE, HOST = Key(TENANT, "mine"), Key(RACKS, "w0"), Key(RACKS, "h1")
ANNOTATION = "ingot.metal3.io/image-source"
CLAIMED = {"consumerRef", "online", "image", "customDeploy", "userData", "networkData", "metaData"}
"""All that a claimant sets on a host."""


def briefly(image: dict[str, str]) -> dict[str, str]:
    """As a provider spec names it."""
    return {field: image[field] for field in ("url", "checksum")}


class Site:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def host(self, name: str = "h1") -> BareMetalHost:
        bmc = {"address": f"redfish://192.0.2.1/redfish/v1/Systems/{name}", "credentialsName": f"{name}-bmc"}
        login = {"username": "admin", "password": "hunter2"}
        await self.make(SECRETS, RACKS, f"{name}-bmc", stringData=login)
        await self.make(BARE_METAL_HOSTS, RACKS, name, spec={"online": True, "bmc": bmc})
        return await self.state("available", Key(RACKS, name))

    async def make(
        self,
        kind: Resource[Any],
        namespace: str,
        name: str,
        *,
        meta: dict[str, Any] | None = None,
        **body: Any,
    ) -> None:
        await self.client.create(
            kind, {"metadata": {"name": name, **(meta or {})}, **body}, namespace=namespace
        )

    async def claim(self, **spec: Any) -> None:
        await self.make(HOST_CLAIMS, TENANT, "mine", spec={"poweredOn": True} | spec)

    async def machine(self, name: str = "w0", **value: Any) -> None:
        spec = {"providerSpec": {"value": {"hostSelector": {}} | value}}
        await self.make(MACHINES, RACKS, name, spec=spec)

    async def change(self, kind: Resource[Any], key: Key, **spec: Any) -> None:
        await self.client.patch(kind, key, {"spec": spec})

    async def until(
        self,
        condition: Callable[[BareMetalHost], bool],
        key: Key = HOST,
        kind: Resource[Any] = BARE_METAL_HOSTS,
    ) -> Any:
        found: Object | None = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    found = await self.client.get(kind, key)
                    if condition(found):
                        return found
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{key} never came there: {found}") from None

    async def state(self, state: str, key: Key = HOST) -> BareMetalHost:
        found: BareMetalHost = await self.until(lambda host: host.status.provisioning.state == state, key)
        return found

    async def runs(self, image: dict[str, str], key: Key = HOST) -> BareMetalHost:
        """Until the machine runs this image, and nothing else is wanted."""

        def there(host: BareMetalHost) -> bool:
            done = host.status.provisioning
            url = done.image.url if done.image is not None else ""
            return done.state == "provisioned" and url == image["url"] and host.spec.image is not None

        found: BareMetalHost = await self.until(there, key)
        assert found.spec.image is not None
        assert found.spec.image.url == image["url"]
        return found

    async def until_gone(self, kind: Resource[Any], key: Key) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    await self.client.get(kind, key)
                except NotFound:
                    return
                await asyncio.sleep(0.02)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    script = Script(default=HostScript(others=Behaviour(seconds=0)))
    settings = MachineSettings(
        defaults_namespace=RACKS, release_target="customDeploy: {method: install_coreos}", machinesets="off"
    )
    async with (
        serve(tmp_path / "state") as api,
        Client.from_kubeconfig(api.kubeconfig) as client,
        EventRecorder(client) as recorder,
        DemoProvisioner(tmp_path / "machines.sqlite", script) as backend,
    ):
        for name in (RACKS, TENANT):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        hosts = HostController(client, backend, recorder)
        given = machines(client, recorder, settings)
        manager = Manager(
            [*hosts.informers, *given.informers],
            [*hosts.controllers, *given.controllers],
            tasks=[hosts.follow_backend, *given.tasks],
        )
        running = asyncio.create_task(manager.run())
        await manager.started()
        here = Site(client)
        policy = {"hostClaimNamespaces": {"names": [TENANT]}}
        await here.make(HOST_DEPLOY_POLICIES, RACKS, "tenants", spec=policy)
        yield here
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def emptied_at(host: BareMetalHost) -> Any:
    return host.status.operation_history.deprovision.end


def nothing_is_installed(host: BareMetalHost) -> bool:
    image = host.status.provisioning.image
    return image is None or not image.url


async def test_another_image_in_a_claim_installs_the_machine_anew_and_none_deprovisions_it(
    site: Site,
) -> None:
    await site.host()
    await site.claim(image=A)
    first = await site.runs(A)
    assert emptied_at(first) is None
    await site.change(HOST_CLAIMS, CLAIM, image=B)
    second = await site.runs(B)
    assert emptied_at(second) is not None, "what ran there was removed first"
    await site.change(HOST_CLAIMS, CLAIM, image=None)
    empty = await site.state("available")
    assert empty.spec.image is None
    assert empty.spec.consumer_ref is not None, "the claim has its host all the same"
    assert nothing_is_installed(empty)
    await site.change(HOST_CLAIMS, CLAIM, image=C)
    await site.runs(C)
    await site.client.delete(HOST_CLAIMS, CLAIM)
    await site.until_gone(HOST_CLAIMS, CLAIM)
    free = await site.state("available")
    assert (free.spec.consumer_ref, free.spec.image) == (None, None)


async def test_the_image_of_a_machine_is_decided_once_and_goes_with_it(site: Site) -> None:
    await site.host()
    await site.machine(image=briefly(A))
    first = await site.runs(A)
    machine: Machine = await site.until(lambda it: ANNOTATION in it.metadata.annotations, MACHINE, MACHINES)
    assert machine.metadata.annotations[ANNOTATION] == "provider spec"
    other = {"image": briefly(B), "hostSelector": {}}
    await site.change(MACHINES, MACHINE, providerSpec={"value": other})
    await site.change(BARE_METAL_HOSTS, HOST, image=None)
    # Whoever takes it off the host has not asked the Machine: it is told again.
    again = await site.until(lambda host: host.spec.image is not None)
    await site.until(lambda host: host.status.provisioning.state == "provisioned")
    assert again.spec.consumer_ref == first.spec.consumer_ref
    await site.client.delete(MACHINES, MACHINE)
    await site.until_gone(MACHINES, MACHINE)
    free = await site.state("available")
    assert (free.spec.consumer_ref, free.spec.image) == (None, None)
    assert emptied_at(free) is not None


async def test_a_default_is_for_machines_to_come_and_says_whose_it_is(site: Site) -> None:
    await site.host("h1")
    await site.machine("w0")
    coreos = await site.state("provisioned")
    assert coreos.spec.custom_deploy is not None
    assert coreos.spec.custom_deploy.method == "install_coreos"
    said = msgspec.json.encode(briefly(A)).decode()
    await site.make(CONFIG_MAPS, RACKS, NAME, data={"image": said})
    await site.host("h2")
    await site.machine("w1")
    await site.runs(A, Key(RACKS, "h2"))
    by_cluster: Machine = await site.client.get(MACHINES, Key(RACKS, "w1"))
    by_release: Machine = await site.client.get(MACHINES, MACHINE)
    assert by_cluster.metadata.annotations[ANNOTATION] == "cluster"
    assert by_release.metadata.annotations[ANNOTATION] == "release"
    after = await site.client.get(BARE_METAL_HOSTS, HOST)
    assert after.spec == coreos.spec, "what runs is not touched by a default that comes later"
    assert emptied_at(after) is None
    told = images_of(after, built=None, claimant=by_release).target
    assert told.owner == f"Machine {MACHINE}"
    assert "default of the release" in told.why


async def test_the_image_of_a_host_that_nobody_claims_is_the_manifests(site: Site) -> None:
    await site.host()
    await site.change(BARE_METAL_HOSTS, HOST, image=A)
    first = await site.runs(A)
    await site.change(BARE_METAL_HOSTS, HOST, image=B)
    second = await site.runs(B)
    assert (emptied_at(first), emptied_at(second) is None) == (None, False)
    await site.change(BARE_METAL_HOSTS, HOST, image=None)
    assert nothing_is_installed(await site.state("available"))


# What a claimant cannot do: choose what the machine boots to be installed

RAMDISK = {
    "deployISO": "https://evil.example/a.iso",
    "deploy_iso": "https://evil.example/a.iso",
    "kernelParams": "evil",
    "preprovisioningNetworkDataName": "evil",
    "architecture": "evil",
    "bmc": {"address": "redfish://evil.example/"},
    "driverInfo": {"deploy_iso": "https://evil.example/a.iso"},
    "inspectionMode": "disabled",
    "bootMode": "legacy",
}
META = {
    "annotations": {
        "inspect.metal3.io": "disabled",
        "baremetalhost.metal3.io/deploy-iso": "https://evil.example/a.iso",
        "inspect.metal3.io/hardwaredetails": '{"cpu": {"arch": "evil"}}',
        "baremetalhost.metal3.io/status": "{}",
    },
    "labels": {"infraenvs.agent-install.openshift.io": "evil", "deploy_iso": "evil"},
}


def beyond_the_claim(host: BareMetalHost) -> dict[str, Any]:
    """Of a host, what is none of its claimant's business."""
    spec = {field: value for field, value in wire(host.spec).items() if field not in CLAIMED}
    kept = {name: value for name, value in host.metadata.annotations.items() if "evil" in value}
    return {"spec": spec, "labels": host.metadata.labels, "annotations": kept}


async def test_a_claim_says_what_is_installed_and_nothing_else_of_its_host(site: Site) -> None:
    before = await site.host()
    await site.make(
        HOST_CLAIMS,
        TENANT,
        "mine",
        meta=META,
        spec={"poweredOn": True, "image": A | RAMDISK, "hostSelector": {}, **RAMDISK},
    )
    after = await site.runs(A)
    assert beyond_the_claim(after) == beyond_the_claim(before)
    assert "evil" not in str(wire(after.spec))
    assert not (await site.client.list(PREPROVISIONING_IMAGES, namespace=RACKS)).items


async def test_neither_does_a_machine(site: Site) -> None:
    before = await site.host()
    value = {"image": briefly(A), "hostSelector": {}}
    spec = {"providerSpec": {"value": value}, **RAMDISK}
    await site.make(MACHINES, RACKS, "w0", meta=META, spec=spec)
    after = await site.runs(A)
    assert beyond_the_claim(after) == beyond_the_claim(before)
    assert "evil" not in str(wire(after.spec))


@pytest.mark.parametrize("field", sorted(RAMDISK))
async def test_a_provider_spec_that_says_more_is_not_carried_out(site: Site, field: str) -> None:
    await site.host()
    image = briefly(A)
    for number, value in enumerate(
        ({"image": image, field: RAMDISK[field]}, {"image": image | {field: RAMDISK[field]}})
    ):
        await site.machine(f"w{number}", **value)
        key = Key(RACKS, f"w{number}")
        told: Machine = await site.until(lambda it: bool(it.status.error_reason), key, MACHINES)
        assert told.status.error_reason == "InvalidConfiguration"
        assert field in told.status.error_message
    assert (await site.client.get(BARE_METAL_HOSTS, HOST)).spec.consumer_ref is None
