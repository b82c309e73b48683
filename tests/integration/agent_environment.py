"""ironic-python-agent's own environment: made once from a lock with hashes, below the user's cache, and found again afterwards.

Nothing of ours is in it and nothing of it is in ours: it is asked by running a program of its interpreter.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ingot.services.environment import cache_folder, find_uv, without_ours

LOCK = Path(__file__).parents[2] / "deploy" / "agent" / "agent-13.lock"
_MARKER = ".ingot-complete"


def agent_python() -> Path:
    """The interpreter of the agent's environment; the environment is made when it is not there. Blocks."""
    digest = hashlib.sha256(LOCK.read_bytes() + f"{sys.implementation.cache_tag} {sys.base_prefix}".encode())
    folder = cache_folder().with_name("agent") / f"13-{digest.hexdigest()[:16]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f"{folder.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (folder / _MARKER).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            _build(folder)
            (folder / _MARKER).touch()
    return folder / "bin" / "python"


def _build(folder: Path) -> None:
    python = str(folder / "bin" / "python")
    if uv := find_uv():
        _run(
            uv,
            "venv",
            "--quiet",
            "--no-project",
            "--no-python-downloads",
            "--python",
            sys.executable,
            str(folder),
        )
        _run(uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", str(LOCK))
        return
    _run(sys.executable, "-m", "venv", str(folder))
    _run(python, "-m", "pip", "install", "--quiet", "--no-input", "--require-hashes", "-r", str(LOCK))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, env=without_ours(os.environ), stdin=subprocess.DEVNULL)
