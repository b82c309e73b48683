"""What can go wrong with a server, when, what its user reads about it, and how it ends.

Each row is a server of its own. It misbehaves from a moment on; its host gets over it by itself, or says what is wrong in words
that help, and goes on once that is mended. Nothing that a server does may show a token.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import pytest
from ironic_room import Host, Room
from stories import long_story, story

from ingot.api.baremetalhost import Annotation, BareMetalHost
from ingot.lab.faults import Faults, Planned

SECRETS_SHOWN = re.compile(r"agent_token=(?!\*)|ipa-agent-token|Authorization", re.IGNORECASE)


class When(NamedTuple):
    """A moment of a host's life: how it comes to it, what is asked of it then, and where it has arrived when that is done."""

    before: Callable[[Host], Awaitable[object]]
    ask: Callable[[Host], Awaitable[object]]
    error_type: str
    after: Callable[[Host], Awaitable[object]]


async def nothing(_: Host) -> None:
    """A server that no object describes."""


async def runs(host: Host) -> None:
    """Somebody else's system, switched on."""
    await host.create(externallyProvisioned=True)
    await host.reaches("externally provisioned")
    await host.until_power(on=True)


async def is_off(host: Host) -> None:
    """Somebody else's system, switched off."""
    await host.create(externallyProvisioned=True, online=False)
    await host.reaches("externally provisioned")


async def is_available(host: Host) -> None:
    await host.create(inspectionMode="disabled")
    await host.reaches("available")


async def holds_an_image(host: Host) -> None:
    await host.create(inspectionMode="disabled", image=host.image())
    await host.reaches("provisioned")
    await host.until_running()


REGISTERING = When(
    nothing,
    lambda host: host.create(inspectionMode="disabled"),
    "registration error",
    lambda host: host.until_well("available"),
)
INSPECTING = When(
    nothing, lambda host: host.create(), "inspection error", lambda host: host.until_well("available")
)
PROVISIONING = When(
    nothing,
    lambda host: host.create(inspectionMode="disabled", image=host.image()),
    "provisioning error",
    lambda host: host.until_well("provisioned"),
)
CLEANING = When(
    nothing,
    lambda host: host.create(inspectionMode="disabled", image=host.image(), automatedCleaningMode="metadata"),
    "provisioning error",
    lambda host: host.until_well("provisioned"),
)
SWITCHING = When(
    runs,
    lambda host: host.change(online=False),
    "power management error",
    lambda host: host.until_power(on=False),
)
SWITCHING_HARD = When(
    runs,
    lambda host: host.annotate(f"{Annotation.REBOOT}/hold", '{"mode": "hard"}'),
    "power management error",
    lambda host: host.until_power(on=False),
)
SWITCHING_ON = When(
    is_off,
    lambda host: host.change(online=True),
    "power management error",
    lambda host: host.until_power(on=True),
)
UPDATING = When(
    is_available,
    lambda host: host.wants_firmware("bios", "4.0.0"),
    "preparation error",
    lambda host: host.until_seen(lambda seen: seen.components.versions.get("bios") == "4.0.0", "updated"),
)
SETTING = When(
    is_available,
    lambda host: host.wants_settings(ProcTurboMode="Disabled"),
    "preparation error",
    lambda host: host.until_seen(
        lambda seen: seen.components.bios.get("ProcTurboMode") == "Disabled", "settings"
    ),
)
LETTING_GO = When(
    holds_an_image,
    lambda host: host.change(image=None, automatedCleaningMode="metadata"),
    "provisioning error",
    lambda host: host.until_well("available"),
)


class Row(NamedTuple):
    fault: Faults
    when: When
    reads: str


def row(name: str, fault: Faults, when: When, reads: str = "") -> object:
    return pytest.param(Row(fault, when, reads), id=name)


@pytest.mark.parametrize(
    "what",
    [
        row("a BMC that is away", Faults(bmc_down=True), REGISTERING, "does not answer"),
        row(
            "a BMC that refuses the password",
            Faults(refuse_password=True),
            REGISTERING,
            "refused the user name or password (HTTP 401)",
        ),
        row(
            "a BMC whose password has expired",
            Faults(password_expired=True),
            REGISTERING,
            "refused the user name or password (HTTP 403)",
        ),
        row("a BMC that answers 503 and nothing else", Faults(unavailable=-1), REGISTERING, "503"),
        row(
            "a BMC whose answers are cut",
            Faults(broken_json=True),
            REGISTERING,
            "gives answers that cannot be read",
        ),
        row(
            "a BMC whose errors say nothing",
            Faults(no_json_errors=True, fail_insert_media=True),
            INSPECTING,
            "gives answers that cannot be read",
        ),
        row(
            "an agent that found something broken",
            Faults(inspection_error="no disk answers"),
            INSPECTING,
            "no disk answers",
        ),
        row(
            "an inventory without processors", Faults(inventory_lacks=["cpu"]), INSPECTING, "CPU architecture"
        ),
        row(
            "an agent with the cards of another server",
            Faults(wrong_macs=True),
            INSPECTING,
            "did not report in time",
        ),
        row(
            "an agent that dies while it writes",
            Faults(die_in_step="write_image"),
            PROVISIONING,
            "did not report in time",
        ),
        row(
            "power that does not change",
            Faults(power_stuck=True),
            SWITCHING_HARD,
            "the power cannot be switched off",
        ),
        row(
            "a BMC that says On of a server that is off",
            Faults(power_lie="On"),
            SWITCHING_HARD,
            "the power cannot be switched off",
        ),
        row(
            "a BMC that says Off of a server that is on",
            Faults(power_lie="Off"),
            SWITCHING_ON,
            "the power cannot be switched on",
        ),
        row(
            "virtual media that are refused",
            Faults(fail_insert_media=True),
            INSPECTING,
            "Virtual media mount failed",
        ),
        row(
            "a boot device that cannot be set",
            Faults(fail_boot_device=True),
            INSPECTING,
            "set boot device failed",
        ),
        row("an agent that never speaks", Faults(silent_agent=True), INSPECTING, "did not report in time"),
        row(
            "an image that cannot be written",
            Faults(fail_steps={"write_image": "no space left on device"}),
            PROVISIONING,
            "no space left on device",
        ),
        row(
            "disks that cannot be cleaned",
            Faults(fail_steps={"erase_devices_metadata": "disk is write-protected"}),
            CLEANING,
            "disk is write-protected",
        ),
        row(
            "disks that cannot be cleaned at the end",
            Faults(fail_steps={"erase_devices_metadata": "disk is write-protected"}),
            LETTING_GO,
            "disk is write-protected",
        ),
        row("firmware that is refused", Faults(fail_tasks="wrong signature"), UPDATING, "wrong signature"),
        row(
            "settings that are taken and never applied",
            Faults(bios_ignored=True),
            SETTING,
            "the machine does not take these BIOS settings: {'ProcTurboMode': 'Disabled'}",
        ),
        row(
            "power that cannot be switched",
            Faults(fail_power=True),
            SWITCHING,
            "the power cannot be switched off",
        ),
    ],
)
@story
async def test_a_fault_is_told_in_words_and_the_host_goes_on_once_it_is_mended(room: Room, what: Row) -> None:
    host = room.server()
    await what.when.before(host)
    before = await host.seen()
    await host.behave(what.fault)
    await what.when.ask(host)
    told = await host.until_error(what.reads)
    assert told.status.error_type == what.when.error_type
    assert told.status.operational_status == "error"
    assert not SECRETS_SHOWN.search(told.status.error_message)

    await host.behave()
    await host.try_again()
    await what.when.after(host)
    after = await host.seen()
    assert after.deployments - before.deployments <= 1


@pytest.mark.parametrize(
    "what",
    [
        row("a slow BMC", Faults(slow_seconds=0.7), INSPECTING),
        row("a BMC that answers 503 a few times", Faults(unavailable=3), REGISTERING),
        row("heartbeats that are lost", Faults(lose_heartbeats=2), PROVISIONING),
        row("an inventory without memory", Faults(inventory_lacks=["memory"]), INSPECTING),
    ],
)
@story
async def test_a_fault_that_passes_is_no_matter_for_the_user(room: Room, what: Row) -> None:
    host = room.server()
    await what.when.before(host)
    await host.behave(what.fault)
    await what.when.ask(host)
    await what.when.after(host)
    assert not await host.troubles()


@story
async def test_a_server_that_reports_before_ironic_waits_for_it_is_inspected_at_its_first_boot(
    room: Room,
) -> None:
    host = room.server()
    await host.behave(Faults(boots_at_once=True))
    await host.create()
    await host.until_well("available")
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
    for host in dead:
        await host.behave(Faults(bmc_down=True))
    for host in hanging:
        # Finding out whether credentials work takes eighteen calls and more.
        await host.behave(Faults(slow_seconds=20))
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
    await host.behave()
    found = await host.until(lambda found: condition(found, "Healthy")[0] == "True", "well again")
    # What a BMC says of its server is no failure of ours.
    assert found.status.operational_status == "OK"
    assert (await host.seen()).power_actions == before.power_actions
    assert not await host.troubles()


async def by_hand(host: Host) -> None:
    await host.room.lab.reset_bmc(host.name, 4)


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
    await reset(host)
    await host.change(online=False)
    await host.until_power(on=False)
    assert not await host.troubles()


@story
async def test_an_image_is_deployed_through_a_storm_of_a_bmc(room: Room) -> None:
    """A plan: answers of 503, then slowness, then all is well."""
    host = room.server()
    await room.lab.set_plan(
        host.name,
        Planned(after=4, lasts=20, faults=Faults(unavailable=6)),
        Planned(after=20, lasts=30, faults=Faults(slow_seconds=0.5)),
    )
    await host.create(inspectionMode="disabled", image=host.image())
    await host.until_well("provisioned")
    assert (await host.until_running()).deployments == 1


@story
async def test_a_medium_that_did_not_come_out_keeps_no_image_from_running_once_it_does(room: Room) -> None:
    host = room.server()
    await host.create(inspectionMode="disabled", image=host.image())
    await host.until_seen(lambda seen: bool(seen.media), "given its ramdisk")
    await host.behave(Faults(media_stuck=True))
    await host.until(
        lambda found: bool(found.status.error_message) or found.status.provisioning.state == "provisioned",
        "through, one way or the other",
    )
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
