"""`tools/setup` says what is missing before it changes anything, and `python -m bench` knows its measurements."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What setup reads, in a folder without an environment."""
    (tmp_path / "tools").mkdir()
    for name in ("tools/setup", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def setup(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(checkout / "tools/setup")],
        env={"PATH": os.environ["PATH"], "HOME": str(checkout), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_an_interpreter_that_is_too_old_is_refused_with_a_sentence(checkout: Path) -> None:
    old = program(checkout / "bin/python3.9", "exit 1")
    result = setup(checkout, INGOT_PYTHON=str(old))
    assert result.returncode == 1
    assert result.stderr.strip() == f"setup: INGOT_PYTHON={old} is not a Python from 3.11 to 3.13."
    assert not (checkout / ".venv").exists()


def test_a_machine_without_a_fitting_python_is_told_what_to_install(checkout: Path) -> None:
    folder = checkout / "bin"
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        program(folder / name, "exit 1")
    result = setup(checkout, PATH=f"{folder}:{os.environ['PATH']}")
    assert result.returncode == 1
    assert "Ingot needs Python 3.11, 3.12 or 3.13, and none is on PATH" in result.stderr
    assert "apt-get install python3" in result.stderr


def test_the_measurements_are_listed_and_an_unknown_one_is_refused() -> None:
    run = [sys.executable, "-m", "bench"]
    listed = subprocess.run([*run, "--list"], cwd=ROOT, capture_output=True, text=True, check=True)
    known = {line.split()[0] for line in listed.stdout.splitlines()}
    assert known == {path.stem.removeprefix("bench_") for path in (ROOT / "bench").glob("bench_*.py")}
    refused = subprocess.run([*run, "nothing"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "no measurement named nothing" in refused.stderr
