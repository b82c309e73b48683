"""openstacksdk as a second reader of Ironic: in an environment of its own, made once from its lock and kept in the user's cache.

`read` has it read everything that our own client reads of the nodes of an Ironic, in one process, and returns that as JSON. The
words are openstacksdk's own; whoever compares translates them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from ingot.provisioner.ironic import IronicAccess
from ingot.services.environment import cache_folder, find_uv, without_ours

LOCK = Path(__file__).with_name("openstacksdk.lock")
READER = """
import json, sys
import openstack

given = json.load(sys.stdin)
auth = {name: given[name] for name in ("endpoint", "username", "password")}
cloud = openstack.connect(auth_type="http_basic", auth=auth, cacert=given["ca_file"])
ironic = cloud.baremetal
ironic.default_microversion = given["version"]


def raw(path, **query):
    answer = ironic.get(path, params=query)
    return answer.json() if answer.status_code == 200 else None


def inventory(node):
    try:
        return ironic.get_node_inventory(node)
    except openstack.exceptions.NotFoundException:
        return None


read = [
    {
        "node": node.to_dict(computed=False),
        "ports": [port.to_dict(computed=False) for port in ironic.ports(details=True, node=node.id)],
        "firmware": ironic.list_node_firmware(node),
        "inventory": inventory(node),
        "bios": raw(f"/nodes/{node.id}/bios", detail="true"),
        "history": raw(f"/nodes/{node.id}/history", detail="true", sort_key="id", sort_dir="desc"),
    }
    for node in ironic.nodes(details=True)
]
json.dump(read, sys.stdout)
"""


def environment() -> Path:
    """Its interpreter. Blocks; made when it is not there yet."""
    digest = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = cache_folder().parent / "openstacksdk" / digest
    marker = folder / ".complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{digest}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not marker.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder)
            marker.touch()
    return folder / "bin" / "python"


def _make(folder: Path) -> None:
    python = str(folder / "bin" / "python")
    uv = find_uv()
    commands = [
        [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)]
        if uv
        else [sys.executable, "-m", "venv", str(folder)],
        [
            *([uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]),
            *("--quiet", "--require-hashes", "-r", str(LOCK)),
        ],
    ]
    for command in commands:
        subprocess.run(command, check=True, env=without_ours(os.environ), capture_output=True)


def read(access: IronicAccess, version: int) -> list[dict[str, Any]]:
    """What openstacksdk reads of every node. Blocks."""
    credentials = access.credentials()
    assert credentials is not None
    given = {
        "endpoint": access.endpoint,
        "username": credentials[0],
        "password": credentials[1].reveal(),
        "ca_file": str(access.ca_file),
        "version": f"1.{version}",
    }
    done = subprocess.run(
        [str(environment()), "-c", READER],
        input=json.dumps(given),
        env=without_ours(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found
