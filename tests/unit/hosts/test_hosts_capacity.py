"""Only so many hosts boot over the network at once; the others wait in line and are called."""

from __future__ import annotations

import asyncio

import pytest
from rack import IMAGE, Rack

from ingot.api.baremetalhost import Annotation, BareMetalHost
from ingot.api.meta import Key
from ingot.hosts import HostSettings
from ingot.provisioner import Busy

pytestmark = pytest.mark.parametrize("settings", [HostSettings(provisioning_limit=2)], ids=["two places"])


def placed(host: BareMetalHost) -> bool:
    """Whether it is known if the host has a place."""
    return host.state == "inspecting" or host.status.operational_status == "delayed"


async def inspecting(rack: Rack, keys: list[Key]) -> list[Key]:
    return [key for key in keys if (await rack.get(key)).status.provisioning.state == "inspecting"]


async def test_no_more_hosts_than_places_are_begun_and_the_others_say_that_they_wait(rack: Rack) -> None:
    rack.backend.network_boot = True
    rack.backend.hold("inspect", Busy("the ramdisk boots"))
    keys = list(await asyncio.gather(*(rack.host(f"h{number}") for number in range(5))))
    for key in keys:
        await rack.until(key, placed)
    waiting = [
        host for host in [await rack.get(key) for key in keys] if host.status.operational_status == "delayed"
    ]
    assert len(await inspecting(rack, keys)) == 2
    assert len(waiting) == 3
    assert {host.state for host in waiting} == {"registering"}
    assert "all 2 places" in rack.sentence(waiting[0])


async def test_who_waits_is_called_when_a_place_is_free(rack: Rack) -> None:
    rack.backend.network_boot = True
    rack.backend.hold("inspect", Busy("the ramdisk boots"))
    keys = list(await asyncio.gather(*(rack.host(f"h{number}") for number in range(3))))
    for key in keys:
        await rack.until(key, placed)
    rack.backend.let_go("inspect")
    for key in keys:
        if (await rack.get(key)).state == "inspecting":
            rack.backend.tell(key)
    for key in keys:
        host = await rack.until_state(key, "available")
        assert host.status.operational_status == "OK"


async def test_hosts_with_virtual_media_are_never_delayed(rack: Rack) -> None:
    rack.backend.hold("inspect", Busy("the ramdisk boots"))
    keys = list(await asyncio.gather(*(rack.host(f"h{number}") for number in range(5))))
    for key in keys:
        await rack.until_state(key, "inspecting")


async def test_a_delayed_host_has_not_begun_what_it_waits_for(rack: Rack) -> None:
    rack.backend.network_boot = True
    ready = await rack.host("ready")
    await rack.until_state(ready, "available")
    rack.backend.hold("inspect", Busy("the ramdisk boots"))
    for name in ("h1", "h2"):
        await rack.until_state(await rack.host(name), "inspecting")
    await rack.change(ready, {"image": IMAGE})
    host = await rack.until(ready, lambda host: host.status.operational_status == "delayed")
    assert host.state == "available"
    assert host.status.last_attempted_image is None
    assert "ProvisioningStarted" not in await rack.event_reasons()


async def test_a_delayed_host_can_be_deleted(rack: Rack) -> None:
    rack.backend.network_boot = True
    rack.backend.hold("inspect", Busy("the ramdisk boots"))
    for name in ("h1", "h2"):
        await rack.until_state(await rack.host(name), "inspecting")
    late = await rack.host("late")
    await rack.until(late, lambda host: host.status.operational_status == "delayed")
    await rack.delete(late)
    await rack.until_gone(late)


@pytest.mark.parametrize("loses_interest", ["paused", "without an image"])
async def test_who_does_not_want_a_place_any_more_is_passed_over(rack: Rack, loses_interest: str) -> None:
    rack.backend.network_boot = True
    first, second = await rack.host("first"), await rack.host("second")
    for key in (first, second):
        await rack.until_state(key, "available")
    rack.backend.hold("inspect", Busy("the ramdisk boots"))
    for name in ("h1", "h2"):
        await rack.until_state(await rack.host(name), "inspecting")
    for key in (first, second):
        await rack.change(key, {"image": IMAGE})
        await rack.until(key, lambda host: host.status.operational_status == "delayed")
    if loses_interest == "paused":
        await rack.annotate(first, Annotation.PAUSED)
    else:
        await rack.change(first, {"image": None})
        await rack.until(first, lambda host: host.status.operational_status == "OK")
    await rack.delete(Key(rack.namespace, "h1"))
    await rack.until_state(second, "provisioned")
