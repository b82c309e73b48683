"""What users, and whoever mends machines, do in the world of the laws; and what they have asked for so far."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from laws_world import WRONG, World
from msgspec.structs import replace

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation, BareMetalHost, State
from ingot.api.core import SECRETS
from ingot.api.dataimage import DATA_IMAGES
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.api.hostfirmwarecomponents import HOST_FIRMWARE_COMPONENTS
from ingot.api.hostfirmwaresettings import HOST_FIRMWARE_SETTINGS
from ingot.api.hostupdatepolicy import HOST_UPDATE_POLICIES
from ingot.api.meta import Resource
from ingot.api.wire import wire
from ingot.hosts.states.servicing import is_serviced
from ingot.kube import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from ingot.provisioner.demo import Behaviour, HostScript, Script
from ingot.provisioner.demo.script import Verb

BESIDE: Final[tuple[Resource[Any], ...]] = (
    HARDWARE_DATA,
    HOST_FIRMWARE_SETTINGS,
    HOST_FIRMWARE_COMPONENTS,
    HOST_UPDATE_POLICIES,
    DATA_IMAGES,
)
"""What moves together with a host."""
AT_ONCE: Final = Behaviour(seconds=0)
COMPONENTS: Final = {"bios": "1.0"}


@contextlib.contextmanager
def refused_or_done() -> Iterator[None]:
    """Users try things that the API does not let them do."""
    with contextlib.suppress(NotFound, AlreadyExists, Invalid, Conflict, Forbidden):
        yield


def image(letter: str) -> dict[str, str] | None:
    """The image of this name; None for none."""
    if not letter:
        return None
    return {
        "url": f"https://images.example/{letter}.raw",
        "checksum": "0" * 64,
        "checksumType": "sha256",
        "format": "raw",
    }


class User:
    def __init__(self, world: World, *, network_boot: bool) -> None:
        self.world = world
        self.asked: Counter[tuple[str, str]] = Counter()
        """How often a host's firmware was asked to become something it was not asked to be before, by the machine's deed."""
        self.licenses: dict[str, set[str]] = {}
        """What was asked for since the laws were last looked at, as far as it may cost a running system something."""
        self.amnesia = 0
        """How often the back end lost what it knew of the orders it had begun."""
        self.overlaps: Counter[str] = Counter()
        """How often a host was asked for something else while its firmware was being changed, or had not been read back: an
        operator that is started after that cannot know what has come of the earlier order."""
        self.external: set[str] = set()
        """Hosts that somebody else installed, some time."""
        self.changes = 0
        """Things that were done since the laws were last looked at."""
        self._network_boot = network_boot
        self._behaviour: dict[tuple[str, str], Behaviour] = {}
        self._numbers = iter(range(1, 1_000_000))

    def licensed(self, name: str, *deeds: str) -> bool:
        return bool(self.licenses.get(name, set()) & set(deeds))

    def _license(self, name: str, deed: str) -> None:
        self.licenses.setdefault(name, set()).add(deed)

    # Hosts

    async def create(self, name: str, *, secret: str, annotations: dict[str, str], **spec: Any) -> None:
        self._license(name, "everything")
        if spec.get("externallyProvisioned"):
            self.external.add(name)
        await self.secret(name, secret)
        bmc = {
            "address": f"redfish-virtualmedia://127.0.0.1/redfish/v1/Systems/{name}",
            "credentialsName": name,
        }
        body = {
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"online": True, "bmc": bmc}
            | {key: value for key, value in spec.items() if value is not None},
        }
        with refused_or_done():
            await self.world.client.create(BARE_METAL_HOSTS, body, namespace=self.world.namespace)

    async def change(self, name: str, spec: dict[str, Any]) -> None:
        if "image" in spec or "externallyProvisioned" in spec:
            self._license(name, "install")
        if spec.get("externallyProvisioned"):
            self.external.add(name)
        if "raid" in spec or "image" in spec:
            await self._overlap(name)
        if spec.get("online") is False:
            self._license(name, "stop")
        with refused_or_done():
            await self.world.client.patch(BARE_METAL_HOSTS, self.world.key(name), {"spec": spec})

    async def annotate(self, name: str, annotation: str, value: str | None) -> None:
        if annotation.startswith(Annotation.REBOOT):
            self._license(name, "stop")
        if annotation == Annotation.DETACHED:
            self.amnesia += 1
        with refused_or_done():
            patch = {"metadata": {"annotations": {annotation: value}}}
            await self.world.client.patch(BARE_METAL_HOSTS, self.world.key(name), patch)

    async def delete(self, name: str) -> None:
        self._license(name, "everything")
        with refused_or_done():
            await self.world.client.delete(BARE_METAL_HOSTS, self.world.key(name))

    async def delete_by_force(self, name: str) -> None:
        self.amnesia += 1
        await self.annotate(name, Annotation.FORCE_DELETE, "")
        await self.delete(name)

    async def secret(self, name: str, kind: str, *, password: str = "hunter2") -> None:
        """good, wrong, incomplete, or absent."""
        client, key = self.world.client, self.world.key(name)
        if kind == "absent":
            with refused_or_done():
                await client.delete(SECRETS, key)
            return
        data: dict[str, str | None] = {"username": "admin", "password": password}
        if kind == "wrong":
            data["password"] = WRONG
        if kind == "incomplete":
            del data["password"]
        with refused_or_done():
            try:
                body = {"metadata": {"name": name}, "stringData": data}
                await client.create(SECRETS, body, namespace=self.world.namespace)
            except AlreadyExists:
                emptied = {"data": {"username": None, "password": None}, "stringData": data}
                await client.patch(SECRETS, key, emptied)

    async def move(self, name: str) -> None:
        """As objects are moved between clusters: everything is made anew, and the status comes in an annotation."""
        world, client, key = self.world, self.world.client, self.world.key(name)
        host = await world.host(name)
        if host is None or host.metadata.deletion_timestamp is not None:
            return
        self.amnesia += 1
        await self._overlap(name)
        await world.kill()
        if await world.get(SECRETS, name) is not None:
            plain: dict[str, Any] = {"metadata": {"finalizers": [], "ownerReferences": []}}
            await client.patch(SECRETS, key, plain)
        beside = [(kind, await world.get(kind, name)) for kind in BESIDE]
        for kind, found in beside:
            if found is not None:
                await self._remove(kind, name)
        await self._remove(BARE_METAL_HOSTS, name)
        await self._recreate(host)
        for kind, found in beside:
            if found is not None:
                body = {"metadata": {"name": name}, "spec": wire(found).get("spec", {})}
                with refused_or_done():
                    await client.create(kind, body, namespace=world.namespace)
        await world.start()

    async def _recreate(self, host: BareMetalHost) -> None:
        annotations = dict(host.metadata.annotations)
        if host.status.last_updated is not None:
            annotations[Annotation.STATUS] = json.dumps(wire(host.status))
        body = {
            "metadata": {"name": host.metadata.name, "annotations": annotations},
            "spec": wire(host.spec),
        }
        await self.world.client.create(BARE_METAL_HOSTS, body, namespace=self.world.namespace)

    async def _remove(self, kind: Resource[Any], name: str) -> None:
        client, key = self.world.client, self.world.key(name)
        with contextlib.suppress(NotFound):
            await client.patch(kind, key, {"metadata": {"finalizers": [], "ownerReferences": []}})
            await client.delete(kind, key)

    # Firmware and media

    async def _overlap(self, name: str) -> None:
        host = await self.world.host(name)
        record = self.world.backend.machine(self.world.key(name)).record
        works = record.works if record is not None else {}
        at_work = any(verb in works for verb in (Verb.PREPARE, Verb.SERVICE))
        if at_work or (host is not None and (host.state is State.PREPARING or is_serviced(host.status))):
            self.overlaps[name] += 1

    async def settings(self, name: str, setting: str, value: str | None) -> None:
        await self._overlap(name)
        before = await self.world.get(HOST_FIRMWARE_SETTINGS, name)
        if value is not None and (before is None or before.spec.settings.get(setting) != value):
            self.asked[name, f"set {setting} to {value}"] += 1
        await self._want(HOST_FIRMWARE_SETTINGS, name, {"settings": {setting: value}})

    async def update(self, name: str, version: str) -> None:
        """Ask for this version of the BIOS; "" for none."""
        await self._overlap(name)
        if version:
            self.asked[name, f"flash bios {version}"] += 1
        updates = [{"component": "bios", "url": f"https://firmware.example/{version}"}] if version else []
        await self._want(HOST_FIRMWARE_COMPONENTS, name, {"updates": updates})

    async def policy(self, name: str, when: str) -> None:
        await self._want(HOST_UPDATE_POLICIES, name, {"firmwareSettings": when, "firmwareUpdates": when})

    async def data_image(self, name: str, url: str) -> None:
        if url:
            await self._want(DATA_IMAGES, name, {"url": url})
            return
        with refused_or_done():
            await self.world.client.delete(DATA_IMAGES, self.world.key(name))

    async def _want(self, kind: Resource[Any], name: str, spec: dict[str, Any]) -> None:
        client = self.world.client
        with refused_or_done():
            try:
                await client.patch(kind, self.world.key(name), {"spec": spec})
            except NotFound:
                body = {"metadata": {"name": name}, "spec": spec}
                await client.create(kind, body, namespace=self.world.namespace)

    # Machines

    async def provoke(self, name: str, verb: str) -> None:
        """Ask for something that this verb is needed for."""
        host = await self.world.host(name)
        has_image = host is not None and host.spec.image is not None
        match Verb(verb):
            case Verb.REGISTER:
                await self.secret(name, "good", password=f"hunter{next(self._numbers)}")
            case Verb.ADOPT:
                await self.lose_memory()
            case Verb.INSPECT:
                await self.change(name, {"image": None})
                await self.annotate(name, Annotation.INSPECT, "")
            case Verb.PREPARE | Verb.READ_FIRMWARE:
                await self.change(name, {"image": None})
                await self.settings(name, "AssetTag", f"asset-{next(self._numbers)}")
                await self.update(name, f"{next(self._numbers)}.0")
            case Verb.SERVICE:
                await self.policy(name, "onReboot")
                await self.settings(name, "AssetTag", f"asset-{next(self._numbers)}")
                await self.update(name, f"{next(self._numbers)}.0")
                await self.annotate(name, Annotation.REBOOT, "")
            case Verb.PROVISION | Verb.DEPROVISION:
                await self.change(name, {"online": True, "image": None if has_image else image("a")})
            case Verb.DATA_IMAGE:
                await self.data_image(name, f"https://images.example/{next(self._numbers)}.iso")
                await self.annotate(name, Annotation.REBOOT, "")
            case Verb.DETACH:
                await self.annotate(name, Annotation.DETACHED, "")
            case Verb.DELETE:
                await self.delete(name)
            case _:
                await self.change(name, {"online": not (host is not None and host.spec.online)})

    def behave(self, name: str, verb: str, *, fails: int | str = 0, seconds: float = 0) -> None:
        """From now on: so many failures of this verb, or failures always, and it takes so long. Nobody is told."""
        tried = self.world.backend.machine(self.world.key(name)).attempts.get(verb, 0)
        self._behaviour[name, verb] = Behaviour(
            fails="always" if fails == "always" else tried + int(fails) if fails else 0, seconds=seconds
        )
        self._play()

    def mend(self) -> None:
        self._behaviour.clear()
        self._play()

    def script(self) -> Script:
        hosts: dict[str, dict[str, Behaviour]] = {}
        for (name, verb), behaviour in self._behaviour.items():
            hosts.setdefault(name, {})[verb] = behaviour
        return Script(
            default=HostScript(others=AT_ONCE, components=COMPONENTS),
            hosts={name: replace(HostScript(), **verbs) for name, verbs in hosts.items()},
            network_boot=self._network_boot,
        )

    def _play(self) -> None:
        self.world.backend.play(self.script(), quietly=True)

    # The back end, and the operator

    async def go_away(self) -> None:
        self.world.backend.go_away()

    async def come_back(self) -> None:
        self.world.backend.come_back()

    async def lose_memory(self) -> None:
        self.amnesia += 1
        self.world.backend.lose_memory()

    async def restart(self) -> None:
        await self.world.restart()
