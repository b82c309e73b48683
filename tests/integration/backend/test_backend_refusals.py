"""What a BMC or an agent refuses is told so that a person knows what to mend."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backend.world import Bench, World
from ingot.api.baremetalhost import Image
from ingot.lab.client import Lab
from ingot.lab.faults import Faults
from ingot.provisioner import Failed, Ready

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_wrong_password_is_told_and_the_right_one_goes_on(world: World, lab: Lab):
    bench = Bench(world, lab)
    told = await bench.register(password="certainly-wrong")
    assert isinstance(told, Failed)
    assert told.refused_credentials
    assert "refused the user name or password (HTTP 401)" in told.message
    assert f"{bench.plate.host}:{bench.plate.bmc_port}" in told.message
    assert "certainly-wrong" not in told.message
    assert isinstance(await bench.register(), Ready)

    # The password is changed while the host is under management.
    await lab.set_password(bench.plate.name, "rotated-password")
    refused = await bench.register(password="certainly-wrong")
    assert isinstance(refused, Failed)
    assert refused.refused_credentials
    actions = (await bench.server()).power_actions
    assert isinstance(await bench.register(password="rotated-password"), Ready)
    assert (await bench.server()).power_actions == actions


async def test_a_bmc_that_is_down_is_told_as_such(world: World, lab: Lab):
    bench = Bench(world, lab)
    await lab.set_faults(bench.plate.name, Faults(bmc_down=True))
    told = await bench.register()
    assert isinstance(told, Failed)
    assert not told.refused_credentials
    assert "does not answer" in told.message
    await lab.set_faults(bench.plate.name, Faults())


async def test_an_image_that_does_not_match_its_checksum_is_told_with_the_agents_words(
    world: World, lab: Lab
):
    bench = Bench(world, lab)
    await bench.register()
    told = await bench.provision(bench.order(checksum="0" * 64))
    assert isinstance(told, Failed)
    assert "the image does not match its checksum" in told.message
    assert (await bench.server()).running is None

    missing = bench.order()
    assert await bench.deprovision(cleaning=False) == Ready(None)
    gone = Image(url=missing.image.url + "-gone", checksum="0" * 64, checksum_type="sha256", format="raw")
    told = await bench.provision(replace(missing, image=gone))
    assert isinstance(told, Failed)
    assert "its URL answers HTTP 404" in told.message
    assert await bench.deprovision(cleaning=False) == Ready(None)
