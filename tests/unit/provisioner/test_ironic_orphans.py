"""Nodes that no host owns: given to the host that has the machine now, or removed; what is not ours is never touched."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fake_ironic import FakeIronic
from fake_plugin import FakePlugin
from ironic_orders import MAC, NODE, Guard, until

from ingot.api.meta import Key
from ingot.provisioner import Access, Act, Busy, HostRef, KnownHost, Permit, Ready
from ingot.provisioner.ironic import IronicProvisioner

OTHER = Key("rack", "h2")


class Hosts:
    """The hosts that there are, and the guard of those that are gone."""

    def __init__(self, *hosts: KnownHost) -> None:
        self.known: Sequence[KnownHost] | None = hosts
        self.guard = Guard()
        self.namespaces = {"rack"}

    def hosts(self) -> Sequence[KnownHost] | None:
        return self.known

    def covers(self, namespace: str) -> bool:
        return namespace in self.namespaces

    def permit(self, key: Key) -> Permit:
        return self.guard


@pytest.fixture
async def nobody(backend: IronicProvisioner, ironic: FakeIronic) -> Hosts:
    """There is no host, and Ironic's first list, with nothing in it, is over."""
    await until(lambda: "GET /v1/nodes" in ironic.requests)
    census = Hosts()
    backend.follow(census)
    return census


def abandoned(ironic: FakeIronic, state: str = "active", name: str = NODE, **fields) -> dict:
    mark = {"ingot_host": "the UID of a host that is gone"}
    return ironic.add_node(name, state, power_state="power on", extra=mark, **fields)


async def listed(ironic: FakeIronic, plugin: FakePlugin, times: int = 2) -> None:
    """All nodes are listed so often: a page of nodes, and an empty one behind it."""

    def pages() -> int:
        return ironic.requests.count("GET /v1/nodes")

    for _ in range(times):
        wanted = pages() + (2 if ironic.nodes else 1)
        plugin.sender += "-again"
        plugin.heartbeat()
        await until(lambda wanted=wanted: pages() >= wanted)


async def test_a_node_that_no_host_owns_is_removed_and_its_machine_left_alone(ironic, plugin, nobody):
    abandoned(ironic, instance_uuid="somebody")
    await listed(ironic, plugin)
    await until(lambda: ironic.nodes == {})
    assert nobody.guard.acts == [Act.DELETE]
    assert nobody.guard.asked[0][1].holds_instance
    assert ironic.verbs == ironic.power_targets == []


async def test_a_node_that_is_only_seen_once_without_a_host_is_kept(ironic, plugin, nobody):
    """The host may be on its way into our memory."""
    node = abandoned(ironic)
    await listed(ironic, plugin, times=1)
    nobody.known = [KnownHost(key=Key("rack", "h1"), uid="u", backend_id=node["uuid"])]
    await listed(ironic, plugin)
    assert list(ironic.nodes) == [node["uuid"]]
    assert nobody.guard.asked == []


@pytest.mark.parametrize("name", [NODE, "rack-h1", None])
async def test_a_node_that_ingot_did_not_make_is_never_touched(ironic, plugin, nobody, name):
    ironic.add_node(name, "available")
    await listed(ironic, plugin, times=3)
    assert len(ironic.nodes) == 1
    assert [request for request in ironic.requests if not request.startswith("GET")] == []


async def test_hosts_of_other_namespaces_are_somebody_elses_business(ironic, plugin, nobody):
    nobody.namespaces = {"elsewhere"}
    abandoned(ironic)
    await listed(ironic, plugin, times=3)
    assert len(ironic.nodes) == 1


async def test_as_long_as_nobody_knows_which_hosts_there_are_all_nodes_stay(ironic, plugin, nobody):
    nobody.known = None
    abandoned(ironic)
    await listed(ironic, plugin, times=3)
    assert len(ironic.nodes) == 1


async def test_what_the_guard_refuses_stays(ironic, plugin, nobody):
    nobody.guard.refuses = {Act.DELETE}
    abandoned(ironic)
    await listed(ironic, plugin, times=3)
    assert len(ironic.nodes) == 1
    assert nobody.guard.asked


async def test_what_ironic_is_at_is_not_cut_off(ironic, plugin, nobody):
    node = abandoned(ironic, "deploying")
    await listed(ironic, plugin, times=3)
    assert ironic.nodes == {node["uuid"]: node}
    ironic.change(node["uuid"], provision_state="deploy failed")
    plugin.sender += "-again"
    plugin.heartbeat()
    await until(lambda: ironic.nodes == {})


async def test_a_node_is_given_to_the_host_that_has_its_mac_address_now(ironic, plugin, nobody):
    node = abandoned(ironic, "available")
    ironic.ports[MAC] = {"uuid": "p", "address": MAC, "node_uuid": node["uuid"], "pxe_enabled": True}
    nobody.known = [KnownHost(key=OTHER, uid="u2", boot_mac=MAC.upper())]
    await listed(ironic, plugin)
    await until(lambda: ironic.nodes[node["uuid"]]["name"] == "rack~h2")
    assert ironic.verbs == []
    assert nobody.guard.asked == []


async def test_a_node_is_given_to_the_host_that_has_its_bmc_now(ironic, plugin, nobody):
    info = {"redfish_address": "https://10.0.0.7:8443", "redfish_system_id": "/redfish/v1/Systems/1"}
    node = abandoned(ironic, "available", driver_info=info)
    address = "redfish-virtualmedia+https://10.0.0.7:8443/redfish/v1/Systems/{}"
    nobody.known = [
        KnownHost(key=Key("rack", "h3"), uid="u3", address=address.format(2)),
        KnownHost(key=OTHER, uid="u2", address=address.format(1)),
    ]
    await listed(ironic, plugin)
    await until(lambda: ironic.nodes[node["uuid"]]["name"] == "rack~h2")


async def test_a_host_that_is_registered_marks_its_node(
    backend, ironic, plugin, host: HostRef, access: Access
):
    assert isinstance(await backend.register(host, access, credentials_changed=True, again=False), Busy)
    assert ironic.node(NODE)["extra"] == {"ingot_host": host.uid}


async def test_a_node_from_before_there_were_marks_gets_one(backend, ironic, plugin, host, access):
    info = {
        "redfish_address": "https://127.0.0.1:8443",
        "redfish_username": "admin",
        "redfish_password": "s3cret",
    }
    ironic.add_node(NODE, "manageable", driver_info=info, power_state="power off")
    answer = await backend.register(host, access, credentials_changed=False, again=False)
    assert isinstance(answer, Ready)
    assert ironic.node(NODE)["extra"] == {"ingot_host": host.uid}
