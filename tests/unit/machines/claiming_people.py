"""What others do to hosts, machines and claims: users, tenants, other controllers, and the one that has hosts live.

The life of a host is played a step at a time: it goes towards what its spec says, as the real controller has it, and nothing
happens between two steps unless somebody does something.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, Literal

from claiming_laws import AtRest, name_of
from claiming_world import World

from ingot.api.baremetalhost import BARE_METAL_HOSTS, Annotation, BareMetalHost, State
from ingot.api.core import SECRETS
from ingot.api.hostclaim import HOST_CLAIMS
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.machine import MACHINES
from ingot.api.machine.provider import API_VERSION, KIND
from ingot.api.meta import Key, Resource
from ingot.api.wire import wire
from ingot.kube import AlreadyExists, Conflict, NotFound
from ingot.machines.vacancies import UNHEALTHY

FINALIZER: Final = "baremetalhost.metal3.io"
STRANGER: Final = {"apiVersion": "other.example/v1", "kind": "Metal3Machine", "name": "x", "namespace": "y"}
NAMESAKE: Final = {"apiVersion": MACHINES.api_version, "kind": MACHINES.kind}
Stranger = Literal["nobody", "stranger", "namesake"]
RACKS: Final = {"h1": "a", "h2": "b", "h3": "a"}


def condition(kind: str, status: str, reason: str) -> dict[str, str]:
    at = "2026-01-01T00:00:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": at}


TROUBLES: Final[dict[str, dict[str, Any]]] = {
    "paused": {"metadata": {"annotations": {Annotation.PAUSED: ""}}},
    "detached": {"metadata": {"annotations": {Annotation.DETACHED: ""}}},
    "unhealthy": {"metadata": {"annotations": {UNHEALTHY[0]: ""}}},
    "relabelled": {"metadata": {"labels": {"rack": "elsewhere"}}},
    "in error": {"status": {"errorType": "power management error", "errorMessage": "no answer"}},
    "inspected": {"status": {"provisioning": {"state": "inspecting"}}},
    "critical": {"status": {"conditions": [condition("Healthy", "False", "CriticalError")]}},
    "out of reach": {"status": {"conditions": [condition("Manageable", "False", "PowerFailure")]}},
    "warning": {"status": {"conditions": [condition("Healthy", "False", "Warning")]}},
    "used as it is": {"spec": {"externallyProvisioned": True}},
}
"""What can befall a host."""
OF_AVAILABLE: Final = ("inspected", "used as it is")
"""What can befall it while nothing is installed there."""
CURES: Final[dict[str, Any]] = {
    "metadata": {"annotations": {Annotation.PAUSED: None, Annotation.DETACHED: None, UNHEALTHY[0]: None}},
    "spec": {"externallyProvisioned": False},
    "status": {"errorType": None, "errorMessage": "", "conditions": []},
}


def image(letter: str) -> dict[str, str] | None:
    """What can be installed; "" is nothing."""
    return {"url": f"https://images.example/{letter}.raw", "checksum": letter * 64} if letter else None


class People:
    def __init__(self, world: World) -> None:
        self.world = world
        self._client = world.client
        self._chronicle = world.chronicle

    async def settle_in(self, hosts: list[str]) -> None:
        """What there is when a life begins."""
        await self.allow(True)
        for namespace in (self.world.racks, self.world.tenant):
            await self._client.create(SECRETS, _secret("words"), namespace=namespace)
        for name in hosts:
            await self.create_host(name)

    # Hosts

    async def create_host(self, name: str) -> None:
        metadata = {"name": name, "labels": {"rack": RACKS[name]}, "finalizers": [FINALIZER]}
        with suppress(AlreadyExists):
            await self._client.create(
                BARE_METAL_HOSTS,
                {"metadata": metadata, "spec": {"online": False}},
                namespace=self.world.racks,
            )
            await self._say(
                name, {"provisioning": {"state": "available"}, "errorMessage": "", "poweredOn": False}
            )

    async def delete_host(self, name: str) -> None:
        await self._delete(BARE_METAL_HOSTS, Key(self.world.racks, name))

    async def befall(self, name: str, trouble: str) -> None:
        change = TROUBLES[trouble]
        host = await self.host(name)
        if host is None or (trouble in OF_AVAILABLE and host.state is not State.AVAILABLE):
            return
        await self._change_host(name, change)

    async def cure(self, name: str) -> None:
        host = await self.host(name)
        if host is None:
            return
        await self._change_host(name, {"status": CURES["status"]})
        metadata = {**CURES["metadata"], "labels": {"rack": RACKS[name]}}
        await self._change_host(name, {"metadata": metadata, "spec": CURES["spec"]})
        if host.state is State.INSPECTING:
            await self._say(name, {"provisioning": {"state": "available"}})

    async def stranger_takes(self, name: str, who: Stranger) -> None:
        """Somebody else has it, with or without saying so; one who is decent takes what is free."""
        host = await self.host(name)
        if host is None or host.spec.consumer_ref is not None or host.spec.image is not None:
            return
        spec = {"consumerRef": self._stranger(name, who), "image": image("c"), "online": True}
        # Somebody may be faster.
        with suppress(Conflict):
            await self._change_host(name, {"spec": spec}, version=host.metadata.resource_version)

    def _stranger(self, host: str, who: Stranger) -> dict[str, str] | None:
        match who:
            case "nobody":
                return None
            case "stranger":
                return STRANGER
            case "namesake":
                # A Machine of the name that one of ours has, in another namespace: its hosts are none of ours.
                return {**NAMESAKE, "name": host.replace("h", "m"), "namespace": self.world.tenant}

    async def stranger_leaves(self, name: str) -> None:
        host = await self.host(name)
        if host is None or host.spec.image is None or host.spec.image.url != _url("c"):
            return
        spec = {"consumerRef": None, "image": None, "online": False}
        # Somebody may be faster.
        with suppress(Conflict):
            await self._change_host(name, {"spec": spec}, version=host.metadata.resource_version)

    async def spoil(self, name: str) -> None:
        """Somebody takes away what a host that belongs to one of ours is to run."""
        host = await self.host(name)
        if host is None or host.spec.consumer_ref is None or host.spec.image is None:
            return
        if host.spec.image.url != _url("c"):
            with suppress(Conflict):
                await self._change_host(
                    name, {"spec": {"image": None}}, version=host.metadata.resource_version
                )

    async def step(self, name: str) -> bool:
        """Have the host live a little; False where there is nothing to do."""
        host = await self.host(name)
        if host is None or Annotation.PAUSED in host.metadata.annotations:
            return False
        state = _next_state(host)
        if state is None:
            await self._client.patch(BARE_METAL_HOSTS, host.key, {"metadata": {"finalizers": None}})
            return True
        if state == host.state and host.status.powered_on == _is_on(host, state):
            return False
        installed = wire(host.spec.image) if state in (State.PROVISIONING, State.PROVISIONED) else None
        await self._say(
            name,
            {"provisioning": {"state": state, "image": installed}, "poweredOn": _is_on(host, state)},
        )
        return True

    async def host(self, name: str) -> BareMetalHost | None:
        with suppress(NotFound):
            return await self._client.get(BARE_METAL_HOSTS, Key(self.world.racks, name))
        return None

    async def _change_host(self, name: str, change: dict[str, Any], *, version: str = "") -> None:
        written = await self._client.patch(
            BARE_METAL_HOSTS,
            Key(self.world.racks, name),
            change,
            subresource="status" if "status" in change else "",
            resource_version=version,
        )
        self._chronicle.by_people.add(written.metadata.resource_version)

    async def _say(self, name: str, status: dict[str, Any]) -> None:
        told = {"operationalStatus": "OK", **status}
        told["provisioning"] = {"ID": "1", **told.get("provisioning", {})}
        await self._change_host(name, {"status": told})

    # Machines and claims

    async def create_machine(self, name: str, *, rack: str, letter: str) -> None:
        key = Key(self.world.racks, name)
        self._chronicle.wanted.setdefault(name_of(MACHINES, key), set()).add(_url(letter))
        with suppress(AlreadyExists):
            await self._client.create(
                MACHINES,
                {"metadata": {"name": name}, "spec": _machine(rack, letter)},
                namespace=key.namespace,
            )

    async def edit_machine(self, name: str, *, rack: str, letter: str) -> None:
        key = Key(self.world.racks, name)
        self._chronicle.wanted.setdefault(name_of(MACHINES, key), set()).add(_url(letter))
        with suppress(NotFound):
            spec = _machine(rack, letter)
            spec["providerSpec"]["value"]["hostSelector"] = {"matchLabels": {"rack": rack or None}}
            await self._client.patch(MACHINES, key, {"spec": spec})

    async def create_claim(self, name: str, *, rack: str, letter: str, words: bool) -> None:
        key = Key(self.world.tenant, name)
        self._chronicle.wanted.setdefault(name_of(HOST_CLAIMS, key), set()).add(_url(letter))
        with suppress(AlreadyExists):
            await self._client.create(
                HOST_CLAIMS,
                {"metadata": {"name": name}, "spec": _claim(rack, letter, words=words)},
                namespace=key.namespace,
            )

    async def edit_claim(self, name: str, *, letter: str, powered_on: bool, words: bool) -> None:
        key = Key(self.world.tenant, name)
        self._chronicle.wanted.setdefault(name_of(HOST_CLAIMS, key), set()).add(_url(letter))
        spec = {"image": image(letter), "poweredOn": powered_on, "userData": _words(words)}
        with suppress(NotFound):
            await self._client.patch(HOST_CLAIMS, key, {"spec": spec})

    async def want_rack(self, name: str, rack: str) -> None:
        """A machine or a claim wants a host of this rack; any with ""."""
        selector: dict[str, Any] = {"hostSelector": {"matchLabels": {"rack": rack or None}}}
        kind, key = self._claimant(name)
        spec = selector if kind is HOST_CLAIMS else {"providerSpec": {"value": selector}}
        with suppress(NotFound):
            await self._client.patch(kind, key, {"spec": spec})

    async def delete(self, name: str) -> None:
        """A machine or a claim."""
        kind, key = self._claimant(name)
        self._chronicle.sent_away.add(name_of(kind, key))
        await self._delete(kind, key)

    def _claimant(self, name: str) -> tuple[Resource[Any], Key]:
        if name.startswith("m"):
            return MACHINES, Key(self.world.racks, name)
        return HOST_CLAIMS, Key(self.world.tenant, name)

    async def allow(self, allowed: bool) -> None:
        """Whether the tenant may claim hosts."""
        key = Key(self.world.racks, "tenants")
        spec = {"hostClaimNamespaces": {"names": [self.world.tenant]}}
        with suppress(AlreadyExists, NotFound):
            if allowed:
                await self._client.create(
                    HOST_DEPLOY_POLICIES,
                    {"metadata": {"name": key.name}, "spec": spec},
                    namespace=key.namespace,
                )
            else:
                await self._client.delete(HOST_DEPLOY_POLICIES, key)

    async def change_words(self, *, there: bool, text: str) -> None:
        """The tenant's Secret comes, changes or goes."""
        key = Key(self.world.tenant, "words")
        with suppress(NotFound):
            if not there:
                await self._client.delete(SECRETS, key)
                return
            await self._client.patch(SECRETS, key, {"stringData": {"userData": text}})
            return
        if there:
            await self._client.create(SECRETS, _secret("words", text), namespace=key.namespace)

    async def _delete(self, kind: Resource[Any], key: Key) -> None:
        with suppress(NotFound):
            await self._client.delete(kind, key)

    # Looking

    async def all(self) -> AtRest:
        return AtRest(
            (await self._client.list(BARE_METAL_HOSTS, namespace=self.world.racks)).items,
            (await self._client.list(MACHINES, namespace=self.world.racks)).items,
            (await self._client.list(HOST_CLAIMS, namespace=self.world.tenant)).items,
        )


def _next_state(host: BareMetalHost) -> State | None:
    """Where the host goes from here; None: it goes for good."""
    status = host.status
    installed = (
        status.provisioning.image if status.provisioning.image and status.provisioning.image.url else None
    )
    wanted = host.spec.image if host.metadata.deletion_timestamp is None else None
    if status.error_type:
        return State(host.state)
    match host.state:
        case State.AVAILABLE if host.metadata.deletion_timestamp is not None:
            return None
        case State.AVAILABLE:
            return State.PROVISIONING if wanted is not None and host.spec.online else State.AVAILABLE
        case State.PROVISIONING:
            return State.PROVISIONED if wanted == installed else State.DEPROVISIONING
        case State.PROVISIONED:
            return State.PROVISIONED if wanted == installed else State.DEPROVISIONING
        case _:
            return State.AVAILABLE


def _is_on(host: BareMetalHost, state: State) -> bool:
    return host.spec.online and state is State.PROVISIONED


def _machine(rack: str, letter: str) -> dict[str, Any]:
    value = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "image": image(letter),
        "userData": {"name": "words"},
        "hostSelector": _selector(rack),
    }
    return {"providerSpec": {"value": value}}


def _claim(rack: str, letter: str, *, words: bool) -> dict[str, Any]:
    return {
        "poweredOn": True,
        "image": image(letter),
        "userData": _words(words),
        "hostSelector": _selector(rack),
    }


def _selector(rack: str) -> dict[str, Any]:
    return {"matchLabels": {"rack": rack} if rack else {}}


def _words(there: bool) -> dict[str, str] | None:
    return {"name": "words"} if there else None


def _url(letter: str) -> str:
    found = image(letter)
    return found["url"] if found else ""


def _secret(name: str, text: str = "#cloud-config") -> dict[str, Any]:
    return {"metadata": {"name": name}, "stringData": {"userData": text}}
