"""What the API refuses, by whatever code, is told where people look: on the Machine, on the claim, on the host.

A real webhook, of somebody who knows nothing of us, says no. A quota and a namespace that goes say it
in the same way, with a 403.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import claims_room
import pytest
import pytest_asyncio
from machine_site import Room
from refusing_webhook import WORDS, refusing

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.hostclaim import HOST_CLAIMS
from ingot.api.machine import MACHINES
from ingot.embedded.server import Running
from ingot.kube import Again

pytestmark = pytest.mark.asyncio(loop_scope="module")

CODES = [None, 403]
"""Webhooks that name no code deny with a 400."""


@pytest_asyncio.fixture(loop_scope="module")
async def tenants(machine_api: Running) -> AsyncIterator[claims_room.Room]:
    async with claims_room.opened(machine_api) as room:
        yield room


def hosts_of(namespace: str, code: int | None) -> dict[str, Any]:
    return {"resource": "baremetalhosts", "group": "metal3.io", "namespace": namespace, "code": code}


def secrets_of(namespace: str, code: int | None) -> dict[str, Any]:
    return {"resource": "secrets", "group": "", "namespace": namespace, "code": code}


# Machines


@pytest.mark.parametrize("code", CODES)
async def test_a_machine_says_who_refused_its_host_and_asks_again(
    room: Room, tmp_path: Path, code: int | None
) -> None:
    host, key = await room.host(), await room.machine()
    async with (
        refusing(room.client, tmp_path, **hosts_of(room.namespace, code)) as judge,
        room.operator(works=False) as operator,
    ):
        again = await operator.once(key)
        assert isinstance(again, Again)
        assert again.after > 60
        machine = await room.get(key)
        assert (machine.status.phase, machine.status.error_reason) == ("Failed", "InvalidConfiguration")
        assert machine.status.error_message.startswith(f"BareMetalHost {host} cannot have what")
        assert WORDS in machine.status.error_message
        assert WORDS in await room.until_event("InvalidConfiguration")
        judge.denies = False
        await operator.once(key)
    assert (await room.until_claimed(key)).status.error_message == ""
    assert await room.hosts_of("m1") == ["h1"]


@pytest.mark.parametrize("code", CODES)
async def test_a_machine_whose_host_cannot_be_told_again_says_so_and_asks_again(
    room: Room, tmp_path: Path, code: int | None
) -> None:
    host = await room.host()
    async with room.operator():
        key = await room.machine()
        await room.until(key, lambda machine: machine.status.phase == "Provisioning")
    await room.client.patch(BARE_METAL_HOSTS, host, {"spec": {"image": None}})
    async with (
        refusing(room.client, tmp_path, **hosts_of(room.namespace, code)) as judge,
        room.operator(works=False) as operator,
    ):
        assert isinstance(await operator.once(key), Again)
        assert WORDS in (await room.get(key)).status.error_message
        judge.denies = False
        await operator.once(key)
    assert (await room.get_host(host)).spec.image is not None
    assert (await room.get(key)).status.error_message == ""


@pytest.mark.parametrize("code", CODES)
async def test_a_machine_that_cannot_give_its_host_back_says_why(
    room: Room, tmp_path: Path, code: int | None
) -> None:
    await room.host()
    async with room.operator():
        key = await room.machine()
        await room.until(key, lambda machine: machine.status.phase == "Provisioning")
    await room.client.delete(MACHINES, key)
    async with (
        refusing(room.client, tmp_path, **hosts_of(room.namespace, code)) as judge,
        room.operator(works=False) as operator,
    ):
        assert isinstance(await operator.once(key), Again)
        assert WORDS in await room.until_event("HostNotEmptied")
        judge.denies = False
        await operator.once(key)
        await room.until_gone(MACHINES, key)


# Claims


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("what", [hosts_of, secrets_of])
async def test_a_claim_says_that_its_host_was_refused_and_its_host_says_why(
    tenants: claims_room.Room, tmp_path: Path, what: Any, code: int | None
) -> None:
    await tenants.policy()
    await tenants.host()
    await tenants.secret("words", userData="#cloud-config")
    claim = await tenants.claim(userData={"name": "words"})
    async with (
        refusing(tenants.client, tmp_path, **what(tenants.racks, code)) as judge,
        tenants.operator(works=False) as operator,
    ):
        assert isinstance(await operator.once(claim), Again)
        found = await tenants.until_told(claim, "Synchronized", "False", "does not take what the claim asks")
        assert found.reason == "BareMetalHostNotSynchronized"
        # What is said of the hosts' namespace is not for tenants.
        assert WORDS not in found.message
        assert WORDS in await tenants.until_event(tenants.racks, "ClaimRefused")
        judge.denies = False
        await operator.once(claim)
        await tenants.until_told(claim, "Synchronized", "True")
    assert await tenants.hosts_of(claim) == ["h1"]


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("change", [{"image": claims_room.OTHER_IMAGE}, {"image": {"url": "https://x"}}])
async def test_a_claim_whose_change_is_refused_says_so(
    tenants: claims_room.Room, tmp_path: Path, change: dict[str, Any], code: int | None
) -> None:
    """One that can be carried out, and one that cannot and only switches the host off."""
    await tenants.policy()
    host = await tenants.host()
    async with tenants.operator():
        claim = await tenants.claim()
        await tenants.until_told(claim, "Synchronized", "True")
    await tenants.client.patch(BARE_METAL_HOSTS, host, {"spec": {"online": False}})
    await tenants.edit(claim, **change)
    async with (
        refusing(tenants.client, tmp_path, **hosts_of(tenants.racks, code)),
        tenants.operator(works=False) as operator,
    ):
        assert isinstance(await operator.once(claim), Again)
        await tenants.until_told(claim, "Synchronized", "False", "does not take what the claim asks")
        assert WORDS in await tenants.until_event(tenants.racks, "ClaimRefused")


async def test_a_claim_whose_hardware_cannot_be_told_has_its_host_all_the_same(
    tenants: claims_room.Room, tmp_path: Path
) -> None:
    await tenants.policy()
    await tenants.host()
    refused = {"resource": "hardwaredata", "group": "metal3.io", "namespace": tenants.tenant, "code": 403}
    async with refusing(tenants.client, tmp_path, **refused), tenants.operator():
        claim = await tenants.claim()
        await tenants.until_told(claim, "Synchronized", "True")
        assert WORDS in await tenants.until_event(tenants.tenant, "HardwareDataRefused")
    assert (await tenants.get(claim)).status.hardware_data is None


@pytest.mark.parametrize("code", CODES)
async def test_a_claim_that_cannot_give_its_host_back_says_so(
    tenants: claims_room.Room, tmp_path: Path, code: int | None
) -> None:
    await tenants.policy()
    host = await tenants.host()
    async with tenants.operator():
        claim = await tenants.claim()
        await tenants.until_told(claim, "Synchronized", "True")
    await tenants.client.delete(HOST_CLAIMS, claim)
    async with (
        refusing(tenants.client, tmp_path, **hosts_of(tenants.racks, code)) as judge,
        tenants.operator(works=False) as operator,
    ):
        assert isinstance(await operator.once(claim), Again)
        found = await tenants.until_told(claim, "Synchronized", "False", "Whoever runs the hosts has to look")
        assert found.reason == "HostClaimDeleting"
        assert WORDS in await tenants.until_event(tenants.racks, "ClaimRefused")
        judge.denies = False
        await operator.once(claim)
    assert (await tenants.get_host(host)).spec.consumer_ref is None
