"""kill -9 at every step of unpacking and mirroring: what is served stays whole, and the next run ends well."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("work", ["unpacking", "mirroring"])
def test_a_kill_at_any_step_leaves_the_folder_fit_to_serve_and_the_work_can_be_done_again(
    work: str, tmp_path: Path
) -> None:
    command = [sys.executable, str(HERE / "release_kills.py"), work, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": f"{HERE}:{HERE.parents[1]}"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found = re.search(r"killed at (\d+) steps", done.stdout)
    assert found
    assert int(found[1]) > 10
