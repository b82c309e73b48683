"""Health and metrics, as a kubelet and a Prometheus ask for them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from ingot.kube.health import HealthServer
from ingot.trust import Certificate, Secret, ServingTls, client_context

TOKEN = {"Authorization": "Bearer open-sesame"}


class Part:
    """Something that is well, until it is not."""

    def __init__(self) -> None:
        self.trouble = ""


@pytest.fixture
def backend() -> Part:
    return Part()


@pytest.fixture
async def get(certificate: Certificate, backend: Part) -> AsyncIterator[Getter]:
    server = HealthServer(
        {"caches": lambda: "", "backend": lambda: backend.trouble},
        host="127.0.0.1",
        port=0,
        tls=ServingTls(lambda: certificate),
        token=Secret("open-sesame"),
    )
    connector = aiohttp.TCPConnector(ssl=client_context(certificate.ca_file))
    async with server, aiohttp.ClientSession(connector=connector) as session:
        yield Getter(session, f"https://127.0.0.1:{server.port}")


class Getter:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def __call__(self, path: str, **headers: str) -> tuple[int, str]:
        async with self._session.get(self._url + path, headers=headers) as response:
            return response.status, await response.text()


async def test_who_is_well_says_ok(get: Getter):
    for path in ("/livez", "/healthz", "/readyz", "/readyz/caches"):
        assert await get(path) == (200, "ok")


async def test_verbose_names_the_checks(get: Getter):
    assert await get("/readyz?verbose") == (
        200,
        "[+]ping ok\n[+]caches ok\n[+]backend ok\nreadyz check passed\n",
    )
    assert await get("/livez?verbose") == (200, "[+]ping ok\nlivez check passed\n")


async def test_who_is_not_ready_is_alive_all_the_same(get: Getter, backend: Part):
    backend.trouble = "Ironic at https://10.0.0.1 does not answer"
    assert await get("/livez") == (200, "ok")
    code, text = await get("/readyz")
    assert code == 500
    assert text == "[+]ping ok\n[+]caches ok\n[-]backend failed: reason withheld\nreadyz check failed\n"
    backend.trouble = ""
    assert await get("/readyz") == (200, "ok")


async def test_the_reason_is_for_who_has_the_token(get: Getter, backend: Part):
    backend.trouble = "Ironic at https://10.0.0.1 does not answer"
    _, text = await get("/readyz", **TOKEN)
    assert "[-]backend failed: Ironic at https://10.0.0.1 does not answer" in text


async def test_one_check_can_be_asked_alone(get: Getter, backend: Part):
    backend.trouble = "no"
    assert (await get("/readyz/backend"))[0] == 500
    assert (await get("/readyz/caches"))[0] == 200
    code, text = await get("/readyz/nothing")
    assert code == 404
    assert "ping, caches, backend" in text


async def test_a_check_can_be_left_out(get: Getter, backend: Part):
    backend.trouble = "no"
    assert await get("/readyz?exclude=backend") == (200, "ok")
    code, text = await get("/readyz?exclude=backend&exclude=ping&verbose")
    assert code == 200
    assert text == "[+]ping excluded: ok\n[+]caches ok\n[+]backend excluded: ok\nreadyz check passed\n"


@pytest.mark.parametrize(
    "header",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "open-sesame"}, {"Authorization": "Bearer ä"}],
)
async def test_metrics_are_for_who_has_the_token(get: Getter, header: dict[str, str]):
    code, text = await get("/metrics", **header)
    assert code == 401
    assert "controller_runtime" not in text


async def test_metrics_have_the_names_that_operators_share(get: Getter):
    code, text = await get("/metrics", **TOKEN)
    assert code == 200
    for name in (
        "controller_runtime_reconcile_total",
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_reconcile_time_seconds",
        "controller_runtime_active_workers",
        "controller_runtime_max_concurrent_reconciles",
        "workqueue_depth",
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_queue_duration_seconds",
        "leader_election_master_status",
        "rest_client_requests_total",
        "ingot_event_loop_lag_seconds",
        "process_resident_memory_bytes",
    ):
        assert f"# TYPE {name} " in text
    assert "_created" not in text


async def test_nothing_else_is_served(get: Getter):
    assert (await get("/"))[0] == 404
    assert (await get("/debug/pprof", **TOKEN))[0] == 404
