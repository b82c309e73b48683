"""Nodes that no host owns: given to the host that has the machine now, or removed; what is not ours is never touched."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from fake_ironic import FakeIronic
from fake_plugin import FakePlugin
from ironic_orders import MAC, NODE, Guard, until

from ingot.api.meta import Key
from ingot.provisioner import Access, Act, Busy, HostRef, KnownHost, Permit, Ready
from ingot.provisioner.census import Suspects
from ingot.provisioner.ironic import IronicProvisioner
from ingot.provisioner.ironic.orphans import MOST_AT_ONCE

OTHER = Key("rack", "h2")
STRANGER = KnownHost(key=Key("rack", "h9"), uid="u9", backend_id="registered elsewhere")


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
    """There is one host, which no test looks at, and Ironic's first list, with nothing in it, is over."""
    await until(lambda: "GET /v1/nodes" in ironic.requests)
    census = Hosts(STRANGER)
    backend.follow(census)
    return census


def abandoned(ironic: FakeIronic, state: str = "available", name: str = NODE, **fields) -> dict:
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
    abandoned(ironic)
    await listed(ironic, plugin)
    await until(lambda: ironic.nodes == {})
    assert nobody.guard.acts == [Act.DELETE]
    assert ironic.verbs == ironic.power_targets == []


@pytest.mark.parametrize("state", ["active", "deploy failed", "rescue", "error"])
async def test_a_node_that_holds_an_instance_is_kept_and_told_once(ironic, plugin, nobody, state, caplog):
    """For a host that is made again without its status it is all that keeps the machine from being inspected."""
    node = abandoned(ironic, state, instance_uuid="somebody")
    with caplog.at_level(logging.INFO):
        await listed(ironic, plugin, times=4)
        await until(lambda: "is kept" in caplog.text)
    assert ironic.nodes == {node["uuid"]: node}
    assert caplog.text.count("is kept") == 1
    assert nobody.guard.asked == []


async def test_status_names_what_is_kept_with_what_removes_it_until_it_is_gone(
    backend, ironic, plugin, nobody
):
    node = abandoned(ironic, "active", instance_uuid="somebody")
    assert backend.notice() == ""
    await listed(ironic, plugin)
    await until(lambda: f"rack~h1 ({node['uuid']}, active)" in backend.notice())
    assert "`baremetal node maintenance set UUID`, then `baremetal node delete UUID`" in backend.notice()

    for number in range(9):
        abandoned(ironic, "active", name=f"rack~used{number}")
    await listed(ironic, plugin)
    await until(lambda: "and 5 more" in backend.notice())

    # A person removed them, and deleted the last host too.
    nobody.known = []
    ironic.nodes.clear()
    await listed(ironic, plugin)
    await until(lambda: backend.notice() == "")


async def test_where_there_is_no_host_at_all_nothing_is_removed(ironic, plugin, nobody):
    """The API may have been emptied, or is being restored."""
    nobody.known = []
    abandoned(ironic)
    await listed(ironic, plugin, times=3)
    assert len(ironic.nodes) == 1
    assert nobody.guard.asked == []


async def test_a_node_without_our_mark_is_read_once(ironic, plugin, nobody):
    node = ironic.add_node(NODE, "available")
    await listed(ironic, plugin, times=4)
    assert ironic.requests.count(f"GET /v1/nodes/{node['uuid']}") == 1


async def test_many_nodes_without_a_host_are_settled_a_few_at_a_time(ironic, plugin, nobody):
    for number in range(MOST_AT_ONCE):
        abandoned(ironic, "active", name=f"rack~used{number}")
    gone = abandoned(ironic, name="rack~gone")
    # Those that stay for good do not keep it from its turn.
    await listed(ironic, plugin, times=4)
    await until(lambda: gone["uuid"] not in ironic.nodes)
    assert len(ironic.nodes) == MOST_AT_ONCE


async def test_a_node_that_is_only_seen_once_without_a_host_is_kept(ironic, plugin, nobody):
    """The host may be on its way into our memory."""
    node = abandoned(ironic)
    await listed(ironic, plugin, times=1)
    nobody.known = [KnownHost(key=Key("rack", "h1"), uid="u", backend_id=node["uuid"])]
    await listed(ironic, plugin)
    assert list(ironic.nodes) == [node["uuid"]]
    assert nobody.guard.asked == []


def test_what_nobody_owns_is_confirmed_after_ten_minutes_without_a_break():
    now = 0.0
    suspects = Suspects(clock=lambda: now)
    assert suspects.confirmed([("a", "a"), ("b", "b")]) == []
    now = 300.0
    assert suspects.confirmed([("a", "a")]) == []
    now = 599.0
    assert suspects.confirmed([("a", "a"), ("b", "b")]) == []
    now = 600.0
    assert suspects.confirmed([("a", "a"), ("b", "b")]) == ["a"]


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
    node = abandoned(ironic, "cleaning")
    await listed(ironic, plugin, times=3)
    assert ironic.nodes == {node["uuid"]: node}
    ironic.change(node["uuid"], provision_state="clean failed")
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
