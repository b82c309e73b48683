"""Who writes: each part has an account of its own, so that the API server's log tells whose writes are whose."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any, Final

import yaml

from api.servers import Server
from ingot.trust import client_context

NAMESPACE: Final = "identities"


def accounts(server: Server, folder: Path, *names: str) -> dict[str, Path]:
    """A kubeconfig for each name. All of them may do everything: what is measured is not who may."""
    _post(server, "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE} for name in names]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding = {"metadata": {"name": "bench"}, "roleRef": role, "subjects": subjects}
    _post(server, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    return {name: _kubeconfig(server, folder, name) for name in names}


def account(user: str) -> str:
    """The name of the account behind a user name in the log; "" for everybody else."""
    prefix = f"system:serviceaccount:{NAMESPACE}:"
    return user.removeprefix(prefix) if user.startswith(prefix) else ""


def _kubeconfig(server: Server, folder: Path, name: str) -> Path:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    _post(server, path, {"metadata": {"name": name}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = _post(server, f"{path}/{name}/token", request)["status"]["token"]
    cluster = {"server": server.url, "certificate-authority": str(server.ca)}
    config = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / f"kubeconfig-{name}"
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(config))
    return file


def _post(server: Server, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {
        "Authorization": f"Bearer {server.token.read_text()}",
        "Content-Type": "application/json",
    }
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, context=client_context(server.ca), timeout=60) as answer:
        found = json.load(answer)
    assert isinstance(found, dict)
    return found
