"""What every back end promises of its memory: lost, the machine goes on; kept, it outlives a restart."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from contract import KEY, SETTINGS, Play
from ironic_orders import ORDER, Guard, until

from ingot.api.meta import Key
from ingot.provisioner import (
    Act,
    KnownHost,
    NotRegistered,
    Permit,
    Power,
    Ready,
    Service,
    Vitals,
)


async def test_a_host_that_is_not_known_has_to_be_registered_first(play: Play):
    assert isinstance(await play.inspect(), NotRegistered)
    assert isinstance(await play.backend.vitals(play.host), NotRegistered)
    assert isinstance(await play.provision(), NotRegistered)


@pytest.mark.parametrize(
    "verb", ["inspect", "prepare", "service", "provision", "deprovision", "adopt", "subscribe"]
)
async def test_after_its_memory_is_lost_the_back_end_says_so_and_does_nothing(play: Play, verb: str):
    await play.provisioned()
    await play.stage.lose_memory()
    assert isinstance(await getattr(play, verb)(), NotRegistered)
    assert isinstance(await play.power(Power.OFF), NotRegistered)
    assert play.stage.powered_on()
    assert play.stage.on_disk()
    assert play.permit.asked == []


async def test_a_running_host_is_adopted_and_never_touched(play: Play):
    await play.provisioned()
    await play.stage.lose_memory()
    play.id = ""
    await play.registered()
    for _ in range(2):
        assert await play.adopt() == Ready(None)
    assert play.permit.asked == []
    assert play.stage.powered_on()
    assert play.stage.on_disk()
    assert play.stage.done("deploy") == play.stage.done("inspect") == 1
    assert play.stage.done("power off") == play.stage.done("reboot") == 0


async def test_what_was_adopted_can_be_deprovisioned(play: Play):
    await play.provisioned()
    await play.stage.lose_memory()
    play.id = ""
    await play.registered()
    await play.adopt()
    assert await play.deprovision() == Ready(None)
    assert play.permit.asked[-1][0] is Act.UNDEPLOY
    assert play.permit.asked[-1][1].holds_instance
    assert play.stage.on_disk() == ""


async def test_a_detached_host_is_forgotten_and_runs_on(play: Play):
    await play.provisioned()
    for _ in range(2):
        assert await play.detach() == Ready(None)
    assert [act for act, _ in play.permit.asked] == [Act.DETACH]
    assert isinstance(await play.backend.vitals(play.host), NotRegistered)
    assert play.stage.powered_on()
    assert play.stage.on_disk()


async def test_a_deleted_host_is_forgotten(play: Play):
    await play.inspected()
    for _ in range(2):
        assert await play.delete() == Ready(None)
    assert [act for act, _ in play.permit.asked] == [Act.DELETE]
    assert isinstance(await play.backend.vitals(play.host), NotRegistered)


async def test_a_subscription_is_found_again_by_a_back_end_that_forgot_it(play: Play):
    await play.provisioned()
    first = await play.subscribe()
    await play.stage.lose_memory()
    play.id = ""
    await play.registered()
    await play.adopt()
    assert await play.subscribe() == first


async def test_named_orders_are_begun_once_also_over_a_restart(play: Play):
    await play.inspected()
    await play.inspect("monday")
    await play.prepare()
    await play.stage.restart()
    await play.inspect("monday")
    await play.prepare()
    assert play.stage.done("inspect") == 2
    assert play.stage.done("prepare") == 1
    await play.provision()
    await play.service()
    await play.stage.restart()
    assert await play.service() == Ready(None)
    assert play.stage.done("service") == 1


async def test_what_was_under_way_when_the_operator_ended_goes_on(play: Play):
    await play.inspected()
    await play.backend.provision(play.host, ORDER, permit=play.permit, again=False)
    await play.stage.restart()
    assert await play.provision() == Ready(None)
    assert play.stage.done("deploy") == 1
    order = Service(name="first", firmware=SETTINGS)
    await play.backend.service(play.host, order, permit=play.permit, again=False)
    await play.stage.restart()
    assert await play.service() == Ready(None)
    assert play.stage.done("service") == 1


async def test_a_machine_is_as_it_was_left_after_a_restart(play: Play):
    await play.inspected()
    assert await play.prepare() == Ready(None)
    await play.power(Power.OFF)
    before = await play.backend.firmware_settings(play.host)
    await play.stage.restart()
    assert await play.register() == Ready(type((await play.register()).value)(play.id))
    assert await play.backend.firmware_settings(play.host) == before
    assert not play.stage.powered_on()


async def test_after_a_restart_the_credentials_are_needed_once(play: Play):
    first = await play.register()
    await play.stage.restart()
    known = await play.to_end(
        lambda: play.backend.register(play.host, play.access, credentials_changed=False, again=False)
    )
    assert known == first
    without = replace(play.access, credentials=None)
    assert await play.backend.register(play.host, without, credentials_changed=False, again=False) == first


class Others:
    """There is a host still, but the one of the play is gone."""

    def __init__(self) -> None:
        self.guard = Guard()

    def hosts(self) -> list[KnownHost]:
        return [KnownHost(key=Key(KEY.namespace, "another"), uid="another")]

    def covers(self, namespace: str) -> bool:
        return True

    def permit(self, key: Key) -> Permit:
        assert key == KEY
        return self.guard


@pytest.mark.parametrize("refused", [False, True])
async def test_the_record_of_a_host_that_is_gone_is_dropped_and_its_machine_left_alone(
    play: Play, refused: bool
):
    await play.inspected()
    before = play.stage.powered_on()
    census = Others()
    census.guard.refuses = {Act.DELETE} if refused else set()
    # What is seen only once may be a host that is on its way.
    for _ in range(2):
        await play.stage.look_around(census)
    await until(lambda: census.guard.asked != [])
    assert census.guard.acts[0] is Act.DELETE
    assert not census.guard.asked[0][1].holds_instance
    if refused:
        assert isinstance(await play.backend.vitals(play.host), Vitals)
    else:
        async with asyncio.timeout(20):
            while isinstance(await play.backend.vitals(play.host), Vitals):  # noqa: ASYNC110 - nobody is told
                await asyncio.sleep(0.02)
    assert play.stage.powered_on() == before
    assert play.stage.done("power off") == play.stage.done("undeploy") == 0


async def test_the_record_of_a_machine_in_use_outlives_its_host(play: Play):
    """A host that is made again without its status would be inspected, were it not for the record."""
    await play.provisioned()
    census = Others()
    for _ in range(3):
        await play.stage.look_around(census)
    assert census.guard.asked == []
    assert isinstance(await play.backend.vitals(play.host), Vitals)
    assert play.stage.powered_on()
    assert play.stage.on_disk()
