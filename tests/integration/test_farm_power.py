"""Switching servers that run something: softly, hard, once, for as long as somebody wants; and what must not be switched."""

from __future__ import annotations

import json

from ironic_room import Host, Room
from stories import long_story, story

from ingot.api.baremetalhost import Annotation
from ingot.lab.faults import Faults


async def switched(host: Host, since: int = 0) -> list[str]:
    """What the server's power control was told."""
    return [action.what for action in (await host.seen()).power_actions[since:]]


@story
async def test_a_running_server_is_switched_as_its_user_wants_and_never_otherwise(room: Room) -> None:
    host = room.server()
    await host.create(externallyProvisioned=True, online=False)
    await host.reaches("externally provisioned")
    assert await switched(host) == [], "a machine of somebody else is taken over as it is"

    await host.change(online=True)
    await host.until_power(on=True)
    assert await switched(host) == ["On"]

    await host.change(online=False)
    await host.until_power(on=False)
    assert await switched(host, 1) == ["GracefulShutdown"]
    await host.change(online=True)
    await host.until_power(on=True)

    # A reboot that must be quick is a hard one, and happens once.
    await host.annotate(Annotation.REBOOT, json.dumps({"mode": "hard"}))
    await host.until_seen(lambda seen: len(seen.power_actions) == 5, "switched off and on")
    await host.until(lambda found: Annotation.REBOOT not in found.metadata.annotations, "rebooted")
    await host.until_power(on=True)
    assert await switched(host, 3) == ["ForceOff", "On"]

    # Somebody keeps it off, and lets it go.
    holder = f"{Annotation.REBOOT}/holder"
    await host.annotate(holder)
    await host.until_power(on=False)
    await host.annotate(holder, None)
    await host.until_power(on=True)
    assert await switched(host, 5) == ["GracefulShutdown", "On"]

    await host.delete()
    seen = await host.seen()
    assert (seen.power, seen.deployments, seen.cleanings) == ("Off", 0, 0), "its disks are as they were"


@story
async def test_a_server_that_must_never_be_off_is_rebooted_in_one(room: Room) -> None:
    host = room.server()
    await host.create(externallyProvisioned=True, disablePowerOff=True)
    await host.reaches("externally provisioned")
    await host.until_power(on=True)
    before = len(await switched(host))
    await host.annotate(Annotation.REBOOT)
    await host.until(lambda found: Annotation.REBOOT not in found.metadata.annotations, "rebooted")
    assert await switched(host, before) in (["GracefulRestart"], ["ForceRestart"])
    assert (await host.seen()).power == "On"


@long_story
async def test_a_system_that_does_not_heed_the_wish_to_shut_down_is_switched_off_hard(room: Room) -> None:
    host = room.server()
    await host.create(externallyProvisioned=True)
    await host.reaches("externally provisioned")
    await host.until_power(on=True)
    before = len(await switched(host))
    await host.behave(Faults(deaf_system=True))
    await host.change(online=False)
    # Its user hears that the polite way failed, and need not do anything.
    await host.until(lambda found: found.status.error_type == "power management error", "warned")
    await host.until_power(on=False)
    assert await switched(host, before) == ["GracefulShutdown", "ForceOff"]
    await host.has_acted_out(Faults(deaf_system=True))
