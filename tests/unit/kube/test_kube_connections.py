"""Pools of connections: replaced when who we are changes, and never closed under somebody's hands."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

import aiohttp
import pytest
from kube_scripted_api import WIDGET, ScriptedApi

from ingot.kube import Access, Client, Trust
from ingot.kube.connections import Connections
from ingot.kube.content import Given
from ingot.kube.errors import CredentialError
from ingot.kube.identity import ClientCertificate
from ingot.kube.tls import client_context
from ingot.trust import Authority, Secret


@pytest.fixture
def certificates(tmp_path: Path) -> Sequence[ClientCertificate]:
    authority = Authority(tmp_path / "ca")
    made = [authority.issue(tmp_path, name, [name]) for name in ("one", "two", "three")]
    return [
        ClientCertificate(pair.cert_file.read_bytes(), Secret(pair.key_file.read_text())) for pair in made
    ]


async def test_a_pool_is_not_closed_under_the_hands_of_who_waits_for_the_one_before(
    api: ScriptedApi, certificates: Sequence[ClientCertificate]
):
    connections = Connections(Access(server=api.url, trust=Trust(Given(api.authority))), user_agent="test")
    everybody_has_one = asyncio.Event()
    codes: list[int] = []

    async def ask(session: aiohttp.ClientSession) -> None:
        async with session.get(f"{api.url}/") as response:
            codes.append(response.status)

    async def be(certificate: ClientCertificate) -> None:
        async with connections.session(certificate) as session:
            await everybody_has_one.wait()
            await ask(session)

    async with connections.session(certificates[0]) as session:
        await ask(session)
    asking = [asyncio.create_task(be(certificate)) for certificate in certificates[1:]]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    everybody_has_one.set()
    await asyncio.gather(*asking)
    await connections.close()
    assert codes == [401, 401, 401]


def test_a_disk_without_space_is_a_credential_that_cannot_be_used(
    certificates: Sequence[ClientCertificate], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    with pytest.raises(CredentialError, match=r"the client certificate cannot be used: .*No such file"):
        client_context(Trust(), certificates[0])


async def test_a_command_that_leaves_its_watches_leaves_no_connection_open(api: ScriptedApi, tmp_path: Path):
    """Its event loop ends with it, and nobody is left who could wait for the farewell of the other side."""
    api.put("one", 1)
    kubeconfig = api.kubeconfig(tmp_path)

    async def look() -> None:
        async with Client.from_kubeconfig(kubeconfig) as client, AsyncExitStack() as watches:
            for _ in range(8):
                watch = client.watch(WIDGET, resource_version="0", seconds=30)
                await anext(await watches.enter_async_context(aclosing(watch)))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await asyncio.to_thread(asyncio.run, look())
        gc.collect()
    assert [str(one.message) for one in caught if one.category is ResourceWarning] == []
