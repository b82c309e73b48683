"""kill -9 of Ironic in the moments of a firmware update in which nothing but its start could go on with it.

A BMC that is slow makes each of them last. No server is flashed twice, nobody has to do anything, and the host is told nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ironic_room import Host, Room
from stories import all_told

from ingot.lab.faults import Faults
from ingot.lab.views import ServerView
from ingot.provisioner.ironic.model import FullNode

pytestmark = pytest.mark.asyncio(loop_scope="session")

SLOW = Faults(slow_seconds=2)
VERSION = "5.0.0"


def is_updated(seen: ServerView) -> bool:
    return seen.components.versions.get("bios") == VERSION


def is_to_be_rebooted(node: FullNode) -> bool:
    """Ironic has forgotten the ramdisk, which runs still."""
    return _is_looked_after(node) and node.target_power_state == "power on"


def is_over(node: FullNode) -> bool:
    """Ironic has forgotten the update, and looks whether the BMC is steady."""
    return node.provision_state == "clean wait" and node.step == "update" and not _is_looked_after(node)


def _is_looked_after(node: FullNode) -> bool:
    return bool(node.driver_internal_info.get("redfish_fw_updates"))


@pytest.mark.parametrize(
    ("slow_once", "moment"),
    [
        pytest.param(lambda seen: seen.booted_into == "ramdisk", is_to_be_rebooted, id="to be rebooted"),
        pytest.param(is_updated, is_over, id="over"),
    ],
)
async def test_an_update_that_ironic_is_killed_at_goes_on_and_nothing_is_flashed_twice(
    room: Room,
    request: pytest.FixtureRequest,
    slow_once: Callable[[ServerView], bool],
    moment: Callable[[FullNode], bool],
):
    await all_told(room, request.session.items)
    host = room.server()
    await host.create(inspectionMode="disabled")
    await host.reaches("available")
    await host.wants_firmware("bios", VERSION)
    await host.until_seen(slow_once, "on its way")
    await host.behave(SLOW)
    await host.until_node(moment, "in the moment")
    room.kill("ironic")
    await host.behave()
    room.start_ironic()
    await room.ironic_ready()

    await host.until_seen(is_updated, "updated")
    await host.until_well("available")
    assert await flashes(host) == 1
    assert not await host.troubles()


async def flashes(host: Host) -> int:
    return sum("firmware update by task" in line.text for line in (await host.seen()).log)
