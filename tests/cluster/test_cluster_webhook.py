"""`ingot operator` on a real kube-apiserver: one leads and others stand by, and its webhook is asked.

Each operator looks after a namespace of its own, so nobody else on the cluster is affected.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ingot.api.baremetalhost import BARE_METAL_HOSTS
from ingot.api.core import LEASES, NAMESPACES
from ingot.api.hostnetworkattachment import HOST_NETWORK_ATTACHMENTS
from ingot.api.meta import Key
from ingot.kube import ApiError, Client, Invalid, NotFound, Unavailable
from ingot.kube.admission.registration import CONFIGURATIONS
from ingot.trust import Authority, client_context

PATIENCE = 120
INGOT = Path(sys.executable).with_name("ingot")
QUICK = ("--lease-duration-seconds=5", "--renew-deadline-seconds=3.5", "--retry-period-seconds=0.4")


@pytest.fixture
def kubeconfig() -> str:
    path = os.environ.get("INGOT_TEST_KUBECONFIG")
    if not path:
        pytest.skip("needs a real cluster: make test-cluster")
    return path


@pytest.fixture
async def client(kubeconfig: str) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(kubeconfig) as made:
        yield made


@pytest.fixture
async def namespace(client: Client) -> AsyncIterator[str]:
    name = f"webhook-{secrets.token_hex(4)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    with suppress(NotFound):
        await client.delete(CONFIGURATIONS, Key("", f"ingot-{name}"))
    for host in (await client.list(BARE_METAL_HOSTS, namespace=name)).items:
        await client.patch(BARE_METAL_HOSTS, host.key, {"metadata": {"finalizers": None}})
    await client.delete(NAMESPACES, Key("", name))


@dataclass
class Operator:
    """A process, and where it says how it is."""

    process: Process
    health: str
    ca_file: Path
    token: str

    async def get(self, path: str) -> tuple[int, str]:
        connector = aiohttp.TCPConnector(ssl=client_context(self.ca_file))
        headers = {"Authorization": f"Bearer {self.token}"}
        async with (
            aiohttp.ClientSession(connector=connector, headers=headers) as session,
            session.get(self.health + path) as response,
        ):
            return response.status, await response.text()


@asynccontextmanager
async def operator(kubeconfig: str, namespace: str, folder: Path) -> AsyncIterator[Operator]:
    state = folder / "state"
    ca_file = Authority(state / "ca").ca_file
    auth = folder / "auth/ironic"
    auth.mkdir(parents=True)
    (auth / "username").write_text("ingot")
    (auth / "password").write_text("nobody asks for it")
    environment = {
        "PATH": os.environ["PATH"],
        "INGOT_STATE": str(state),
        "KUBECONFIG": kubeconfig,
        "WATCH_NAMESPACE": namespace,
        "IRONIC_ENDPOINT": "https://127.0.0.1:1/v1",
        "IRONIC_CACERT_FILE": str(ca_file),
        "METAL3_AUTH_ROOT_DIR": str(folder / "auth"),
    }
    process = await asyncio.create_subprocess_exec(
        *(str(INGOT), "operator", "--leader-elect", *QUICK),
        *("--webhook-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"),
        env=environment,
        stdout=PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while not (found := re.search(rb"health .* port (\d+)", await process.stdout.readline())):
                assert process.returncode is None
        yield Operator(
            process,
            f"https://127.0.0.1:{int(found[1])}",
            ca_file,
            (state / "operator/metrics-token").read_text(),
        )
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def eventually(condition: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110 - what happens in another process has no event
            await asyncio.sleep(0.1)


def host(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"online": True, **spec}}


async def leader(client: Client, namespace: str) -> str:
    try:
        return (await client.get(LEASES, Key(namespace, "baremetal-operator"))).spec.holder_identity
    except NotFound:
        return ""


async def leads(one: Operator) -> bool:
    _, text = await one.get("/metrics")
    return 'leader_election_master_status{name="baremetal-operator"} 1.0' in text


async def registered(one: Operator) -> bool:
    _, text = await one.get("/readyz?verbose")
    return "[+]webhook ok" in text and await leads(one)


async def is_asked(client: Client, namespace: str) -> bool:
    """The API follows its own configuration a moment later: until then it asks nobody, or trusts who was there before."""
    try:
        await client.create(
            BARE_METAL_HOSTS,
            host(namespace, f"probe-{secrets.token_hex(4)}", disablePowerOff=True, online=False),
        )
    except Invalid:
        return True
    except Unavailable:
        pass
    return False


async def refusal(attempt: Awaitable[Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await attempt
    return caught.value


async def test_the_api_asks_the_operator_and_says_what_it_answers(
    kubeconfig: str, client: Client, namespace: str, tmp_path: Path
):
    async with operator(kubeconfig, namespace, tmp_path) as one:
        await eventually(lambda: registered(one))
        await eventually(lambda: is_asked(client, namespace))

        wrong = host(namespace, "wrong", bmc={"address": "carrier-pigeon://roof", "credentialsName": "s"})
        said = await refusal(client.create(BARE_METAL_HOSTS, wrong))
        assert isinstance(said, Invalid)
        assert said.message.startswith(
            'admission webhook "baremetalhost.metal3.io" denied the request: '
            'BareMetalHost.metal3.io "wrong" is invalid: spec.bmc.address: '
        )

        key = Key(namespace, "right")
        attachment = {
            "metadata": {"name": "access", "namespace": namespace},
            "spec": {"mode": "access", "nativeVLAN": 3},
        }
        await client.create(HOST_NETWORK_ATTACHMENTS, attachment)
        interface = {"name": "eth0", "hostNetworkAttachment": {"name": "access"}}
        await client.create(BARE_METAL_HOSTS, host(namespace, "right", networkInterfaces=[interface]))
        said = await refusal(
            client.patch(BARE_METAL_HOSTS, key, {"metadata": {"annotations": {"reboot.metal3.io": "{"}}})
        )
        assert "annotations" in said.message

        async def in_use() -> bool:
            # The webhook looks at its cache, which follows a moment later.
            try:
                await client.delete(HOST_NETWORK_ATTACHMENTS, Key(namespace, "access"))
            except Invalid as error:
                return "right[eth0]" in error.message
            await client.create(HOST_NETWORK_ATTACHMENTS, attachment)
            return False

        await eventually(in_use)

        # Nobody answers any more: what the rules have no say in goes on, the rest is refused until somebody does.
        one.process.send_signal(signal.SIGKILL)
        await one.process.wait()
        await client.patch(BARE_METAL_HOSTS, key, {"metadata": {"labels": {"rack": "3"}}})
        await client.patch(BARE_METAL_HOSTS, key, {"metadata": {"finalizers": None}})
        await client.patch(BARE_METAL_HOSTS, key, {"status": {"errorCount": 1}}, subresource="status")
        said = await refusal(client.patch(BARE_METAL_HOSTS, key, {"spec": {"online": False}}))
        assert isinstance(said, Unavailable)
        assert 'failed calling webhook "baremetalhost.metal3.io"' in said.message
        await client.delete(BARE_METAL_HOSTS, key)


async def test_a_standby_takes_over_with_its_own_certificate_when_the_leader_is_killed(
    kubeconfig: str, client: Client, namespace: str, tmp_path: Path
):
    async with operator(kubeconfig, namespace, tmp_path / "one") as one:
        await eventually(lambda: registered(one))
        first = await leader(client, namespace)
        async with operator(kubeconfig, namespace, tmp_path / "two") as two:

            async def stands_by() -> bool:
                _, text = await two.get("/readyz?verbose")
                return "[+]caches ok" in text and "[+]leadership ok" in text

            await eventually(stands_by)
            assert not await leads(two)
            one.process.kill()
            await eventually(lambda: registered(two))
            lease = await client.get(LEASES, Key(namespace, "baremetal-operator"))
            assert lease.spec.holder_identity not in ("", first)
            assert lease.spec.lease_transitions == 1
            # Its authority is another one, and the API has been told.
            await eventually(lambda: is_asked(client, namespace))

            two.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                assert await two.process.wait() == 0
            assert await leader(client, namespace) == ""
