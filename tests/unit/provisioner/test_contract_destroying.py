"""What every back end promises before it destroys: it asks, with what it sees at the machine, and obeys."""

from __future__ import annotations

import asyncio

import pytest
from contract import Play
from ironic_orders import ORDER

from ingot.provisioner import (
    Act,
    Busy,
    FirmwareChange,
    Inspection,
    NotRegistered,
    Power,
    PowerOffMode,
    Preparation,
    Service,
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
