"""A site whose users try to choose what their machines boot: a Kubernetes API, the controllers of hosts and of ramdisks, and the
real back end before a fake Ironic, which does at once what it is asked for and remembers everything it was ever told.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

from fake_ironic import FakeIronic
from fake_plugin import FakePlugin

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import NAMESPACES, SECRETS
from ingot.api.meta import Key, Object, Resource
from ingot.api.preprovisioningimage import PREPROVISIONING_IMAGES
from ingot.embedded.server import serve
from ingot.hosts import HostController, HostSettings
from ingot.images.controller import ImageSettings, Listen, serving
from ingot.images.ramdisk import AgentSettings
from ingot.kube import ApiError, Client, EventRecorder, Informer, Manager, NotFound
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner, PushListen, Ramdisk
from ingot.provisioner.ironic.drivers import FAMILIES
from ingot.provisioner.ironic.instance import IMAGE_KEYS
from ingot.provisioner.ironic.ramdisks import KEYS
from ingot.trust import Authority, ServingTls, random_token
from live_images import NEWEST, live_image

Way = Literal["usual ISO", "usual kernel", "own ISO", "own initrd"]
WAYS: Final[tuple[Way, ...]] = ("usual ISO", "usual kernel", "own ISO", "own initrd")

SOURCE = "https://ramdisks.release.example:8084"
USUAL = Ramdisk(
    iso=f"{SOURCE}/usual.iso",
    kernel=f"{SOURCE}/usual.kernel",
    initramfs=f"{SOURCE}/usual.initramfs",
    by_architecture={"aarch64": Ramdisk(iso=f"{SOURCE}/arm.iso")},
)
EVIL = "evil.example"
PATIENCE = 120.0
LOOKS = 40
"""How often a host is seen to wait for a ramdisk before nobody expects one any more."""
INVENTORY = {"cpu": {"architecture": "x86_64", "count": 4}, "memory": {"physical_mb": 8192}}
SETTLED = frozenset({"available", "provisioned", "externally provisioned", "unmanaged"})
_REACHING = {key for family in FAMILIES for key in family.keys}
"""How the BMC is reached is the user's to say."""


@dataclass
class Told:
    """What Ironic was told of the node of one host, at one time."""

    driver_info: dict[str, Any]
    instance_info: dict[str, Any]
    network_data: dict[str, Any]

    @property
    def boots(self) -> dict[str, Any]:
        return {key: self.driver_info[key] for key in KEYS if key in self.driver_info}

    def problems(self, way: Way) -> Iterator[str]:
        """What of this somebody else than the release has said."""
        for key, value in self.boots.items():
            if not str(value).removeprefix("%default% coreos.live.rootfs_url=").startswith(f"{SOURCE}/"):
                yield f"{key} is {value!r}"
            if key not in BOOTS[way]:
                yield f"{key} is said, which this way of booting does not need"
        for key, value in self.driver_info.items():
            if EVIL in json.dumps(value) and key not in _REACHING:
                yield f"driver_info.{key} is {value!r}"
        for key in self.instance_info.keys() - {*IMAGE_KEYS, "capabilities", "root_device"}:
            yield f"instance_info.{key} is {self.instance_info[key]!r}"


BOOTS: Final[dict[Way, set[str]]] = {
    "usual ISO": {"deploy_iso"},
    "usual kernel": {"deploy_kernel", "deploy_ramdisk"},
    "own ISO": {"deploy_iso"},
    "own initrd": {"deploy_kernel", "deploy_ramdisk", "kernel_append_params"},
}


class Conductor:
    """Ends at once, and well, whatever Ironic begins; and notes all that it is told."""

    def __init__(self, ironic: FakeIronic, plugin: FakePlugin) -> None:
        self._ironic, self._plugin = ironic, plugin
        self.told: defaultdict[str, list[Told]] = defaultdict(list)
        """By namespace."""
        ironic.on_change = self._changed

    def _changed(self, node: dict[str, Any], deleted: bool) -> None:
        noted = Told(*(json.loads(json.dumps(node[name])) for name in Told.__dataclass_fields__))
        self.told[str(node["name"]).partition("~")[0]].append(noted)
        self._plugin.changed(node, deleted)
        if not deleted:
            asyncio.get_running_loop().call_soon(self._conduct, node["uuid"])

    def _conduct(self, uuid: str) -> None:
        node = self._ironic.nodes.get(uuid)
        if node is None:
            return
        if uuid in self._ironic.media.under_way:
            self._ironic.media.finish(uuid)
        elif (target := node["target_power_state"]) is not None:
            self._ironic.change(uuid, target_power_state=None, power_state=target)
        elif node["provision_state"] == "inspecting":
            self._ironic.inspected(uuid, INVENTORY)
        elif node["provision_state"] in (
            "verifying",
            "cleaning",
            "deploying",
            "deleting",
            "adopting",
            "servicing",
        ):
            self._ironic.finish(uuid)


@dataclass
class Hand:
    """What one user does, in a namespace of theirs, with the host h1."""

    client: Client
    namespace: str
    way: Way
    number: int
    known: Informer[BareMetalHost]
    refused: list[str] = field(default_factory=list)
    """What the API did not take."""
    host_refused: bool = False

    @property
    def key(self) -> Key:
        return Key(self.namespace, "h1")

    def spec(self, **more: Any) -> dict[str, Any]:
        scheme = "ipmi" if self.way.endswith(("kernel", "initrd")) else "redfish-virtualmedia"
        path = "" if scheme == "ipmi" else f"/redfish/v1/Systems/{self.number}"
        bmc = {
            "address": f"{scheme}://127.0.0.1:{10000 + self.number}{path}",
            "credentialsName": "bmc",
        } | more.pop("bmc", {})
        mac = f"00:00:5e:00:{self.number // 256:02x}:{self.number % 256:02x}"
        return {"online": True, "bootMACAddress": mac, "bmc": bmc} | more

    async def host(
        self,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        secret: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        await self.secret("bmc", **{"username": "admin", "password": "hunter2"} | dict(secret or {}))
        meta = {"name": "h1", "annotations": dict(annotations or {}), "labels": dict(labels or {})}
        await self.make(BARE_METAL_HOSTS, {"metadata": meta, "spec": self.spec(**spec)})

    async def secret(self, name: str, **values: str) -> None:
        await self.make(SECRETS, {"metadata": {"name": name}, "stringData": values})

    async def make(self, kind: Resource[Any], body: dict[str, Any]) -> None:
        body["metadata"].setdefault("name", "h1")
        try:
            await self.client.create(kind, body, namespace=self.namespace)
        except ApiError as error:
            if error.code not in (400, 422):
                raise
            self.refused.append(str(error))
            self.host_refused |= kind is BARE_METAL_HOSTS

    async def change(
        self, kind: Resource[Any], body: dict[str, Any], *, subresource: str = ""
    ) -> Object | None:
        try:
            changed: Object = await self.client.patch(kind, self.key, body, subresource=subresource)
        except ApiError as error:
            if error.code not in (400, 404, 422):
                raise
            self.refused.append(str(error))
            return None
        return changed

    async def until(self, condition: Callable[[BareMetalHost], bool]) -> BareMetalHost:
        """As the operator knows the host: a hundred users who ask the API all the time keep it from its work."""
        async with asyncio.timeout(PATIENCE):
            while True:
                host = self.known.get(self.key)
                if host is not None and condition(host):
                    return host
                await asyncio.sleep(0.05)

    async def settled(self) -> BareMetalHost | None:
        """The host when it has come to rest, or to what it cannot get past; None if the API never took it."""
        looks = 0

        def is_over(host: BareMetalHost) -> bool:
            nonlocal looks
            looks = looks + 1 if _waits_for_a_ramdisk(host) else 0
            return bool(host.status.error_message) or looks > LOOKS or _is_at_rest(host)

        return None if self.host_refused else await self.until(is_over)


def _waits_for_a_ramdisk(host: BareMetalHost) -> bool:
    return any("waiting for the ramdisk" in found.message for found in host.status.conditions)


def _is_at_rest(host: BareMetalHost) -> bool:
    state = str(host.status.provisioning.state)
    wants = host.spec.image is not None or host.spec.custom_deploy is not None
    return state in SETTLED and not (wants and state == "available")


@dataclass
class Site:
    client: Client
    way: Way
    conductor: Conductor
    ironic: FakeIronic
    known: Informer[BareMetalHost]
    _count: int = field(default_factory=lambda: secrets.randbelow(40_000))
    """Hosts of an earlier site may be left on a cluster: none of this one has their addresses."""

    async def hand(self) -> Hand:
        self._count += 1
        namespace = f"user-{self._count}-{uuid4().hex[:8]}"
        await self.client.create(NAMESPACES, {"metadata": {"name": namespace}})
        return Hand(self.client, namespace, self.way, self._count, self.known)


@contextlib.asynccontextmanager
async def _api(folder: Path) -> AsyncIterator[Path]:
    """The embedded API, which asks our rules; or a cluster that nobody needs afterwards, and that asks nobody."""
    given = os.environ.get("INGOT_TEST_KUBECONFIG")
    if given and os.environ.get("INGOT_TEST_THROWAWAY"):
        yield Path(given)
        return
    async with serve(folder / "state") as running:
        yield running.kubeconfig


@contextlib.asynccontextmanager
async def site(folder: Path, way: Way) -> AsyncIterator[Site]:
    iso = folder / "live.iso"
    iso.write_bytes(live_image(NEWEST))
    auth = folder / "auth"
    auth.mkdir()
    authority = Authority(folder / "ca")
    certificate = authority.issue(folder, "fake", ["127.0.0.1"])
    ironic = FakeIronic(certificate)
    (auth / "username").write_text(ironic.username)
    (auth / "password").write_text(ironic.password)
    await ironic.start()
    where = IronicAccess(
        endpoint=ironic.url, ca_file=certificate.ca_file, auth_folder=auth, ramdisk=USUAL, timeout=30
    )
    listen = PushListen(host="127.0.0.1", port=0, tls=certificate.server_context(), token=random_token())
    own = way.startswith("own")
    async with (
        _api(folder) as kubeconfig,
        Client.from_kubeconfig(kubeconfig) as client,
        EventRecorder(client) as recorder,
        IronicProvisioner(where, listen) as backend,
        serving(
            client,
            recorder,
            ImageSettings(
                state=folder / "images",
                agent=lambda: AgentSettings(api_urls=("https://10.0.0.1:6385",)),
                listen=Listen("127.0.0.1", 0),
                public_url=SOURCE,
                iso=iso,
                architecture="x86_64",
            ),
            tls=ServingTls(lambda: authority.issue(folder, "images", ["127.0.0.1"])),
        ) as images,
    ):
        assert backend.push_port is not None
        plugin = FakePlugin(backend.push_port, listen.token, certificate.ca_file)
        conductor = Conductor(ironic, plugin)
        hosts = HostController(
            client,
            backend,
            recorder,
            settings=HostSettings(own_ramdisks=own, ramdisk_source=SOURCE, provisioning_limit=1000),
        )
        manager = Manager(
            [*hosts.informers, *(images.informers if own else [])],
            [*hosts.controllers, *(images.controllers if own else [])],
            tasks=[hosts.follow_backend, *(images.tasks if own else [])],
        )
        running = asyncio.create_task(manager.run())
        try:
            await manager.started()
            yield Site(client, way, conductor, ironic, hosts.hosts)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            ironic.on_change = lambda node, deleted: None
            await plugin.stop()
            await ironic.stop()
            await _leave_nothing(client)


async def _leave_nothing(client: Client) -> None:
    """Of hosts and their ramdisks, for whoever comes to the same cluster next."""
    if not os.environ.get("INGOT_TEST_THROWAWAY"):
        return
    for kind in (BARE_METAL_HOSTS, PREPROVISIONING_IMAGES):
        for found in (await client.list(kind)).items:
            with contextlib.suppress(NotFound):
                await client.patch(kind, found.key, {"metadata": {"finalizers": []}})
                await client.delete(kind, found.key)
