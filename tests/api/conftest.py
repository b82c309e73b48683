"""A Kubernetes API to test against, known only by its kubeconfig.

By default that is the embedded server, started as a process of its own. With `INGOT_TEST_KUBECONFIG` it is whatever that
file points at; the kinds of Ingot are installed there first. Nothing in this folder knows which of the two it talks to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from kubernetes_api import Api, Kubectl, access_of, connected

from ingot.api.crd import all_crds


@pytest.fixture(scope="session")
def state_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ingot-api-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def kubeconfig(state_folder: Path) -> Iterator[Path]:
    if given := os.environ.get("INGOT_TEST_KUBECONFIG"):
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
    with (state_folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("api-server ready at https://"), (state_folder / "log").read_text()
        yield state_folder / "kubeconfig"
    finally:
        process.terminate()
        assert process.wait(20) == 0
        assert process.stdout is not None
        process.stdout.close()
        assert "Traceback" not in (state_folder / "log").read_text()


@pytest.fixture
async def api(kubeconfig: Path) -> AsyncIterator[Api]:
    """The API, and in it a namespace of this test's own."""
    namespace = f"t-{uuid.uuid4().hex[:10]}"
    async with connected(access_of(kubeconfig), namespace) as api:
        if os.environ.get("INGOT_TEST_KUBECONFIG"):
            for crd in all_crds():
                await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        made = await api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert made.code == 201, made.body
        yield api
        await api.delete(f"/api/v1/namespaces/{namespace}")


@pytest.fixture
def kubectl(api: Api, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    return Kubectl(program, kubeconfig, tmp_path_factory.getbasetemp(), api.namespace)


@pytest.fixture
async def reader(kubeconfig: Path, api: Api) -> AsyncIterator[Api]:
    """The same API, seen by the read-only identity."""
    path = kubeconfig.with_name("kubeconfig-readonly")
    if not path.exists():
        pytest.skip("this API has no read-only kubeconfig beside the other")
    async with connected(access_of(path), api.namespace) as found:
        yield found
