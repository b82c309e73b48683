"""A Kubernetes API to test against, known only by its kubeconfig.

By default that is the embedded server, started as a process of its own. With `INGOT_TEST_KUBECONFIG` it is whatever that
file points at; the kinds of Ingot are installed there first. Nothing in this folder knows which of the two it talks to.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kubernetes_api import Api, Kubectl, access_of, built, connected, eventually

from ingot.api.crd import all_crds

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Server:
    """The embedded server that the tests talk to."""

    process: subprocess.Popen[str]
    log: Path


SERVER = pytest.StashKey[Server]()


@pytest.fixture(scope="session")
def state_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ingot-api-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def kubeconfig(state_folder: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    if given := os.environ.get("INGOT_TEST_KUBECONFIG"):
        asyncio.run(install_our_kinds(Path(given)))
        yield Path(given)
        return
    code = "from ingot.cli.main import main; main()"
    command = [
        sys.executable,
        "-c",
        code,
        "api-server",
        "--state",
        str(state_folder),
        "--listen",
        "127.0.0.1:0",
    ]
    log = state_folder / "log"
    # A crash of a library in C leaves its place in the log too.
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True, env=environment)
    request.config.stash[SERVER] = Server(process, log)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("api-server ready at https://"), log.read_text()
        yield state_folder / "kubeconfig"
        died = process.poll()
        assert died is None, f"the server had ended with {died} before it was told to:\n{log.read_text()}"
    finally:
        del request.config.stash[SERVER]
        process.terminate()
        ended = process.wait(20)
        assert process.stdout is not None
        process.stdout.close()
    assert ended == 0, f"the server ended with {ended}:\n{log.read_text()}"
    assert "Traceback" not in log.read_text(), log.read_text()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails because there is no server any more shows what the server said last, and how it ended."""
    report = yield
    server = item.config.stash.get(SERVER, None)
    if report.failed and server is not None and (code := server.process.poll()) is not None:
        last = server.log.read_text()[-20_000:]
        report.sections.append((f"the API server is gone: it ended with {code}", last))
    return report


async def install_our_kinds(kubeconfig: Path) -> None:
    """Put the kinds of this checkout there, also in place of those of another."""
    async with connected(access_of(kubeconfig), "default") as api:
        for crd in all_crds():
            place = f"{CRDS}/{crd['metadata']['name']}"
            made = await api.post(CRDS, crd)
            if made.code == 409:
                made = await api.patch(place, {"spec": crd["spec"]})
            assert made.code in (200, 201), made.body

            async def is_served(place: str = place) -> bool:
                conditions = (await api.get(place)).body["status"].get("conditions", ())
                return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

            await eventually(is_served)


@pytest.fixture
async def api(kubeconfig: Path) -> AsyncIterator[Api]:
    """The API, and in it a namespace of this test's own."""
    namespace = f"t-{uuid.uuid4().hex[:10]}"
    async with connected(access_of(kubeconfig), namespace) as api:
        made = await api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert made.code == 201, made.body
        yield api
        # What is in it goes in its own time; the next test has another. Where the whole cluster goes in the end, nothing need go
        # before: emptying a namespace takes a real one some two hundred requests.
        if "INGOT_TEST_THROWAWAY" not in os.environ:
            await api.delete(f"/api/v1/namespaces/{namespace}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests of kubectl run with the one that is installed and with the one that was built, where there are two."""
    if "kubectl_program" in metafunc.fixturenames:
        installed = shutil.which("kubectl")
        found = {"installed": Path(installed) if installed else None, "built": built("kubectl")}
        known = {path.resolve(): name for name, path in reversed(found.items()) if path is not None}
        metafunc.parametrize(
            "kubectl_program", list(known) or [None], ids=list(known.values()) or ["missing"], scope="session"
        )


@pytest.fixture
def kubectl(
    api: Api, kubeconfig: Path, kubectl_program: Path | None, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    if kubectl_program is None:
        pytest.skip("kubectl is not installed")
    # What kubectl remembers of an API lives in its home; kinds that another test defined and deleted must not be in it.
    home = tmp_path_factory.mktemp("kubectl-home")
    return Kubectl(str(kubectl_program), kubeconfig, home, api.namespace)


@pytest.fixture
async def reader(kubeconfig: Path, api: Api) -> AsyncIterator[Api]:
    """The same API, seen by the read-only identity."""
    path = kubeconfig.with_name("kubeconfig-readonly")
    if not path.exists():
        pytest.skip("this API has no read-only kubeconfig beside the other")
    async with connected(access_of(path), api.namespace) as found:
        yield found
