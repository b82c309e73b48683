"""Servers that misbehave for a while, or less than it takes to keep anybody from anything: the user need not do anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from fault_moments import INSPECTING, PROVISIONING, REGISTERING, Row, row, runs
from ironic_room import Host, Room
from stories import long_story, story

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.hardwaredata import HARDWARE_DATA
from ingot.lab.faults import Faults, Planned

LOGGED_IN = "of the BMC is opened"
"""What a server's log says of a new session."""


@pytest.mark.parametrize(
    "what",
    [
        row("a slow BMC", Faults(slow_seconds=0.7), INSPECTING),
        row("a BMC that answers 503 a few times", Faults(unavailable=3), REGISTERING),
        row("heartbeats that are lost", Faults(lose_heartbeats=2), PROVISIONING),
    ],
)
@story
async def test_a_fault_that_passes_is_no_matter_for_the_user(room: Room, what: Row) -> None:
    host = room.server()
    await what.when.before(host)
    await host.behave(what.fault)
    await what.when.ask(host)
    await what.when.after(host)
    await host.has_acted_out(what.fault)
    assert not await host.troubles()


@story
async def test_an_inventory_without_memory_is_taken_and_says_nothing_of_it(room: Room) -> None:
    host, lacks_memory = room.server(), Faults(inventory_lacks=["memory"])
    await host.behave(lacks_memory)
    await host.create()
    await host.until_well("available")
    await host.has_acted_out(lacks_memory)
    assert (await room.client.get(HARDWARE_DATA, host.key)).spec.hardware.ram_mebibytes == 0
    assert not await host.troubles()


@story
async def test_a_server_that_reports_before_ironic_waits_for_it_is_inspected_at_its_first_boot(
    room: Room,
) -> None:
    host, at_once = room.server(), Faults(boots_at_once=True)
    await host.behave(at_once)
    await host.create()
    await host.until_well("available")
    await host.has_acted_out(at_once)
    assert (await host.story()).count("booted the ramdisk") == 1


@story
async def test_a_bmc_that_is_gone_for_a_while_is_told_and_all_is_well_once_it_is_back(room: Room) -> None:
    host = room.server()
    await runs(host)
    before = await host.seen()
    await host.behave(Faults(bmc_down=True))
    await host.until(
        lambda found: condition(found, "Manageable") == ("False", "PowerFailure"), "out of reach"
    )
    await host.has_acted_out(Faults(bmc_down=True))
    await host.behave()
    await host.until(lambda found: condition(found, "Manageable")[0] == "True", "in reach again")
    assert (await host.seen()).power_actions == before.power_actions


def condition(host: BareMetalHost, kind: str) -> tuple[str, str]:
    """Status and reason of one of the host's conditions; nothing of one that it does not have."""
    found = (one for one in host.status.conditions if one.type == kind)
    return next(((one.status, one.reason) for one in found), ("", ""))


@long_story
async def test_bmcs_that_are_dead_or_hang_keep_nobody_else_waiting(room: Room) -> None:
    dead, hanging = ([room.server() for _ in range(4)] for _ in range(2))
    away, hangs = Faults(bmc_down=True), Faults(slow_seconds=20)
    for host in dead:
        await host.behave(away)
    for host in hanging:
        # Finding out whether credentials work takes eighteen calls and more.
        await host.behave(hangs)
    for host in (*dead, *hanging):
        await host.create(inspectionMode="disabled")
    for host in dead:
        await host.until_error("does not answer")
    for host in hanging:
        await host.until_node(lambda node: node.provision_state == "verifying", "being looked at")

    good = room.server()
    await good.create()
    await good.reaches("available")
    assert not await good.troubles()
    for host in (*dead, *hanging):
        found = room.hosts.get(host.key)
        assert found is not None
        assert found.status.provisioning.state == "registering", "it is tried still"
        await host.has_acted_out(away if host in dead else hangs)

    for host in (*dead, *hanging):
        await host.behave()
    for host in dead:
        await host.try_again()
    for host in (*dead, *hanging):
        await host.until_well("available")
    for host in hanging:
        assert not await host.troubles(), "slowness alone is no error"


@story
async def test_a_server_that_is_not_well_is_told_of_as_long_as_it_is(room: Room) -> None:
    host = room.server()
    await runs(host)
    await host.until(lambda found: condition(found, "Healthy") == ("True", "Healthy"), "well")
    before = await host.seen()
    for health, reason in (("Critical", "CriticalError"), ("Warning", "Warning")):
        await host.behave(Faults(health=health))
        await host.until(
            lambda found, reason=reason: condition(found, "Healthy") == ("False", reason), f"told: {health}"
        )
        await host.has_acted_out(Faults(health=health))
    await host.behave()
    found = await host.until(lambda found: condition(found, "Healthy")[0] == "True", "well again")
    # What a BMC says of its server is no failure of ours.
    assert found.status.operational_status == "OK"
    assert (await host.seen()).power_actions == before.power_actions
    assert not await host.troubles()


async def by_hand(host: Host) -> None:
    await host.room.lab.reset_bmc(host.name, 4)
    await host.until_seen(
        lambda seen: any("the BMC restarts" in line.text for line in seen.log), "without its BMC"
    )


async def by_plan(host: Host) -> None:
    restart = Planned(after=1, lasts=4, faults=Faults(bmc_restarting=True))
    await host.room.lab.set_plan(host.name, restart)
    await host.until_seen(lambda seen: seen.faults_now.bmc_restarting, "without its BMC, as planned")


@pytest.mark.parametrize("reset", [by_hand, by_plan])
@story
async def test_a_bmc_that_is_reset_costs_nothing_but_time(
    room: Room, reset: Callable[[Host], Awaitable[None]]
) -> None:
    host = room.server()
    await runs(host)
    logins = (await host.story()).count(LOGGED_IN)
    await reset(host)
    await host.change(online=False)
    await host.until_power(on=False)
    assert (await host.story()).count(LOGGED_IN) > logins, "it has forgotten who was logged in"
    assert not await host.troubles()


@story
async def test_an_image_is_deployed_through_a_storm_of_a_bmc(room: Room) -> None:
    """A plan: answers of 503 from when the ramdisk runs, and slowness with them soon; then all is well."""
    host, busy, slow = room.server(), Faults(unavailable=6), Faults(slow_seconds=0.5)
    await host.create(inspectionMode="disabled", image=host.image())
    await host.until_seen(lambda seen: seen.booted_into == "ramdisk", "running its ramdisk")
    await room.lab.set_plan(
        host.name, Planned(lasts=60, faults=busy), Planned(after=2, lasts=60, faults=slow)
    )
    await host.until_well("provisioned")
    assert (await host.until_running()).deployments == 1
    await host.has_acted_out(busy)
    await host.has_acted_out(slow)


@story
async def test_a_medium_that_did_not_come_out_keeps_no_image_from_running_once_it_does(room: Room) -> None:
    host = room.server()
    await host.create(inspectionMode="disabled", image=host.image())
    await host.until_seen(lambda seen: bool(seen.media), "given its ramdisk")
    stuck = Faults(media_stuck=True)
    await host.behave(stuck)
    await host.until(
        lambda found: bool(found.status.error_message) or found.status.provisioning.state == "provisioned",
        "through, one way or the other",
    )
    await host.has_acted_out(stuck)
    await host.behave()
    await host.try_again()
    await host.until_well("provisioned")
    await host.until_running()


@story
async def test_a_password_that_was_changed_at_the_bmc_is_told_and_the_new_one_is_taken(room: Room) -> None:
    host = room.server()
    await runs(host)
    await room.lab.set_password(host.name, "changed-behind-our-back")
    await host.change(online=False)
    told = await host.until_error("refused the user name or password")
    assert "changed-behind-our-back" not in told.status.error_message
    await host.set_secret(f"{host.name}-bmc", password="changed-behind-our-back")
    await host.until_power(on=False)
