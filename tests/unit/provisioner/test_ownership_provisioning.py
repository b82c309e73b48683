"""The provisioning image belongs to the release: nothing that the user of a host can write chooses it.

Every attempt is made against everything there is between a user and Ironic: the API with its rules, the controllers of hosts and
of ramdisks, and the back end. What counts is what Ironic was told, at any time.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from ownership_attempts import IMAGE, ISO, Attempt, a_live_image, an_image_in_the_virtual_drive, attempts
from ownership_site import BOOTS, EVIL, SOURCE, WAYS, Hand, Site, Told, Way, site

from ingot.api.baremetalhost import Annotation, BareMetalHost


@pytest.mark.parametrize("way", WAYS)
async def test_nobody_but_the_release_says_what_a_machine_boots(tmp_path: Path, way: Way) -> None:
    async with site(tmp_path, way) as here:
        # How the spec is read does not depend on what is booted.
        tried = attempts(every_text=way == "own ISO")
        hands = {name: await here.hand() for name in tried}

        async def make(name: str) -> tuple[str, BareMetalHost | None]:
            await tried[name](hands[name])
            return name, await hands[name].settled()

        ended = dict(await asyncio.gather(*(make(name) for name in tried)))
        wrong = [
            f"{name}: {problem}"
            for name in tried
            for told in here.conductor.told[hands[name].namespace]
            for problem in told.problems(way)
        ]
        assert not wrong, "\n".join(sorted(set(wrong)))
        for name, host in ended.items():
            assert host is not None or hands[name].refused, name
            assert EVIL not in str(host.status.ramdisk if host is not None else ""), name
        # Most of this is taken, and means nothing: so the machines did boot something.
        booted = [
            name for name in tried if any(told.boots for told in here.conductor.told[hands[name].namespace])
        ]
        assert len(booted) > len(tried) / 3, sorted(set(tried) - set(booted))


@pytest.mark.parametrize("way", WAYS)
async def test_what_the_release_says_does_reach_ironic(tmp_path: Path, way: Way) -> None:
    """Without this, the other test could not fail."""
    async with site(tmp_path, way) as here:
        last = await told_last(here, Hand.host)
        assert last.boots.keys() == BOOTS[way]
        assert all(SOURCE in value for value in last.boots.values()), last.boots


async def test_a_live_image_is_the_target_and_no_ramdisk(tmp_path: Path) -> None:
    async with site(tmp_path, "usual ISO") as here:
        last = await told_last(here, a_live_image)
        assert last.instance_info["boot_iso"] == ISO
        assert last.boots == {"deploy_iso": f"{SOURCE}/usual.iso"}


async def test_an_image_in_the_virtual_drive_is_no_ramdisk_either(tmp_path: Path) -> None:
    async with site(tmp_path, "usual ISO") as here:
        last = await told_last(here, an_image_in_the_virtual_drive)
        assert last.boots == {"deploy_iso": f"{SOURCE}/usual.iso"}


@pytest.mark.parametrize("state", ["available", "provisioned"])
async def test_a_status_that_is_taken_over_does_not_lead_to_the_machine_of_another(
    tmp_path: Path, state: str
) -> None:
    async with site(tmp_path, "usual ISO") as here:
        victim, thief = await here.hand(), await here.hand()
        await victim.host()
        host = await victim.settled()
        assert host is not None
        before = here.ironic.node(host.status.provisioning.id)
        kept = before["name"], before["driver_info"]["redfish_address"], before["extra"]
        status = {
            "provisioning": {
                "state": state,
                "ID": before["uuid"],
                "image": IMAGE if state == "provisioned" else {},
            },
            "operationalStatus": "OK",
            "errorCount": 0,
            "errorMessage": "",
            "poweredOn": False,
        }
        image = {"image": IMAGE} if state == "provisioned" else {}
        await thief.host(annotations={Annotation.STATUS: json.dumps(status)}, **image)
        other = await thief.until(lambda host: bool(host.status.provisioning.id))
        assert other.status.provisioning.id != before["uuid"]
        after = here.ironic.node(before["uuid"])
        assert (after["name"], after["driver_info"]["redfish_address"], after["extra"]) == kept


async def told_last(here: Site, attempt: Attempt) -> Told:
    """What Ironic knows of the host when nothing is left to do."""
    hand = await here.hand()
    await attempt(hand)
    host = await hand.settled()
    assert host is not None
    assert not host.status.error_message
    return here.conductor.told[hand.namespace][-1]
