"""What every back end promises before it destroys: it asks, with what it sees at the machine, and obeys."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from contract import OTHER_ORDER, Play
from ironic_orders import ORDER

from ingot.provisioner import (
    Act,
    Busy,
    Failed,
    FirmwareChange,
    Inspection,
    NotRegistered,
    Power,
    PowerOffMode,
    Preparation,
    Ready,
    Refusal,
    Service,
    Sight,
)


@pytest.mark.parametrize(
    ("act", "verb"),
    [
        (Act.POWER_OFF, "inspect"),
        (Act.CLEAN, "prepare"),
        (Act.DEPLOY, "provision"),
        (Act.UNDEPLOY, "deprovision"),
        (Act.SERVICE, "service"),
        (Act.POWER_OFF, "power"),
        (Act.DETACH, "detach"),
        (Act.DELETE, "delete"),
    ],
)
async def test_who_may_destroy_is_asked_before_and_obeyed(play: Play, act: Act, verb: str):
    if verb in ("inspect", "prepare", "provision"):
        await play.inspected()
    else:
        await play.provisioned()
    done = {
        deed: play.stage.done(deed)
        for deed in ("inspect", "prepare", "deploy", "undeploy", "service", "power off")
    }
    play.permit.refuses.add(act)
    host, permit = play.host, play.permit
    backend = play.backend
    change = FirmwareChange(settings={"QuietBoot": "false"})
    match verb:
        case "inspect":
            answer = await backend.inspect(host, Inspection(renewal="new"), permit=permit, again=False)
        case "prepare":
            answer = await backend.prepare(
                host, Preparation(name="x", firmware=change), permit=permit, again=False
            )
        case "provision":
            # Cleaning comes first in some back ends, and is permitted.
            answer = await backend.provision(host, ORDER, permit=permit, again=False)
            while act not in permit.acts:
                # An answer from memory lets nobody else run.
                await asyncio.sleep(0.005)
                answer = await backend.provision(host, ORDER, permit=permit, again=False)
        case "deprovision":
            answer = await backend.deprovision(host, automated_cleaning=True, permit=permit, again=False)
        case "service":
            answer = await backend.service(
                host, Service(name="x", firmware=change), permit=permit, again=False
            )
        case "power":
            answer = await play.backend.set_power(
                host, Power.OFF, mode=PowerOffMode.HARD, permit=permit, again=False
            )
        case "detach":
            answer = await backend.detach(host, force=False, permit=permit)
        case _:
            answer = await backend.delete(host, permit=permit)
    assert isinstance(answer, Busy)
    assert answer.why == f"nobody asked for {act.value}"
    asked, sight = permit.asked[-1]
    assert asked is act
    assert sight.backend_id == play.id
    assert sight.state
    assert sight.holds_instance is (verb not in ("inspect", "prepare", "provision"))
    assert sight.powered_on is True
    assert {deed: play.stage.done(deed) for deed in done} == done
    assert play.stage.powered_on()
    assert not isinstance(await backend.vitals(host), NotRegistered)


async def test_a_system_that_runs_makes_way_for_no_other_before_a_person_has_said_so(play: Play):
    await play.provisioned()
    for again in (False, True):
        answer = await play.provision(OTHER_ORDER, again=again)
        assert isinstance(answer, Failed)
        assert answer.needs_person
        assert "ingot host detach --force" in answer.message
    assert play.permit.acts == []
    assert play.stage.on_disk() == ORDER.image.url
    assert play.stage.powered_on()


async def test_who_may_destroy_is_told_for_which_provisioning_the_system_was_deployed(play: Play):
    await play.inspected()
    for name in ("first", "second"):
        # The second finds done what it asks for, and it counts as its own.
        assert await play.provision(replace(ORDER, name=name)) == Ready(None)
        await play.stage.all_told()
        asked: list[Sight] = []

        async def refuses(act: Act, sight: Sight, asked: list[Sight] = asked) -> Refusal:
            asked.append(sight)
            return Refusal("it is somebody's", needs_person=True)

        answer = await play.backend.deprovision(
            play.host, automated_cleaning=True, permit=refuses, again=False
        )
        assert answer == Failed("it is somebody's", needs_person=True)
        assert [sight.deployed_for for sight in asked] == [name]
    assert play.stage.done("undeploy") == 0


async def test_a_system_that_is_taken_over_is_known_by_what_its_host_says(play: Play):
    await play.provisioned()
    await play.stage.lose_memory()
    await play.registered()
    taken = await play.to_end(
        lambda: play.backend.adopt(
            play.host, ORDER.image, permit=play.permit, again=False, provisioning="first"
        )
    )
    assert taken == Ready(None)
    await play.stage.all_told()
    play.permit.refuses.add(Act.UNDEPLOY)
    await play.backend.deprovision(play.host, automated_cleaning=True, permit=play.permit, again=False)
    assert [sight.deployed_for for _, sight in play.permit.asked] == ["first"]
