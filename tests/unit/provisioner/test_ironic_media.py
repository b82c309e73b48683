"""The virtual CD drive through the Ironic back end: changed once, known after a restart, left alone while Ironic works."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fake_ironic import FakeIronic
from ironic_orders import NODE

from ingot.provisioner import Busy, Failed, HostRef, NotRegistered, Ready
from ingot.provisioner.ironic import IronicAccess, IronicProvisioner
from ingot.provisioner.ironic.data_image import CHANGING, DATA_IMAGE, MARK, Drive, facts_of_drive, mark_for
from ingot.provisioner.ironic.decisions import Decision, Done, Fail, Step, Wait
from ingot.provisioner.ironic.model import FullNode
from ingot.provisioner.ironic.rules import Fact, facts_of

ISO = "https://user:pa55@images.example/data.iso"
OTHER = "https://images.example/other.iso"


@pytest.fixture
def running(ironic: FakeIronic, host: HostRef) -> HostRef:
    node = ironic.add_node(NODE, "active", power_state="power off", instance_uuid=host.uid)
    return replace(host, backend_id=node["uuid"])


async def attach(backend: IronicProvisioner, ironic: FakeIronic, host: HostRef, url: str) -> None:
    assert isinstance(await backend.set_data_image(host, url, again=False), Busy)
    ironic.media.finish(NODE)
    assert await backend.set_data_image(host, url, again=False) == Ready(None)


async def test_an_image_is_attached_once(backend, ironic, running):
    answer = await backend.set_data_image(running, ISO, again=False)
    assert answer == Busy("inserting the image into the virtual CD drive")
    assert isinstance(await backend.set_data_image(running, ISO, again=False), Busy)
    ironic.media.finish(NODE)
    for _ in range(2):
        assert await backend.set_data_image(running, ISO, again=False) == Ready(None)
    assert ironic.media.attached == [ISO]


async def test_that_ironic_is_done_is_seen_at_the_next_look_though_nothing_is_pushed(
    backend, ironic, running, plugin
):
    plugin.heartbeat()
    await plugin.delivered()
    assert backend.push_is_heard
    for _ in range(2):
        assert isinstance(await backend.set_data_image(running, ISO, again=False), Busy)
        await plugin.delivered()
    ironic.media.finish(NODE)
    assert await backend.set_data_image(running, ISO, again=False) == Ready(None)


async def test_which_image_it_is_is_known_after_a_restart_and_holds_no_password(
    backend, ironic, running, where: IronicAccess
):
    await attach(backend, ironic, running, ISO)
    assert "pa55" not in str(ironic.node(NODE)["extra"])
    async with IronicProvisioner(where) as restarted:
        assert await restarted.set_data_image(running, ISO, again=False) == Ready(None)
        assert isinstance(await restarted.set_data_image(running, OTHER, again=False), Busy)
    assert ironic.media.attached == [ISO, OTHER]


async def test_an_operator_that_died_while_the_drive_was_changed_changes_it_again(
    backend, ironic, running, where: IronicAccess
):
    await attach(backend, ironic, running, ISO)
    assert isinstance(await backend.set_data_image(running, OTHER, again=False), Busy)
    # Ironic never came to it: the old image is still there.
    ironic.media.under_way.clear()
    ironic.change(NODE, reservation=None)
    async with IronicProvisioner(where) as restarted:
        assert isinstance(await restarted.set_data_image(running, OTHER, again=False), Busy)
        ironic.media.finish(NODE)
        assert await restarted.set_data_image(running, OTHER, again=False) == Ready(None)
    assert ironic.media.attached == [ISO, OTHER, OTHER]


async def test_the_drive_is_emptied_and_an_empty_one_is_left_alone(backend, ironic, running):
    assert await backend.set_data_image(running, "", again=False) == Ready(None)
    assert ironic.asked("DELETE") == 0
    await attach(backend, ironic, running, ISO)
    assert await backend.set_data_image(running, "", again=False) == Busy("emptying the virtual CD drive")
    ironic.media.finish(NODE)
    assert await backend.set_data_image(running, "", again=False) == Ready(None)
    assert MARK not in ironic.node(NODE)["extra"]
    assert ironic.asked("DELETE") == 1


async def test_a_failure_is_told_once_and_then_tried_again(backend, ironic, running):
    await backend.set_data_image(running, ISO, again=False)
    ironic.media.fail(NODE, "the server has no route to images.example")
    answer = await backend.set_data_image(running, ISO, again=False)
    assert isinstance(answer, Failed)
    assert "no route to images.example" in answer.message
    assert isinstance(await backend.set_data_image(running, ISO, again=True), Busy)
    ironic.media.finish(NODE)
    assert await backend.set_data_image(running, ISO, again=True) == Ready(None)


async def test_the_drive_is_left_alone_while_ironic_boots_a_ramdisk_from_it(backend, ironic, running):
    ironic.change(NODE, provision_state="wait call-back")
    assert isinstance(await backend.set_data_image(running, ISO, again=False), Busy)
    assert ironic.media.attached == []


async def test_an_ironic_that_cannot_tell_what_is_in_a_drive_is_too_old(backend, ironic, running):
    ironic.newest = "1.92"
    answer = await backend.set_data_image(running, ISO, again=False)
    assert isinstance(answer, Failed)
    assert "1.93" in answer.message


async def test_a_node_that_is_gone_is_not_registered(backend, ironic, running):
    ironic.lose_database()
    assert isinstance(await backend.set_data_image(running, ISO, again=False), NotRegistered)


NOW = datetime(2026, 1, 1, tzinfo=UTC)
WANTED = mark_for(ISO)


def decide(node: FullNode, drive: Drive, wanted: str, *, again: bool) -> Decision:
    return DATA_IMAGE.decide(node, facts_of(node, NOW, facts_of_drive(drive, wanted) | {Fact.TOLD: again}))


@pytest.mark.parametrize(
    ("drive", "wanted", "again", "decision"),
    [
        (Drive(loaded=True, mark=WANTED, asked_before=False), WANTED, False, Done()),
        (Drive(loaded=False, mark=WANTED, asked_before=False), WANTED, False, Step.CHANGE_MEDIA),
        (Drive(loaded=True, mark=CHANGING, asked_before=False), WANTED, False, Step.CHANGE_MEDIA),
        (Drive(loaded=True, mark=CHANGING, asked_before=True), WANTED, False, Step.NOTE),
        (Drive(loaded=False, mark=CHANGING, asked_before=True), WANTED, True, Step.CHANGE_MEDIA),
        (Drive(loaded=True, mark="", asked_before=False), WANTED, False, Step.CHANGE_MEDIA),
        (Drive(loaded=False, mark="", asked_before=False), "", False, Done()),
        (Drive(loaded=False, mark=WANTED, asked_before=False), "", False, Step.NOTE),
        (Drive(loaded=True, mark="", asked_before=False), "", False, Step.CHANGE_MEDIA),
        (Drive(loaded=True, mark=CHANGING, asked_before=True), "", True, Step.CHANGE_MEDIA),
    ],
)
def test_the_table_of_drives(drive, wanted, again, decision):
    node = FullNode(uuid="u", provision_state="active")
    assert decide(node, drive, wanted, again=again) == decision


def test_what_ironic_did_and_the_bmc_does_not_show_is_a_failure():
    node = FullNode(uuid="u", provision_state="active")
    drive = Drive(loaded=False, mark=CHANGING, asked_before=True)
    assert isinstance(decide(node, drive, WANTED, again=False), Fail)


def test_while_ironic_holds_the_lock_for_us_the_drive_is_being_changed():
    node = FullNode(uuid="u", provision_state="active")
    drive = Drive(loaded=True, mark=WANTED, asked_before=True, changing=True)
    assert isinstance(decide(node, drive, WANTED, again=False), Wait)
