"""A hall of demo machines: a namespace on some API, operators that drive the machines, and what a user does there.

Knows a kubeconfig, `kubectl` and `ingot`, each as a process, and nothing of what is behind the API. The books are the machines'
own: the demo back end writes down what was really done to a machine, so a test can tell that nothing was done twice.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

INGOT = str(Path(sys.executable).with_name("ingot"))
PATIENCE = 120
SCRIPT = """
default: {others: {seconds: 0.1}}
"""
IMAGE = {
    "url": "https://images.example/a.raw",
    "checksum": "0" * 64,
    "checksumType": "sha256",
    "format": "raw",
}


class Operator:
    """A process that runs the controllers, with or without leading yet."""

    def __init__(self, process: subprocess.Popen[str], state: Path) -> None:
        self.process = process
        self._state = state
        self.health = f"https://127.0.0.1:{self._port()}"

    def _port(self) -> int:
        while (found := re.search(r"health .* port (\d+)", self._line())) is None:
            pass
        return int(found[1])

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the operator ended before it said so"
        return line

    def leads(self) -> None:
        """Wait until it does."""
        while not self._line().startswith("operator ready"):
            pass

    def ask(self, path: str) -> str:
        """What it answers about its own health."""
        token = (self._state / "operator/metrics-token").read_text()
        request = urllib.request.Request(self.health + path, headers={"Authorization": f"Bearer {token}"})
        trusted = ssl.create_default_context(cafile=self._state / "ca/ca.crt")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE, context=trusted) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()

    def stop(self) -> None:
        """As a supervisor does; the Lease is handed over."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)


class DemoHall:
    def __init__(self, kubeconfig: Path, folder: Path, namespace: str, *, webhook: bool) -> None:
        self.namespace = namespace
        self.state = folder / "state"
        self._folder = folder
        self._webhook = webhook
        self._operators: list[Operator] = []
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig),
            "INGOT_STATE": str(self.state),
            "WATCH_NAMESPACE": namespace,
        }

    def share_machines_of(self, other: DemoHall) -> None:
        self.state = other.state
        self.environment["INGOT_STATE"] = str(other.state)

    def open(self) -> None:
        self.kubectl("create", "namespace", self.namespace)

    def close(self, *, tidily: bool = False) -> None:
        """End its operators. `tidily`: leave nothing behind on the API either."""
        if tidily:
            if all(operator.process.poll() is not None for operator in self._operators):
                self.operator()
            self.kubectl("delete", "bmh", "--all", f"--timeout={PATIENCE}s")
        for operator in self._operators:
            if operator.process.poll() is None:
                operator.kill()
            assert operator.process.stdout is not None
            operator.process.stdout.close()
        if tidily:
            configuration = f"validatingwebhookconfiguration/ingot-{self.namespace}"
            self.kubectl("delete", "--wait=false", configuration, f"namespace/{self.namespace}")

    # What a user types

    def kubectl(self, *arguments: str, given: str | None = None, check: bool = True) -> str:
        return self._run(["kubectl", "-n", self.namespace, *arguments], given=given, check=check).stdout

    def refused(self, *arguments: str, given: str | None = None) -> str:
        """What kubectl says when the API does not do it."""
        done = self._run(["kubectl", "-n", self.namespace, *arguments], given=given, check=False)
        assert done.returncode != 0, f"kubectl {arguments} was not refused: {done.stdout}"
        return done.stderr

    def ingot(self, *arguments: str, code: int = 0) -> str:
        """What `ingot` prints, on either of its two outputs."""
        done = self._run([INGOT, *arguments, "-n", self.namespace], check=False)
        assert done.returncode == code, f"ingot {arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def _run(
        self, command: list[str], *, given: str | None = None, check: bool
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
            env=self.environment,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}\n{self.how_it_is()}")
        return done

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(objects))

    def patch(self, what: str, change: dict[str, Any]) -> None:
        self.kubectl("patch", what, "--type=merge", "-p", json.dumps(change))

    def wait(self, condition: str, *what: str) -> None:
        self.kubectl("wait", f"--for={condition}", f"--timeout={PATIENCE}s", *what)

    def get(self, *what: str) -> list[dict[str, Any]]:
        found = json.loads(self.kubectl("get", *what, "-o", "json"))
        return list(found["items"]) if found["kind"] == "List" else [found]

    def row(self, name: str) -> list[str]:
        """The words of a host's line in `kubectl get bmh`, without its age."""
        return self.kubectl("get", "bmh", name, "--no-headers").split()[:-1]

    def events(self, name: str, *more: str) -> list[str]:
        """The reasons of what was told of an object."""
        about = ",".join((f"involvedObject.name={name}", *more))
        told = self.kubectl("get", "events", f"--field-selector={about}", "-o", "jsonpath={.items[*].reason}")
        return told.split()

    def claimed(self) -> dict[str, str]:
        """The hosts that somebody has, and who."""
        return {
            found["metadata"]["name"]: found["spec"]["consumerRef"]["name"]
            for found in self.get("bmh")
            if "consumerRef" in found["spec"]
        }

    def until(self, so: Callable[[], bool]) -> None:
        """Wait for what kubectl cannot wait for, or for the books: they may be a moment behind what the API tells."""
        deadline = time.monotonic() + PATIENCE
        while not so():
            assert time.monotonic() < deadline, self.how_it_is()
            time.sleep(0.2)

    # Operators

    def operator(self, script: str = SCRIPT, *options: str) -> Operator:
        """Start one. It stops with the hall, if it is not ended before."""
        path = self._folder / "script.yaml"
        path.write_text(script)
        command = [INGOT, "operator", "--provisioner", "demo", "--demo-script", str(path), "--leader-elect"]
        command += ["--health-listen", "127.0.0.1:0", *options]
        # The rules are asked where hosts are looked after.
        if self._webhook and "--controllers=machines" not in options:
            command += ["--webhook-listen", "127.0.0.1:0"]
        with (self._folder / "operator.log").open("ab") as log:
            process = subprocess.Popen(
                command, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        operator = Operator(process, self.state)
        self._operators.append(operator)
        return operator

    def until_rules_hold(self) -> None:
        """A cluster follows its own configuration a moment later: until then it asks nobody, or who is not there any more."""
        wrong = json.dumps(host("probe", disablePowerOff=True, online=False))
        ask = ["kubectl", "-n", self.namespace, "apply", "--dry-run=server", "-f", "-"]
        self.until(lambda: "spec.online" in self._run(ask, given=wrong, check=False).stderr)

    # What the machines know

    def machine(self, name: str) -> dict[str, Any]:
        file = self.state / "operator/demo-machines.sqlite"
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute(
                "SELECT body FROM machine WHERE namespace = ? AND name = ?", (self.namespace, name)
            ).fetchone()
        found = json.loads(row[0])
        assert isinstance(found, dict)
        return found

    def books(self, name: str) -> dict[str, int]:
        """What was done to a machine, and how often."""
        found = self.machine(name).get("done", {})
        assert isinstance(found, dict)
        return found

    def how_it_is(self) -> str:
        """For the report of a failed test."""
        hosts = self._run(["kubectl", "-n", self.namespace, "get", "bmh", "-o", "yaml"], check=False).stdout
        log = self._folder / "operator.log"
        return f"{hosts}\n{log.read_text()[-6000:] if log.exists() else ''}"


@contextmanager
def api_server(state: Path) -> Iterator[Path]:
    """`ingot api-server`, and its kubeconfig."""
    command = [INGOT, "api-server", "--state", str(state), "--listen", "127.0.0.1:0"]
    log = state.with_name("api.log")
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("api-server ready"), log.read_text()
        yield state / "kubeconfig"
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()


# Manifests


def host(name: str, **spec: Any) -> dict[str, Any]:
    bmc = {"address": f"redfish://192.0.2.1/redfish/v1/Systems/{name}", "credentialsName": f"{name}-bmc"}
    return resource("BareMetalHost", name, **{"online": True, "bmc": bmc, **spec})


def resource(kind: str, name: str, *, group: str = "metal3.io/v1alpha1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec}


def secret(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def credentials(name: str, password: str = "anything") -> dict[str, Any]:
    return secret(f"{name}-bmc", username="admin", password=password)
