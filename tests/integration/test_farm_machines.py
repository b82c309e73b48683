"""Hosts that are given away, on real Ironic: a Machine and a tenant's claim get one each, and the server confirms what runs; a
Machine that does not answer is mended, and the server confirms that it was off.

Who gives them away is a process of its own here, beside the one that looks after them.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from ironic_room import NAMESPACE, Host, Room
from stories import story

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.core import NAMESPACES, NODES, SECRETS, Node
from ingot.api.hostclaim import HOST_CLAIMS, HostClaim
from ingot.api.hostdeploypolicy import HOST_DEPLOY_POLICIES
from ingot.api.machine import MACHINES, Annotation, Machine
from ingot.api.meta import Key
from ingot.kube import NotFound
from ingot.machines.remediation.steps import Mark

TENANT = "tenant"
OF_MACHINE = "#cloud-config\nhostname: of-a-machine\n"
OF_CLAIM = "#cloud-config\nhostname: of-a-claim\n"
HELD = "tests.example/held"


@story
async def test_a_machine_and_a_claim_get_a_host_each_and_give_it_back(room: Room) -> None:
    of_machine, of_claim = room.server(), room.server()
    await of_machine.create(online=False, labels={"for": "machine"})
    await of_claim.create(online=False, labels={"for": "claim"})
    await hosts_are_given_away(room)
    await asyncio.gather(
        a_machine_lives_on_its_host(room, of_machine), a_claim_lives_on_its_host(room, of_claim)
    )


async def hosts_are_given_away(room: Room) -> None:
    """From now on, to whoever asks; the first story that needs it starts who does it."""
    if not room.runs("machines"):
        room.start(
            "machines",
            *("operator", "--state", str(room.state), "--controllers", "machines"),
            environment={"KUBECONFIG": str(room.state / "kubeconfig")},
        )
    await room.operator_ready("machines")


async def a_machine_lives_on_its_host(room: Room, host: Host) -> None:
    await room.create(SECRETS, "of-machine", stringData={"userData": OF_MACHINE})
    # It waits for the host, which is not inspected yet.
    spec = machine_spec(host, label="machine", userData={"name": "of-machine"})
    await room.create(MACHINES, "worker", spec=spec)
    found = await host.reaches("provisioned")
    assert consumer_of(found) == ("Machine", NAMESPACE, "worker")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.running.image_sha256 == room.lab.file.image("raw").disk_sha256
    assert seen.running.user_data == OF_MACHINE
    machine = await room.until_object(
        MACHINES,
        "worker",
        lambda found: found.metadata.annotations.get(Annotation.INSTANCE_STATE) == "provisioned",
    )
    assert machine.spec.provider_id == f"baremetalhost:///{NAMESPACE}/{host.name}/{found.metadata.uid}"
    assert machine.metadata.annotations[Annotation.HOST] == f"{NAMESPACE}/{host.name}"
    assert host.name in {address.address for address in machine.status.addresses}

    await room.client.delete(MACHINES, machine.key)
    await host.until(lambda found: found.spec.consumer_ref is None, "free again")
    await host.reaches("available")
    await gone(room, machine)
    seen = await host.seen()
    assert (seen.running, seen.deployments, seen.power) == (None, 1, "Off")


async def a_claim_lives_on_its_host(room: Room, host: Host) -> None:
    await room.client.create(NAMESPACES, {"metadata": {"name": TENANT}})
    who = {"hostClaimNamespaces": {"names": [TENANT]}}
    await room.create(HOST_DEPLOY_POLICIES, "tenants", spec=who)
    secret = {"metadata": {"name": "of-claim"}, "stringData": {"userData": OF_CLAIM}}
    await room.client.create(SECRETS, secret, namespace=TENANT)
    spec: dict[str, Any] = {
        "poweredOn": True,
        "image": host.image("raw"),
        "userData": {"name": "of-claim"},
        "hostSelector": {"matchLabels": {"for": "claim"}},
    }
    claim = await room.client.create(
        HOST_CLAIMS, {"metadata": {"name": "mine"}, "spec": spec}, namespace=TENANT
    )
    found = await host.reaches("provisioned")
    assert consumer_of(found) == ("HostClaim", TENANT, "mine")
    seen = await host.until_running()
    assert seen.running is not None
    assert seen.running.user_data == OF_CLAIM
    claim = await until_claim(room, claim, "Ready")
    assert claim.status.bare_metal_host is not None
    assert claim.status.bare_metal_host.name == host.name

    # Another image replaces the one that runs.
    content = b"\xfa" + bytes(509) + b"\x55\xaa" + b"the next release" * 1000
    other = await room.lab.add_image(content, name="next.raw")
    image = {"url": other.url, "checksum": other.sha256, "checksumType": "sha256", "format": "raw"}
    await room.client.patch(HOST_CLAIMS, claim.key, {"spec": {"image": image}})
    await host.until(
        lambda found: (
            found.status.provisioning.state == "provisioned"
            and found.status.provisioning.image is not None
            and found.status.provisioning.image.url == other.url
        ),
        "provisioned with the next release",
    )
    seen = await host.until_seen(lambda seen: seen.deployments == 2 and seen.running is not None, "upgraded")
    assert seen.running is not None
    assert seen.running.image_sha256 == hashlib.sha256(content).hexdigest()
    assert seen.running.user_data == OF_CLAIM

    await room.client.delete(HOST_CLAIMS, claim.key)
    await host.until(lambda found: found.spec.consumer_ref is None, "free again")
    await host.reaches("available")
    await gone(room, claim)
    assert (await host.seen()).running is None


@story
async def test_a_machine_whose_node_does_not_answer_is_off_before_its_node_goes_and_on_before_it_is_back(
    room: Room,
) -> None:
    """The test is the kubelet, and whoever finds that the Node does not answer."""
    host = room.server()
    await host.create(online=False, labels={"for": "mended"})
    await hosts_are_given_away(room)
    await room.create(MACHINES, "mended", spec=machine_spec(host, label="mended"))
    await host.reaches("provisioned")
    before = await host.until_running()
    had = {"labels": {"zone": "a"}, "annotations": {"tests.example/drawer": "left"}}
    # As long as somebody holds the Node, nobody may switch its server on again.
    await a_node_registers(room, host, finalizers=[HELD], **had)
    machine = await room.until_object(MACHINES, "mended", lambda found: found.status.phase == "Running")

    wish = {"metadata": {"annotations": {Annotation.REMEDIATION: ""}}}
    await room.client.patch(MACHINES, machine.key, wish)
    going = await room.until_object(
        NODES, "mended", lambda found: found.metadata.deletion_timestamp is not None
    )
    seen = await host.seen()
    assert (seen.power, seen.booted_into) == ("Off", "nothing")
    assert [action.what for action in seen.power_actions[len(before.power_actions) :]] == ["ForceOff"]

    await room.client.patch(NODES, going.key, {"metadata": {"finalizers": None}})
    await host.until_seen(lambda seen: seen.power == "On", "switched on again")
    await gone(room, going)
    seen = await host.until_running()
    assert [action.what for action in seen.power_actions[len(before.power_actions) :]] == ["ForceOff", "On"]
    assert (seen.deployments, seen.running) == (1, before.running), "nothing is installed anew"

    await a_node_registers(room, host)
    await room.until_object(
        MACHINES,
        "mended",
        lambda found: found.metadata.annotations.keys().isdisjoint({Annotation.REMEDIATION, *Mark}),
    )
    back = await room.client.get(NODES, going.key)
    assert back.metadata.uid != going.metadata.uid
    assert back.metadata.labels.items() >= had["labels"].items()
    assert back.metadata.annotations.items() >= had["annotations"].items()


async def a_node_registers(room: Room, host: Host, **metadata: Any) -> None:
    """The Node of what runs on the host."""
    found = await host.until_well("provisioned")
    spec = {"providerID": f"baremetalhost:///{NAMESPACE}/{host.name}/{found.metadata.uid}"}
    await room.client.create(NODES, {"metadata": {"name": "mended", **metadata}, "spec": spec})


def machine_spec(host: Host, *, label: str, **more: Any) -> dict[str, Any]:
    """What a Machine says that wants a host with this label."""
    value = {
        "apiVersion": "baremetal.cluster.k8s.io/v1alpha1",
        "kind": "BareMetalMachineProviderSpec",
        "image": {field: host.image("raw")[field] for field in ("url", "checksum")},
        "hostSelector": {"matchLabels": {"for": label}},
        **more,
    }
    return {"providerSpec": {"value": value}}


def consumer_of(host: BareMetalHost) -> tuple[str, str, str]:
    found = host.spec.consumer_ref
    assert found is not None
    return found.kind, found.namespace, found.name


async def until_claim(room: Room, claim: HostClaim, condition: str) -> HostClaim:
    async with asyncio.timeout(60):
        while True:
            claim = await room.client.get(HOST_CLAIMS, claim.key)
            if any(found.type == condition and found.status == "True" for found in claim.status.conditions):
                return claim
            await asyncio.sleep(0.3)


async def gone(room: Room, found: Machine | HostClaim | Node) -> None:
    kind: Any = {Machine: MACHINES, HostClaim: HOST_CLAIMS, Node: NODES}[type(found)]
    async with asyncio.timeout(60):
        while True:
            try:
                await room.client.get(kind, Key(found.metadata.namespace, found.metadata.name))
            except NotFound:
                return
            await asyncio.sleep(0.3)
