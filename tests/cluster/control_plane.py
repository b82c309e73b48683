"""A real Kubernetes control plane on this machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler.

Owns their start and end. `ControlPlane.start(folder)` returns when the API serves; `stop`, or the death of the thread that
started it, ends everything. Who may come in is as on the embedded API, so that one suite runs on both: an admin, a reader who
sees everything but Secrets, and nobody anonymous beyond health and version. There is no kubelet: pods are placed on nodes, and
whoever wants them to run brings one. Where the programs come from is the business of `tools/kubernetes/build`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, Final, cast

from ingot.embedded.server import kubeconfig
from ingot.embedded.supervisor import leash
from ingot.trust import Authority, client_context, random_token, write_private

BUILD: Final = Path(__file__).parents[2] / "tools/kubernetes/build"
PROGRAMS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
OPEN_PATHS: Final = ("/healthz", "/livez", "/readyz", "/version")
OUR_GROUPS: Final = ("metal3.io", "ironic.metal3.io", "machine.openshift.io")
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# A healthy start takes three seconds; a machine that also compiles takes longer.
PATIENCE: Final = 120.0


class NotBuilt(Exception):
    """The programs are not there."""


class DidNotStart(Exception):
    """A program ended, or does not get ready; the message holds the end of its log."""


def programs() -> Path:
    """The folder with the built programs."""
    answer = subprocess.run([BUILD, "--where"], capture_output=True, text=True, check=True)
    folder = Path(answer.stdout.strip())
    if missing := [name for name in PROGRAMS if not (folder / name).exists()]:
        raise NotBuilt(f"{', '.join(missing)} not found in {folder}. Build them with: tools/kubernetes/build")
    return folder


class ControlPlane:
    """What runs in a folder, and how to talk to it. Made by `start`."""

    def __init__(self, folder: Path, *, api_server_options: Iterable[str] = ()) -> None:
        self.folder = folder.resolve()
        self._api_server_options = tuple(api_server_options)
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig_readonly = self.folder / "kubeconfig-readonly"
        self._programs = programs()
        self._ports = [_reserved_port() for _ in range(3)]
        self._etcd_port, self._peer_port, self._port = (port.getsockname()[1] for port in self._ports)
        self.url = f"https://127.0.0.1:{self._port}"
        self._authority = Authority(self.folder / "trust")
        self._admin, self._reader = random_token(), random_token()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        controllers: bool = True,
        crds: Iterable[Mapping[str, Any]] = (),
        api_server_options: Iterable[str] = (),
    ) -> ControlPlane:
        """Start one in an empty folder. `controllers=False` leaves it at etcd and the API. The `crds` are there before the
        controllers are: the garbage collector looks for new kinds only every half minute."""
        made = cls(folder, api_server_options=api_server_options)
        try:
            made._start(controllers=controllers, crds=crds)
        except BaseException:
            made.stop()
            raise
        return made

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._processes.items()}

    def stop(self) -> None:
        """End everything: first those who would complain that another is gone."""
        for name in reversed(self._processes):
            self.kill(name)
        for port in self._ports:
            port.close()

    def kill(self, name: str) -> None:
        """End one program as a crash would."""
        self._processes[name].kill()
        self._processes[name].wait()

    def restart_api_server(self) -> None:
        """Kill the API server and start it again at the same address, with all that etcd holds."""
        self.kill("kube-apiserver")
        self._start_api_server()

    def start_again(self) -> None:
        """Start etcd and the API server, which were killed, at the same addresses, with what is in their folder now."""
        self._start_etcd()
        self._start_api_server()

    def _start(self, *, controllers: bool, crds: Iterable[Mapping[str, Any]]) -> None:
        self._start_etcd()
        self._write_who_may_come_in()
        self._start_api_server()
        self._let_the_reader_read()
        for crd in crds:
            self._post(CRDS, crd)
        ca_file = self._authority.ca_file
        for path, user, token in (
            (self.kubeconfig_readonly, "ingot:read-only", self._reader),
            (self.kubeconfig, "ingot:admin", self._admin),
        ):
            kubeconfig.write(path, url=self.url, ca=ca_file.read_bytes(), user=user, token=token)
        if controllers:
            self._start_controllers()

    # The programs

    def _start_etcd(self) -> None:
        client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        self._launch(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--socket-reuse-port=true",
            "--log-level=warn",
        )

    def _start_api_server(self) -> None:
        trust = self.folder / "trust"
        serving = self._authority.issue(trust, "apiserver", ["127.0.0.1", "localhost"])
        # Any pair of keys does to sign the tokens of service accounts.
        signing = self._authority.issue(trust, "service-accounts", ["localhost"])
        self._launch(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            "--permit-port-sharing=true",
            f"--tls-cert-file={serving.cert_file}",
            f"--tls-private-key-file={serving.key_file}",
            f"--service-account-key-file={signing.cert_file}",
            f"--service-account-signing-key-file={signing.key_file}",
            f"--service-account-issuer={self.url}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--authentication-config={self.folder / 'authentication.json'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            # No network, so nobody to tell where this server is.
            "--endpoint-reconciler-type=none",
            *self._api_server_options,
        )
        self._until(lambda: self._code("/readyz") == 200)

    def _start_controllers(self) -> None:
        common = (
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",  # nobody asks them anything
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        )
        self._launch(
            "kube-controller-manager",
            *common,
            f"--service-account-private-key-file={self.folder / 'trust/service-accounts.key'}",
            f"--root-ca-file={self._authority.ca_file}",
        )
        self._launch("kube-scheduler", *common)
        # Made by a controller; before it is there no pod can be created.
        self._until(lambda: self._code("/api/v1/namespaces/default/serviceaccounts/default") == 200)

    def _launch(self, name: str, *arguments: str) -> None:
        # The kernel ends the program with the thread that started it: a test run that is killed leaves nothing behind.
        tie = (sys.executable, leash.__file__, str(os.getpid()))
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [*tie, str(self._programs / name), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl-C at the terminal is for the tests, which then stop us in order.
                start_new_session=True,
            )

    def _until(self, so: Callable[[], bool]) -> None:
        """Wait for it, as long as everything lives."""
        deadline = time.monotonic() + PATIENCE
        while not so():
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise DidNotStart(f"{name} ended with code {process.returncode}:\n{self._log_end(name)}")
            if time.monotonic() > deadline:
                name = list(self._processes)[-1]
                raise DidNotStart(f"{name} is not ready after {PATIENCE:.0f} s:\n{self._log_end(name)}")
            time.sleep(0.1)

    def _log_end(self, name: str) -> str:
        return "\n".join((self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-15:])

    # Who may come in

    def _write_who_may_come_in(self) -> None:
        tokens = (
            f'{self._admin.reveal()},ingot:admin,admin,"system:masters"\n'
            f'{self._reader.reveal()},ingot:read-only,read-only,"ingot:readers"\n'
        )
        write_private(self.folder / "tokens.csv", tokens.encode())
        anonymous = {"enabled": True, "conditions": [{"path": path} for path in OPEN_PATHS]}
        config = {
            "apiVersion": "apiserver.config.k8s.io/v1beta1",
            "kind": "AuthenticationConfiguration",
            "anonymous": anonymous,
        }
        write_private(self.folder / "authentication.json", json.dumps(config).encode())

    def _let_the_reader_read(self) -> None:
        """Roles can only add, so everything but Secrets is spelt out: each core resource, and the other groups whole."""
        core = [r["name"] for r in self._read("/api/v1")["resources"] if r["name"] != "secrets"]
        groups = [*(group["name"] for group in self._read("/apis")["groups"]), *OUR_GROUPS]
        verbs = ["get", "list", "watch"]
        role = {
            "metadata": {"name": "ingot:read-only"},
            "rules": [
                {"apiGroups": [""], "resources": core, "verbs": verbs},
                {"apiGroups": groups, "resources": ["*"], "verbs": verbs},
                {"nonResourceURLs": ["*"], "verbs": ["get"]},
            ],
        }
        rbac = {"apiGroup": "rbac.authorization.k8s.io"}
        binding = {
            "metadata": {"name": "ingot:read-only"},
            "roleRef": {**rbac, "kind": "ClusterRole", "name": "ingot:read-only"},
            "subjects": [{**rbac, "kind": "Group", "name": "ingot:readers"}],
        }
        self._post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
        self._post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)

    # Talking to it, as the admin

    def _request(self, path: str, body: Any = None) -> HTTPResponse:
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode())
        request.add_header("Authorization", f"Bearer {self._admin.reveal()}")
        request.add_header("Content-Type", "application/json")
        context = client_context(self._authority.ca_file)
        return cast("HTTPResponse", urllib.request.urlopen(request, context=context, timeout=PATIENCE))

    def _code(self, path: str) -> int:
        try:
            with self._request(path) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code
        except OSError:
            return 0

    def _read(self, path: str) -> Any:
        with self._request(path) as answer:
            return json.load(answer)

    def _post(self, path: str, body: Mapping[str, Any]) -> None:
        self._request(path, body).close()


def _reserved_port() -> socket.socket:
    """A port that nobody else is given while the socket is open. It never listens; the program shares the port with it."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind(("127.0.0.1", 0))
    return holder
