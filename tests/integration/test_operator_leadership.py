"""`ingot operator --leader-elect` on the embedded API: what becomes of a process that loses the Lease."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ingot.api.core import LEASES
from ingot.api.meta import Key
from ingot.embedded.server import Running, serve
from ingot.kube import Client
from ingot.trust import Authority

LEASE = Key("default", "baremetal-operator")
LOST = 75
PATIENCE = 120

BUSY = """
import asyncio, sys, time
from ingot.api.meta import Key
from ingot.cli.parts.electing import Election
from ingot.kube import Timing

async def contend():
    timing = Timing(duration=5, renew_deadline=3.5, retry=0.2)
    async with Election(Key("default", "baremetal-operator"), timing).elector() as elector:
        elector.contend()
        await elector.leadership.acquired()
        print("leads", flush=True)
        time.sleep(3600)

asyncio.run(contend())
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serve(tmp_path / "api-state") as running:
        yield running


@pytest.fixture
def environment(server: Running, tmp_path: Path) -> Mapping[str, str]:
    """Complete settings for an Ironic that is not there."""
    auth = tmp_path / "auth/ironic"
    auth.mkdir(parents=True)
    (auth / "username").write_text("ingot")
    (auth / "password").write_text("nobody asks for it")
    return {
        "PATH": os.environ["PATH"],
        "INGOT_STATE": str(tmp_path / "state"),
        "KUBECONFIG": str(server.kubeconfig),
        "IRONIC_ENDPOINT": "https://127.0.0.1:1/v1",
        "IRONIC_CACERT_FILE": str(Authority(tmp_path / "state/ca").ca_file),
        "METAL3_AUTH_ROOT_DIR": str(tmp_path / "auth"),
    }


@asynccontextmanager
async def running(environment: Mapping[str, str], *command: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=PIPE, stderr=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def says(process: Process, line: bytes) -> None:
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        while not (said := await process.stdout.readline()).startswith(line):
            assert said, "it ended without saying it"


async def take_away(server: Running) -> None:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        await client.patch(LEASES, LEASE, {"spec": {"holderIdentity": "somebody"}})


async def test_an_operator_whose_lease_is_taken_ends_with_a_code_and_a_sentence(
    server: Running, environment: Mapping[str, str]
):
    ingot = str(Path(sys.executable).with_name("ingot"))
    async with running(environment, ingot, "operator", "--leader-elect", "--retry-period-seconds=0.2") as one:
        await says(one, b"operator ready")
        await take_away(server)
        async with asyncio.timeout(PATIENCE):
            _, said = await one.communicate()
        assert one.returncode == LOST
        assert (
            b"Error: Lease default/baremetal-operator: the Lease is held by somebody: somebody took it away. "
            b"All work has stopped; started again, this process contends anew." in said
        )
        assert b"Traceback" not in said


async def test_a_process_that_is_too_busy_to_stop_is_stopped(server: Running, environment: Mapping[str, str]):
    async with running(environment, sys.executable, "-c", BUSY) as one:
        await says(one, b"leads")
        await take_away(server)
        async with asyncio.timeout(PATIENCE):
            await one.communicate()
        assert one.returncode == LOST
