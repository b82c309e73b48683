from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from kube_scripted_api import ScriptedApi

from ingot.kube import Client
from ingot.trust import Authority, Certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    folder = tmp_path_factory.mktemp("kube-tls")
    return Authority(folder / "ca").issue(folder, "api", ["127.0.0.1", "localhost"])


@pytest.fixture
async def api(certificate: Certificate) -> AsyncIterator[ScriptedApi]:
    served = ScriptedApi(certificate)
    await served.start()
    yield served
    await served.stop()


@pytest.fixture
async def client(api: ScriptedApi, tmp_path: Path) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(api.kubeconfig(tmp_path)) as made:
        yield made


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    async def wait(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            # What is waited for happens in other tasks and has no event of its own.
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    return wait
