"""A site with tenants, on a real Kubernetes with its access control: hosts in one namespace, tenants in others, and everybody
with an identity of his own that may do what the manifests in `deploy` let him.

The API is as strict as OpenShift's: it also checks who gives an object an owner. The operator is a process under its own
ServiceAccount, with demo machines behind it. Who has which role is set up here as `deploy/rbac/examples` shows it.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from control_plane import ControlPlane, programs

from ingot.api.crd import all_crds
from ingot.embedded.server import kubeconfig
from ingot.trust import Secret

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
INGOT: Final = str(Path(sys.executable).with_name("ingot"))
STRICT: Final = ("--enable-admission-plugins=OwnerReferencesPermissionEnforcement",)
PATIENCE: Final = 120
SYSTEM: Final = "ingot-system"
RACKS: Final = "racks"
SCRIPT: Final = "default: {others: {seconds: 0.1}}"
REFUSED: Final = re.compile(r'code="40[13]"|\(HTTP 40[13]|\bforbidden\b', re.IGNORECASE)
PASSWORD: Final = "the-password-of-a-bmc"
IMAGE: Final = {"url": "https://images.example/a.raw", "checksum": "0" * 64, "format": "raw"}


class Refused(Exception):
    """kubectl was not obeyed; what it said."""


class Site:
    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder
        self._kubectl = str(programs() / "kubectl")
        self._health = ""
        self._tokens: dict[Path, str] = {}

    # Who there is

    def identity(self, account: str, namespace: str) -> Path:
        """The kubeconfig of a ServiceAccount, with a token that the API gave out for it."""
        token = self.kubectl("create", "token", account, "-n", namespace, "--duration=1h").strip()
        path = self._folder / f"{namespace}-{account}.kubeconfig"
        ca = (self._plane.folder / "trust/ca.crt").read_bytes()
        kubeconfig.write(path, url=self._plane.url, ca=ca, user=account, token=Secret(token))
        self._tokens[path] = token
        return path

    def tenant(self, namespace: str) -> Path:
        """A new one, with a namespace, an identity and the role of tenants there."""
        self.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _in(namespace, "tenant")},
            _bound("RoleBinding", _in(namespace, "tenant"), "ingot-tenant", "tenant", namespace),
        )
        return self.identity("tenant", namespace)

    def auditor(self) -> Path:
        self.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _in(SYSTEM, "auditor")},
            _bound("ClusterRoleBinding", {"name": "auditor"}, "ingot-auditor", "auditor", SYSTEM),
        )
        return self.identity("auditor", SYSTEM)

    # What they type

    def kubectl(self, *words: str, as_who: Path | None = None, given: str | None = None) -> str:
        """Raises `Refused` with what it says when it does not do it. Without a name, the administrator types."""
        command = [self._kubectl, "--kubeconfig", str(as_who or self._plane.kubeconfig), *words]
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, check=False, timeout=2 * PATIENCE
        )
        if done.returncode != 0:
            raise Refused(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def answer(
        self, who: Path, method: str, path: str, body: dict[str, Any] | None = None, **headers: str
    ) -> int:
        """The code that the API answers a request with: quicker than kubectl, where there are many."""
        content = json.dumps(body).encode() if body is not None else None
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers |= {"Authorization": f"Bearer {self._tokens[who]}", "Content-Type": kind}
        request = urllib.request.Request(self._plane.url + path, content, headers, method=method)
        trusted = ssl.create_default_context(cafile=self._plane.folder / "trust/ca.crt")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE, context=trusted) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code

    def apply(self, *objects: dict[str, Any], as_who: Path | None = None) -> None:
        self.kubectl("apply", "-f", "-", as_who=as_who, given=yaml.safe_dump_all(objects))

    def get(self, *what: str, as_who: Path | None = None) -> dict[str, Any]:
        found = json.loads(self.kubectl("get", *what, "-o", "json", as_who=as_who))
        assert isinstance(found, dict)
        return found

    def wait(self, condition: str, *what: str, as_who: Path | None = None) -> None:
        try:
            self.kubectl("wait", f"--for={condition}", f"--timeout={PATIENCE}s", *what, as_who=as_who)
        except Refused as error:
            raise AssertionError(f"{error}\n{self.how_it_is()}") from error

    def until(self, so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not so():
            assert time.monotonic() < deadline, self.how_it_is()
            time.sleep(0.2)

    # The operator

    @contextmanager
    def operator(self, *options: str) -> Iterator[None]:
        """`ingot operator` as the ServiceAccount that is shipped for it, ready to work."""
        script = self._folder / "script.yaml"
        script.write_text(SCRIPT)
        command = [INGOT, "operator", "--provisioner", "demo", "--demo-script", str(script)]
        command += ["--leader-elect", "--lease-namespace", SYSTEM]
        command += ["--webhook-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0", *options]
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "KUBECONFIG": str(self.identity("ingot-operator", SYSTEM)),
            "INGOT_STATE": str(self._folder / "state"),
        }
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert process.stdout is not None
        try:
            while not (line := process.stdout.readline()).startswith("operator ready"):
                assert line, f"the operator ended before it was ready:\n{self.how_it_is()}"
                if found := re.search(r"health .* port (\d+)", line):
                    self._health = f"https://127.0.0.1:{found[1]}"
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE)
            process.stdout.close()

    @property
    def _log(self) -> Path:
        return self._folder / "operator.log"

    def refusals(self) -> list[str]:
        """What the operator was not allowed to do since it began, as it counts and tells it."""
        state = self._folder / "state"
        token = (state / "operator/metrics-token").read_text()
        request = urllib.request.Request(
            f"{self._health}/metrics", headers={"Authorization": f"Bearer {token}"}
        )
        trusted = ssl.create_default_context(cafile=state / "ca/ca.crt")
        with urllib.request.urlopen(request, timeout=PATIENCE, context=trusted) as answer:
            counted = answer.read().decode()
        assert 'rest_client_requests_total{code="200"' in counted
        told = self._log.read_text()
        return [line for line in (*counted.splitlines(), *told.splitlines()) if REFUSED.search(line)]

    def how_it_is(self) -> str:
        """For the report of a failed test."""
        kinds = "bmh,machines,hostclaims,hostdeploypolicies,events"
        return f"{self.kubectl('get', kinds, '-A', '-o', 'wide')}\n{self._log.read_text()[-5000:]}"


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """A control plane of its own, because roles and webhooks are the whole cluster's."""
    plane = ControlPlane.start(folder / "plane", crds=all_crds(), api_server_options=STRICT)
    try:
        made = Site(plane, folder)
        made.kubectl("apply", "-f", str(DEPLOY / "rbac"), "-f", str(DEPLOY / "admission"))
        made.kubectl("create", "namespace", RACKS)
        yield made
    finally:
        plane.stop()


# Manifests


def host(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A host and the Secret of its BMC."""
    bmc = {"address": f"redfish://192.0.2.7/redfish/v1/Systems/{name}", "credentialsName": f"{name}-bmc"}
    credentials = secret(RACKS, f"{name}-bmc", username="root", password=PASSWORD)
    return credentials, _ours("BareMetalHost", RACKS, name, online=True, bmc=bmc)


def secret(namespace: str, name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": _in(namespace, name), "stringData": data}


def claim(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    return _ours("HostClaim", namespace, name, **{"poweredOn": True, "image": IMAGE, **spec})


def policy(name: str, *tenants: str) -> dict[str, Any]:
    return _ours("HostDeployPolicy", RACKS, name, hostClaimNamespaces={"names": list(tenants)})


def machine_set(name: str) -> dict[str, Any]:
    """Of one Machine."""
    labels = {"set": name}
    value = {
        "apiVersion": "baremetal.cluster.k8s.io/v1alpha1",
        "kind": "BareMetalMachineProviderSpec",
        "image": {"url": IMAGE["url"], "checksum": IMAGE["checksum"]},
    }
    template = {"metadata": {"labels": labels}, "spec": {"providerSpec": {"value": value}}}
    return {
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "MachineSet",
        "metadata": _in(RACKS, name),
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def _ours(kind: str, namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "metal3.io/v1alpha1", "kind": kind, "metadata": _in(namespace, name), "spec": spec}


def _in(namespace: str, name: str) -> dict[str, str]:
    return {"namespace": namespace, "name": name}


def _bound(kind: str, metadata: dict[str, str], role: str, account: str, namespace: str) -> dict[str, Any]:
    rbac = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{rbac}/v1",
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
