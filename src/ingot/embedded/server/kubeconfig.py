"""The files that let kubectl, and everything else, talk to this server."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from ingot.trust import Secret, write_private


def write(path: Path, *, url: str, ca: bytes, user: str, token: Secret) -> None:
    """A kubeconfig with one context, `ingot`. It holds a token, so only its owner may read it."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "ingot",
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(ca).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token.reveal()}}],
        "contexts": [
            {"name": "ingot", "context": {"cluster": "ingot", "user": user, "namespace": "default"}}
        ],
        "current-context": "ingot",
    }
    write_private(path, yaml.safe_dump(config, sort_keys=False).encode())
