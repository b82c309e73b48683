"""Nodes whose host is gone."""

from __future__ import annotations

import pytest

from backend.world import World
from ingot.api.meta import Key
from ingot.lab.client import Lab
from ingot.provisioner import Act, KnownHost, Permit, Refusal, Sight
from ingot.provisioner.changes import Changes
from ingot.provisioner.ironic.cache import NodeCache
from ingot.provisioner.ironic.client import IronicClient
from ingot.provisioner.ironic.errors import NotFound
from ingot.provisioner.ironic.nodes import Nodes
from ingot.provisioner.ironic.orphans import Orphans

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Gone:
    """The hosts of a namespace of its own, which are gone, but for those that are set."""

    def __init__(self) -> None:
        self.known: list[KnownHost] = []

    def hosts(self) -> list[KnownHost]:
        return self.known

    def covers(self, namespace: str) -> bool:
        return namespace == "abandoned"

    def permit(self, key: Key) -> Permit:
        async def permit(act: Act, sight: Sight) -> Refusal | None:
            return None

        return permit


async def test_real_ironic_gives_a_node_that_no_host_owns_to_its_heir_or_forgets_it(world: World, lab: Lab):
    mac = "52:54:00:aa:bb:cc"
    async with IronicClient(world.ironic_access) as client:
        nodes, census = Nodes(client, NodeCache(), Changes()), Gone()
        orphans = Orphans(nodes, after=0)
        orphans.census = census
        made = {
            "name": "abandoned~h1",
            "driver": "redfish",
            "extra": {"ingot_host": "of a host that is gone"},
            # Nobody listens there, and nobody is to ask.
            "driver_info": {"redfish_address": "https://127.0.0.1:9"},
        }
        node = await nodes.create(made)
        foreign = await nodes.create({"name": "abandoned~foreign", "driver": "redfish"})
        await client.create_port(node.uuid, mac, pxe_enabled=True)
        census.known = [KnownHost(key=Key("abandoned", "h2"), uid="u", boot_mac=mac)]
        for _ in range(2):
            await orphans.sweep()
        assert (await client.node(node.uuid)).name == "abandoned~h2"
        census.known = [KnownHost(key=Key("abandoned", "h3"), uid="u3")]
        for _ in range(2):
            await orphans.sweep()
        with pytest.raises(NotFound):
            await client.node(node.uuid)
        assert (await client.node(foreign.uuid)).name == "abandoned~foreign"
        await client.delete_node(foreign.uuid)
