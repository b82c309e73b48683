"""The life of a Machine on the embedded API: it gets a host, says so, becomes a Node, and goes."""

from __future__ import annotations

from typing import Any

import pytest
from machine_site import IMAGE, Room

from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.core import CONFIG_MAPS, NODES
from ingot.api.installed import mark_of
from ingot.api.machine import FINALIZER, MACHINES, Machine
from ingot.api.meta import Key
from ingot.kube import Again, Done

pytestmark = pytest.mark.asyncio(loop_scope="module")

OTHER_IMAGE = {"url": "https://images.example/b.qcow2", "checksum": "https://images.example/b.sha256"}
REPLACED = "ingot.metal3.io/target-replaced"


def phase(name: str) -> Any:
    return lambda machine: machine.status.phase == name


async def running(room: Room, name: str = "m1", host: str = "h1") -> tuple[Key, Key]:
    """A Machine with a host that is provisioned, as an operator at work makes it."""
    host_key, key = await room.host(host), await room.machine(name)
    await room.until_claimed(key)
    await room.bring(host_key, "provisioned", poweredOn=True)
    await room.until(key, phase("Provisioned"))
    return key, host_key


def consumer(host: BareMetalHost) -> str:
    return host.spec.consumer_ref.name if host.spec.consumer_ref is not None else ""


# Getting a host


async def test_a_machine_takes_a_host_in_three_writes_and_tells_of_it_after_that(room: Room) -> None:
    host = await room.host()
    async with room.operator() as operator:
        key = await room.machine()
        machine = await room.until(key, phase("Provisioning"))
    assert operator.pen.writes == ["Machine", "BareMetalHost", "Machine", "Machine/status"]
    found = await room.get_host(host)
    assert machine.spec.provider_id == f"baremetalhost:///{room.namespace}/h1/{found.metadata.uid}"
    assert machine.metadata.annotations == {
        "metal3.io/BareMetalHost": f"{room.namespace}/h1",
        "machine.openshift.io/instance-state": "available",
        "ingot.metal3.io/image-source": "provider spec",
        "ingot.metal3.io/target": mark_of(found.spec.image, None),
    }
    assert machine.metadata.finalizers == [FINALIZER]
    assert [(address.type, address.address) for address in machine.status.addresses] == [
        ("InternalIP", "192.0.2.7"),
        ("Hostname", "h-one"),
        ("InternalDNS", "h-one"),
    ]
    assert consumer(found) == "m1"
    assert found.spec.online
    assert found.spec.image is not None
    assert found.spec.image.url == IMAGE["url"]
    assert await room.until_event("HostClaimed") == f"BareMetalHost {host} is this Machine's now."


async def test_the_network_of_a_host_is_its_own(room: Room) -> None:
    host = await room.host(networkData={"name": "net"}, metaData={"name": "meta"})
    async with room.operator():
        key = await room.machine(
            value={"image": IMAGE, "userData": {"name": "worker-user-data"}},
        )
        await room.until_claimed(key)
        claimed = await room.get_host(host)
        await room.client.delete(MACHINES, key)
        await room.until_gone(MACHINES, key)
    released = await room.get_host(host)
    for found in (claimed, released):
        assert found.spec.network_data is not None
        assert found.spec.network_data.name == "net"
        assert found.spec.meta_data is not None
    assert claimed.spec.user_data is not None
    assert (claimed.spec.user_data.name, claimed.spec.user_data.namespace) == (
        "worker-user-data",
        room.namespace,
    )
    assert released.spec.user_data is None


async def test_while_others_are_given_hosts_a_machine_tells_nothing(room: Room) -> None:
    many = range(25)
    hosts = [await room.host(f"h{number}") for number in many]
    async with room.operator(quiet=60.0) as operator:
        keys = [await room.machine(f"m{number}") for number in many]
        for key in keys:
            await room.until_claimed(key)
        for host in hosts:
            await room.bring(host, "provisioned")
            await operator.heard_of_host(host, "provisioned")
        for key in keys:
            assert isinstance(await operator.once(key), Again)
        writes = list(operator.pen.writes)
    assert sorted(writes) == ["BareMetalHost"] * len(many) + ["Machine"] * 2 * len(many)
    taken = [name for key in keys for name in await room.hosts_of(key.name)]
    assert len(taken) == len(set(taken)) == len(many)
    async with room.operator():
        for key in keys:
            await room.until(key, phase("Provisioned"))


async def test_only_hosts_that_fit_are_taken(room: Room) -> None:
    await room.host("h1", labels={"size": "small"})
    await room.host("h2", labels={"size": "large"}, annotations={"baremetalhost.metal3.io/paused": ""})
    await room.host("h3", labels={"size": "large"})
    async with room.operator():
        selector = {"matchExpressions": [{"key": "size", "operator": "In", "values": ["large"]}]}
        key = await room.machine(value={"image": IMAGE, "hostSelector": selector})
        await room.until_claimed(key)
    assert await room.hosts_of("m1") == ["h3"]


async def test_a_machine_of_coreos_waits_for_a_host_without_software_raid(room: Room) -> None:
    await room.host("h1", raid={"softwareRAIDVolumes": [{"level": "1"}]})
    async with room.operator():
        key = await room.machine(value={"customDeploy": {"method": "install_coreos"}})
        machine = await room.until(key, lambda machine: bool(machine.status.error_message))
        assert "1 host is not what is asked for" in machine.status.error_message
        await room.host("h2")
        await room.until_claimed(key)
    assert await room.hosts_of("m1") == ["h2"]


async def test_without_a_host_a_machine_says_so_and_takes_the_next_one(room: Room) -> None:
    await room.host("h1", state="inspecting")
    async with room.operator():
        key = await room.machine()
        machine = await room.until(key, phase("Provisioning"))
        assert machine.status.error_reason == "InsufficientResources"
        assert machine.status.error_message == "No available BareMetalHost found: 1 host is inspecting"
        assert not machine.metadata.annotations
        assert "inspecting" in await room.until_event("InsufficientResources")
        await room.bring(room.key("h1"), "available")
        machine = await room.until(key, lambda machine: bool(machine.status.addresses))
    assert (machine.status.error_reason, machine.status.error_message) == ("", "")
    assert await room.hosts_of("m1") == ["h1"]


async def test_of_those_who_wait_one_is_looked_at_for_one_host(room: Room) -> None:
    async with room.operator() as operator:
        keys = [await room.machine(f"m{number}") for number in range(4)]
        for key in keys:
            await room.until(key, lambda machine: machine.status.error_reason == "InsufficientResources")
        begun = len(operator.pen.writes)
        taken = await room.until_host(await room.host(), lambda host: host.spec.consumer_ref is not None)
        has = room.key(consumer(taken))
        await room.until(has, lambda machine: bool(machine.status.addresses))
        # Nobody else wrote anything, not even why there is still no host.
        assert operator.pen.writes[begun:] == ["Machine", "BareMetalHost", "Machine", "Machine/status"]
        assert len(operator.waiting) == 3
        await operator.once(next(key for key in keys if key != has))
        assert len(operator.pen.writes) == begun + 4


async def test_what_is_installed_can_come_from_the_default_of_the_cluster(room: Room) -> None:
    host = await room.host()
    async with room.operator():
        key = await room.machine(value={"hostSelector": {}, "userData": {"name": "u"}})
        machine = await room.until(key, phase("Failed"))
        assert machine.status.error_reason == "InvalidConfiguration"
        assert "Nothing says what to install" in machine.status.error_message
        await room.client.create(
            CONFIG_MAPS,
            {
                "metadata": {"name": "ingot-target-image", "namespace": room.namespace},
                "data": {"customDeploy": "method: install_coreos"},
            },
        )
        machine = await room.until(key, lambda machine: bool(machine.status.addresses))
    assert machine.metadata.annotations["ingot.metal3.io/image-source"] == "cluster"
    assert machine.status.error_reason == ""
    found = await room.get_host(host)
    assert found.spec.custom_deploy is not None
    assert found.spec.custom_deploy.method == "install_coreos"
    assert found.spec.image is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"image": IMAGE, "hostSelektor": {}}, "hostSelektor"),
        ({"image": {"url": IMAGE["url"]}}, "image.checksum missing"),
        ({"image": IMAGE, "userData": {"name": "u", "namespace": "elsewhere"}}, "namespace elsewhere"),
        (
            {
                "image": IMAGE,
                "hostSelector": {"matchExpressions": [{"key": "a", "operator": "like", "values": []}]},
            },
            "matchExpressions[0]",
        ),
    ],
)
async def test_what_cannot_be_done_is_said_and_done_once_it_can(
    room: Room, value: dict[str, Any], message: str
) -> None:
    await room.host()
    async with room.operator() as operator:
        key = await room.machine(value=value)
        machine = await room.until(key, phase("Failed"))
        assert machine.status.error_reason == "InvalidConfiguration"
        assert message in machine.status.error_message
        assert message in await room.until_event("InvalidConfiguration")
        assert operator.pen.writes == ["Machine/status"]
        await room.client.patch(
            MACHINES,
            key,
            {"spec": {"providerSpec": {"value": {**dict.fromkeys(value), "image": IMAGE}}}},
        )
        machine = await room.until(key, phase("Provisioning"))
    assert machine.status.error_reason == ""
    assert await room.hosts_of("m1") == ["h1"]


async def test_a_host_that_refuses_is_named_and_asked_again_once_the_machine_is_corrected(room: Room) -> None:
    host = await room.host()
    async with room.operator():
        key = await room.machine(value={"image": IMAGE, "userData": {"name": "No Secret"}})
        machine = await room.until(key, phase("Failed"))
        assert machine.status.error_reason == "InvalidConfiguration"
        assert f"BareMetalHost {host} cannot have" in machine.status.error_message
        assert "spec.userData.name" in machine.status.error_message
        await room.client.patch(
            MACHINES, key, {"spec": {"providerSpec": {"value": {"userData": {"name": "a-secret"}}}}}
        )
        machine = await room.until(key, phase("Provisioning"))
    assert machine.status.error_reason == ""
    assert await room.hosts_of("m1") == ["h1"]


async def test_a_machine_whose_host_names_it_already_takes_that_one(room: Room) -> None:
    mine = {"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": "m1"}
    await room.host("h1")
    host = await room.host(
        "h2",
        state="externally provisioned",
        externallyProvisioned=True,
        consumerRef={**mine, "namespace": room.namespace},
    )
    async with room.operator() as operator:
        machine = await room.until(await room.machine(), phase("Provisioned"))
    assert machine.metadata.annotations["metal3.io/BareMetalHost"] == str(host)
    assert "BareMetalHost" not in operator.pen.writes
    assert await room.hosts_of("m1") == ["h2"]


async def test_a_host_of_another_namespace_is_not_taken_whoever_says_so(room: Room, other_room: Room) -> None:
    mine = {"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": "m1"}
    named = await other_room.host("h1")
    await other_room.host("h2", consumerRef={**mine, "namespace": room.namespace})
    async with room.operator(everywhere=True):
        key = await room.machine(metadata={"annotations": {"metal3.io/BareMetalHost": str(named)}})
        await room.until(key, lambda machine: machine.status.error_reason == "InsufficientResources")
        await room.host("h3")
        machine = await room.until_claimed(key)
        assert machine.metadata.annotations["metal3.io/BareMetalHost"] == f"{room.namespace}/h3"
        await room.client.delete(MACHINES, key)
        await room.until_gone(MACHINES, key)
    assert consumer(await room.get_host(named)) == ""
    # What somebody else wrote on a host of his is his to take off again.
    assert await other_room.hosts_of("m1") == ["h2"]


async def test_a_machine_of_another_provider_that_has_its_host_is_left_with_it(room: Room) -> None:
    """One that cluster-api-provider-baremetal made is taken over as it is."""
    host = await room.host("h1", state="provisioned", image=IMAGE)
    uid = (await room.get_host(host)).metadata.uid
    await room.client.patch(
        BARE_METAL_HOSTS,
        host,
        {
            "spec": {
                "consumerRef": {
                    "apiVersion": "machine.openshift.io/v1beta1",
                    "kind": "Machine",
                    "name": "m1",
                    "namespace": room.namespace,
                }
            }
        },
    )
    key = await room.machine(
        metadata={
            "annotations": {
                "metal3.io/BareMetalHost": str(host),
                "machine.openshift.io/instance-state": "provisioned",
            },
            "finalizers": [FINALIZER],
        },
        providerID=f"baremetalhost:///{room.namespace}/h1/{uid}",
    )
    async with room.operator() as operator:
        await room.until(key, phase("Provisioned"))
    assert operator.pen.writes == ["Machine/status"]


# Having one


async def test_the_state_of_the_host_is_told_as_it_goes_on(room: Room) -> None:
    async with room.operator():
        key, host = await running(room)
        machine = await room.get(key)
        assert machine.metadata.annotations["machine.openshift.io/instance-state"] == "provisioned"
        await room.bring(host, "deprovisioning")
        await room.until(key, phase("Provisioning"))


async def test_another_provider_spec_never_installs_a_running_machine_anew(room: Room) -> None:
    async with room.operator() as operator:
        key, host = await running(room)
        writes = len(operator.pen.writes)
        await room.client.patch(MACHINES, key, {"spec": {"providerSpec": {"value": {"image": OTHER_IMAGE}}}})
        assert "keeps what it has" in await room.until_event("TargetUnchanged")
        found = await room.get_host(host)
        assert found.spec.image is not None
        assert found.spec.image.url == IMAGE["url"]
        # Which hosts would do is nobody's concern any more, and no event.
        await room.client.patch(
            MACHINES,
            key,
            {"spec": {"providerSpec": {"value": {"hostSelector": {"matchLabels": {"no": "such"}}}}}},
        )
        await room.bring(host, "provisioned", poweredOn=False)
        await operator.once(key)
        assert len(operator.pen.writes) == writes
    assert len(await room.events("TargetUnchanged")) == 1


async def test_a_host_that_lost_its_image_is_told_again_as_long_as_there_is_a_machine(room: Room) -> None:
    async with room.operator():
        _, host = await running(room)
        await room.client.patch(BARE_METAL_HOSTS, host, {"spec": {"image": None}})
        found = await room.until_host(host, lambda host: host.spec.image is not None)
    assert consumer(found) == "m1"


async def test_a_host_that_is_told_to_run_something_else_by_somebody_is_told_of_once(room: Room) -> None:
    async with room.operator() as operator:
        key, host = await running(room)
        writes = len(operator.pen.writes)
        await room.client.patch(BARE_METAL_HOSTS, host, {"spec": {"image": OTHER_IMAGE}})
        assert f"BareMetalHost {host}" in await room.until_event("TargetReplaced")
        await room.bring(host, "deprovisioning")
        await room.until(key, phase("Provisioning"))
        # That it was told, and how the host is getting on.
        assert operator.pen.writes[writes:] == ["Machine", "Machine", "Machine/status"]
    async with room.operator(works=False) as heir:
        assert await heir.once(key) == Done()
        assert heir.pen.writes == []
    assert len(await room.events("TargetReplaced")) == 1
    found = await room.get_host(host)
    assert found.spec.image is not None
    assert found.spec.image.url == OTHER_IMAGE["url"], "it is not put back"
    async with room.operator():
        await room.client.patch(BARE_METAL_HOSTS, host, {"spec": {"image": IMAGE}})
        await room.until(key, lambda machine: REPLACED not in machine.metadata.annotations)


async def test_another_checksum_or_other_data_is_not_another_target(room: Room) -> None:
    """A host is not installed anew for them."""
    async with room.operator() as operator:
        key, host = await running(room)
        same = {"image": {"checksum": "https://images.example/c.sha256"}, "userData": {"name": "words"}}
        await room.client.patch(BARE_METAL_HOSTS, host, {"spec": same})
        await room.bring(host, "deprovisioning")
        await room.until(key, phase("Provisioning"))
        assert await operator.once(key) == Done()
    assert REPLACED not in (await room.get(key)).metadata.annotations
    assert await room.events("TargetReplaced") == []


async def test_what_a_host_is_told_again_on_behalf_of_its_machine_replaced_nothing(room: Room) -> None:
    async with room.operator() as operator:
        key, host = await running(room)
        await room.client.patch(MACHINES, key, {"spec": {"providerSpec": {"value": {"image": OTHER_IMAGE}}}})
        await room.until_event("TargetUnchanged")
        await room.client.patch(BARE_METAL_HOSTS, host, {"spec": {"image": None}})
        found = await room.until_host(host, lambda host: host.spec.image is not None)
        assert found.spec.image is not None
        assert found.spec.image.url == OTHER_IMAGE["url"]
        await operator.once(key)
        machine = await room.get(key)
        assert machine.metadata.annotations["ingot.metal3.io/target"] == mark_of(found.spec.image, None)
        assert REPLACED not in machine.metadata.annotations
    assert await room.events("TargetReplaced") == []


async def test_a_host_that_cannot_be_told_again_is_a_machine_to_be_corrected(room: Room) -> None:
    async with room.operator():
        key, host = await running(room)
        wrong = {"spec": {"providerSpec": {"value": {"userData": {"name": "No Secret"}}}}}
        await room.client.patch(MACHINES, key, wrong)
        await room.client.patch(BARE_METAL_HOSTS, host, {"spec": {"image": None}})
        machine = await room.until(key, phase("Failed"))
        assert machine.status.error_reason == "InvalidConfiguration"
        assert "spec.userData.name" in machine.status.error_message
        mended = {"spec": {"providerSpec": {"value": {"userData": None}}}}
        await room.client.patch(MACHINES, key, mended)
        await room.until(key, phase("Provisioned"))
        assert (await room.get_host(host)).spec.image is not None


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_machine_whose_host_vanished_has_failed_and_takes_no_other(
    room: Room, replaced: bool
) -> None:
    async with room.operator():
        key, host = await running(room)
        await room.client.delete(BARE_METAL_HOSTS, host)
        await room.until_gone(BARE_METAL_HOSTS, host)
        await room.host("h1" if replaced else "h2")
        machine = await room.until(key, phase("Failed"))
        assert machine.status.error_message.startswith("Can't find created instance: BareMetalHost")
        assert "Delete the Machine" in machine.status.error_message
        machine = await room.until(
            key,
            lambda machine: machine.metadata.annotations["machine.openshift.io/instance-state"] == "Unknown",
        )
        assert machine.status.addresses == []
        assert await room.until_event("HostLost")
        assert await room.hosts_of("m1") == []
        await room.client.delete(MACHINES, key)
        await room.until_gone(MACHINES, key)


async def test_a_machine_that_only_meant_to_take_a_host_that_is_gone_takes_another(room: Room) -> None:
    await room.host("h2")
    key = await room.machine(
        metadata={"annotations": {"metal3.io/BareMetalHost": f"{room.namespace}/h1"}},
    )
    async with room.operator():
        await room.until_claimed(key)
    assert await room.hosts_of("m1") == ["h2"]


async def test_an_intention_is_kept_though_another_host_would_fit_better_by_now(room: Room) -> None:
    await room.host("h1", labels={"size": "small"})
    await room.host("h2", labels={"size": "large"})
    key = await room.machine(
        value={"image": IMAGE, "hostSelector": {"matchLabels": {"size": "large"}}},
        metadata={"annotations": {"metal3.io/BareMetalHost": f"{room.namespace}/h1"}},
    )
    async with room.operator():
        await room.until_claimed(key)
    assert await room.hosts_of("m1") == ["h1"]


# Nodes


async def test_a_machine_becomes_a_node_by_its_address(room: Room) -> None:
    async with room.operator() as operator:
        host, key = (
            await room.host(),
            await room.machine(
                metadata={"labels": {"a": "b"}},
                taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}],
            ),
        )
        await room.client.patch(
            MACHINES,
            key,
            {
                "spec": {
                    "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}, "annotations": {"x": "y"}}
                }
            },
        )
        await room.until_claimed(key)
        await room.bring(host, "provisioned", poweredOn=True)
        await room.until(key, phase("Provisioned"))
        node = await room.node(f"n-{room.namespace}", address="192.0.2.7", finalizers=["metal3.io/capbm"])
        machine = await room.until(key, phase("Running"))
        assert machine.status.node_ref is not None
        assert machine.status.node_ref.name == node.name
        found = await room.get_node(node)
        assert found.spec.provider_id == machine.spec.provider_id
        assert found.metadata.annotations == {"machine.openshift.io/machine": str(key), "x": "y"}
        assert found.metadata.labels["node-role.kubernetes.io/worker"] == ""
        assert [taint.key for taint in found.spec.taints] == ["dedicated"]
        assert found.metadata.finalizers == []
        assert node.name in await room.until_event("NodeLinked")
        # A Node that says nothing but that it lives wakes nobody.
        writes = len(operator.pen.writes)
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
        await room.client.patch(NODES, node, {"status": {"conditions": [ready]}}, subresource="status")
        await room.client.delete(NODES, node)
        machine = await room.until(key, phase("Provisioned"))
        assert machine.status.node_ref is None
        assert operator.pen.writes[writes:] == ["Machine/status"]


async def test_a_node_is_found_by_what_it_says_it_is(room: Room) -> None:
    async with room.operator():
        key, _ = await running(room)
        provider = (await room.get(key)).spec.provider_id
        node = await room.node(f"n-{room.namespace}", provider_id=provider)
        await room.until(key, phase("Running"))
        await room.until_node(
            node, lambda node: node.metadata.annotations == {"machine.openshift.io/machine": str(key)}
        )
        await room.client.delete(NODES, node)
        await room.until(key, phase("Provisioned"))
        other = await room.node(f"o-{room.namespace}", annotations={"machine.openshift.io/machine": str(key)})
        machine = await room.until(key, phase("Running"))
        assert machine.status.node_ref is not None
        assert machine.status.node_ref.name == other.name
        await room.until_node(other, lambda node: node.spec.provider_id == provider)


async def test_a_node_that_cannot_be_told_everything_is_linked_all_the_same(room: Room) -> None:
    async with room.operator():
        key, _ = await running(room)
        labels = {"spec": {"metadata": {"labels": {"no label!": "x"}}}}
        await room.client.patch(MACHINES, key, labels)
        provider = (await room.get(key)).spec.provider_id
        node = await room.node(f"n-{room.namespace}", provider_id=provider)
        await room.until(key, phase("Running"))
        assert "no label!" in await room.until_event("NodeRefused")
        # It has a finalizer by which old releases held it, and goes with its Machine nevertheless.
        await room.client.patch(NODES, node, {"metadata": {"finalizers": ["metal3.io/capbm"]}})
        await room.client.patch(
            BARE_METAL_HOSTS, room.key("h1"), {"spec": {"consumerRef": None, "image": None}}
        )
        await room.until(key, phase("Failed"))
        await room.client.delete(MACHINES, key)
        await room.until_gone(MACHINES, key)
        await room.until_gone(NODES, node)


async def test_an_address_that_somebody_else_may_have_by_now_links_nothing(room: Room) -> None:
    async with room.operator() as operator:
        # The address was the host's when it was inspected, and nothing of the Machine runs there yet.
        host, key = await room.host(), await room.machine()
        await room.until(key, phase("Provisioning"))
        node = await room.node(f"n-{room.namespace}", address="192.0.2.7")
        await operator.heard_of(node)
        await operator.once(key)
        assert (await room.get(key)).status.node_ref is None
        # Another Machine says it has the same address: nobody can tell which of them the Node is.
        await room.host("h2")
        other = await room.machine("m2")
        await room.until(other, phase("Provisioning"))
        await room.bring(host, "provisioned")
        await room.until(key, phase("Provisioned"))
        assert (await room.get(key)).status.node_ref is None
        assert (await room.get_node(node)).metadata.annotations == {}
        await room.client.delete(NODES, node)


# Going


async def test_a_machine_that_goes_empties_its_host_waits_and_gives_it_back(room: Room) -> None:
    async with room.operator() as operator:
        key, host = await running(room)
        node = await room.node(f"n-{room.namespace}", address="192.0.2.7")
        await room.until(key, phase("Running"))
        begun = len(operator.pen.writes)
        await room.client.delete(MACHINES, key)
        found = await room.until_host(host, lambda host: host.spec.image is None)
        assert consumer(found) == "m1"
        assert not found.spec.online
        assert (await room.get(key)).status.phase == "Deleting"
        assert await room.get_node(node)
        await room.bring(host, "deprovisioning")
        assert isinstance(await operator.once(key), Again)
        assert consumer(await room.get_host(host)) == "m1"
        await room.bring(host, "available")
        await room.until_gone(MACHINES, key)
        assert consumer(await room.get_host(host)) == ""
        await room.until_gone(NODES, node)
        assert operator.pen.writes[begun:] == [
            "Machine/status",
            "BareMetalHost",
            "BareMetalHost",
            "delete Node",
            "Machine",
        ]
    assert await room.until_event("HostReleased")


async def test_hooks_are_waited_for(room: Room) -> None:
    hook = {"name": "migrate.example/storage", "owner": "storage-operator"}
    async with room.operator():
        key, host = await running(room)
        await room.client.patch(MACHINES, key, {"spec": {"lifecycleHooks": {"preTerminate": [hook]}}})
        await room.client.delete(MACHINES, key)
        await room.until(key, phase("Deleting"))
        assert "migrate.example/storage of storage-operator" in await room.until_event("DeletionWaits")
        found = await room.get_host(host)
        assert found.spec.image is not None
        await room.client.patch(MACHINES, key, {"spec": {"lifecycleHooks": {"preTerminate": []}}})
        await room.until_host(host, lambda host: host.spec.image is None)
        await room.bring(host, "available")
        await room.until_gone(MACHINES, key)


async def test_a_host_that_nobody_empties_is_told_of_once(room: Room) -> None:
    async with room.operator() as operator:
        key, host = await running(room)
        paused = {"metadata": {"annotations": {"baremetalhost.metal3.io/paused": ""}}}
        await room.client.patch(BARE_METAL_HOSTS, host, paused)
        await room.client.delete(MACHINES, key)
        assert "it is paused" in await room.until_event("HostNotEmptied")
        assert isinstance(await operator.once(key), Again)
        await room.bring(host, "available")
        await room.until_gone(MACHINES, key)
    assert len(await room.events("HostNotEmptied")) == 1


async def test_a_machine_without_a_host_goes_at_once(room: Room) -> None:
    async with room.operator() as operator:
        key = await room.machine(metadata={"finalizers": [FINALIZER]})
        await room.until(key, lambda machine: machine.status.error_reason == "InsufficientResources")
        assert len(operator.waiting) == 1
        await room.client.delete(MACHINES, key)
        await room.until_gone(MACHINES, key)
        await operator.once(key)
        assert len(operator.waiting) == 0


async def test_a_host_that_somebody_else_provisions_is_switched_off_and_given_back(room: Room) -> None:
    mine = {
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "name": "m1",
        "namespace": room.namespace,
    }
    host = await room.host(
        state="externally provisioned", externallyProvisioned=True, consumerRef=mine, online=True
    )
    await room.bring(host, "externally provisioned", poweredOn=True)
    async with room.operator():
        key = await room.machine()
        await room.until(key, phase("Provisioned"))
        await room.client.delete(MACHINES, key)
        found = await room.until_host(host, lambda host: not host.spec.online)
        assert consumer(found) == "m1"
        await room.bring(host, "externally provisioned", poweredOn=False)
        await room.until_gone(MACHINES, key)
    assert consumer(await room.get_host(host)) == ""


async def test_a_machine_that_is_done_is_not_written_again(room: Room) -> None:
    async with room.operator() as operator:
        key, _ = await running(room)
        before = await room.get(key)
        for _ in range(3):
            assert await operator.once(key) == Done()
        after = await room.get(key)
    assert isinstance(after, Machine)
    assert before.metadata.resource_version == after.metadata.resource_version
