"""The control plane that the other tests run on: it works, and it leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from control_plane import PATIENCE, PROGRAMS, NotBuilt, programs

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def is_built() -> None:
    try:
        programs()
    except NotBuilt as missing:
        pytest.skip(str(missing))


def until(so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not so():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.1)


def running(folder: Path) -> list[str]:
    """The programs of the control plane in this folder that live."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode().split("\0")
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue  # it went while we looked
        if Path(words[0]).name in PROGRAMS and str(folder) in " ".join(words) and state != "Z":
            found.append(Path(words[0]).name)
    return found


def test_a_command_runs_with_a_cluster_around_it_and_its_exit_code_counts(tmp_path: Path) -> None:
    script = 'test -s "$INGOT_TEST_KUBECONFIG" && "$0" --kubeconfig "$KUBECONFIG" get crd -o name && exit 7'
    command = ["sh", "-c", script, str(programs() / "kubectl")]
    done = subprocess.run(
        [sys.executable, HERE, "--folder", tmp_path, *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stdout + done.stderr
    assert "customresourcedefinition.apiextensions.k8s.io/baremetalhosts.metal3.io" in done.stdout
    assert running(tmp_path) == []


def test_when_whoever_started_it_is_killed_nothing_is_left(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, HERE, "--folder", tmp_path], stdout=subprocess.PIPE) as starter:
        try:
            assert starter.stdout is not None
            assert b"is ready after" in starter.stdout.readline()
            assert sorted(running(tmp_path)) == sorted(PROGRAMS)
        finally:
            starter.kill()
    until(lambda: running(tmp_path) == [])


@pytest.fixture
def kubectl() -> Callable[..., str]:
    if "INGOT_TEST_KUBECONFIG" not in os.environ:
        pytest.skip("needs a real cluster: make test-cluster")

    def run(*words: str, stdin: str = "") -> str:
        command = [programs() / "kubectl", "--kubeconfig", os.environ["INGOT_TEST_KUBECONFIG"], *words]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout

    return run


def test_a_deployment_becomes_pods_that_are_placed_on_a_node(kubectl: Callable[..., str]) -> None:
    name = f"t-{uuid.uuid4().hex[:10]}"
    # Tolerated by nobody else, so that no other test's pods are placed here.
    taint = {"key": name, "effect": "NoSchedule"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": [taint]},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    pod = {
        "nodeSelector": {"kubernetes.io/hostname": name},
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "c", "image": "none"}],
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": pod},
        },
    }
    kubectl("create", "namespace", name)
    try:
        kubectl("create", "-f", "-", stdin=json.dumps(node))
        # Made by a controller; a pod that comes before it is refused.
        kubectl("wait", "-n", name, "--for=create", "serviceaccount/default", "--timeout=60s")
        kubectl("apply", "-n", name, "-f", "-", stdin=json.dumps(deployment))
        query = ("get", "pods", "-n", name, "-o", "jsonpath={.items[*].spec.nodeName}")
        until(lambda: kubectl(*query).split() == [name, name])
    finally:
        kubectl("delete", "namespace", name, "--wait=false")
        kubectl("delete", "node", name, "--ignore-not-found")
