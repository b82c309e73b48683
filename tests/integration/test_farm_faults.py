"""What can go wrong with a server, when, what its user reads about it, and how it ends.

Each row is a server of its own. It misbehaves from a moment on; its host gets over it by itself, or says what is wrong in words
that help, and goes on once that is mended. Nothing that a server does may show a token.
"""

from __future__ import annotations

import re

import pytest
from fault_moments import (
    CLEANING,
    INSPECTING,
    LETTING_GO,
    MAKING_ARRAYS,
    MAKING_VOLUMES,
    PROVISIONING,
    REGISTERING,
    SERVICING,
    SETTING,
    SWITCHING,
    SWITCHING_HARD,
    SWITCHING_ON,
    UPDATING,
    UPDATING_THE_BMC,
    Row,
    row,
)
from ironic_room import Room
from stories import long_story, story

from ingot.lab.faults import Faults

SECRETS_SHOWN = re.compile(r"agent_token=(?!\*)|ipa-agent-token|Authorization", re.IGNORECASE)


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
        # No agent can die there: what a system in use is serviced with is done by its BMC alone.
        row(
            "firmware of a BMC that the BMC refuses",
            Faults(fail_tasks="wrong signature"),
            UPDATING_THE_BMC,
            "wrong signature",
        ),
        row(
            "firmware that is refused at a reboot",
            Faults(fail_tasks="wrong signature"),
            SERVICING,
            "wrong signature",
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
            "volumes that are refused", Faults(fail_tasks="disk 2 is dead"), MAKING_VOLUMES, "disk 2 is dead"
        ),
        row(
            "a job for volumes that fails",
            Faults(fail_tasks="disk 2 is dead"),
            MAKING_VOLUMES,
            "disk 2 is dead",
            vendor="dell",
        ),
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
    await is_told_and_mended(room, what)


@pytest.mark.parametrize(
    "what",
    [
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
            "an agent that dies while it cleans",
            Faults(die_in_step="erase_devices_metadata"),
            CLEANING,
            "did not report in time",
        ),
        row(
            "an agent that dies while it makes arrays",
            Faults(die_in_step="create_configuration"),
            MAKING_ARRAYS,
            "did not report in time",
        ),
        row("an agent that never speaks", Faults(silent_agent=True), INSPECTING, "did not report in time"),
    ],
)
@long_story
async def test_an_agent_that_is_not_heard_of_is_told_in_words_and_the_host_goes_on_once_it_is(
    room: Room, what: Row
) -> None:
    await is_told_and_mended(room, what)


async def is_told_and_mended(room: Room, what: Row) -> None:
    host = what.server(room)
    await what.when.before(host)
    before = await host.seen()
    await host.behave(what.fault)
    await what.when.ask(host)
    told = await host.until_error(what.reads)
    assert told.status.error_type == what.when.error_type
    assert told.status.operational_status == "error"
    assert not SECRETS_SHOWN.search(told.status.error_message)
    await host.has_acted_out(what.fault)

    await host.behave()
    await host.try_again()
    await what.when.after(host)
    after = await host.seen()
    assert after.deployments - before.deployments <= 1
