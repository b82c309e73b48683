"""Ironic's environment, made with the real tools from a lock of our own that holds nothing: quick, and offline."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ingot.services import environment, plugin
from ingot.services.environment import IronicEnvironment, ensure
from ingot.services.errors import EnvironmentUnavailable


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "locks"
    folder.mkdir()
    (folder / "ironic-39.lock").write_text("# nothing\n")
    return folder


@pytest.fixture
def own_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugin to change."""
    package = tmp_path / "plugin" / "src" / "ingot_ironic"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("VALUE = 1\n")
    (tmp_path / "plugin" / "pyproject.toml").write_text(
        '[project]\nname = "ingot-ironic"\nversion = "0.1.0"\n'
        '[project.entry-points."oslo.messaging.notify.drivers"]\ningot = "ingot_ironic:VALUE"\n'
    )
    monkeypatch.setenv("INGOT_IRONIC_PLUGIN", str(tmp_path / "plugin"))
    return package


def asked(made: IronicEnvironment, question: str) -> str:
    return subprocess.run(
        [str(made.python), "-c", question], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_an_environment_holds_the_plugin_as_a_distribution_with_its_entry_point(locks: Path) -> None:
    made = ensure(locks=locks)
    entry_point = asked(
        made,
        "from importlib.metadata import entry_points, version\n"
        "[found] = entry_points(group='oslo.messaging.notify.drivers', name='ingot')\n"
        "print(version('ingot-ironic'), found.value)",
    )
    assert entry_point == "0.1.0 ingot_ironic.driver:IngotDriver"
    assert asked(made, "import sys; print(sys.prefix != sys.base_prefix)") == "True"
    assert asked(made, "import importlib.util; print(importlib.util.find_spec('ingot'))") == "None"


def test_an_environment_that_is_there_is_used_as_it_is(locks: Path) -> None:
    first = ensure(locks=locks)
    witness = first.folder / "witness"
    witness.touch()
    said: list[str] = []
    assert ensure(locks=locks, progress=said.append) == first
    assert witness.exists()
    assert said == []


def test_what_a_killed_build_left_is_made_again(locks: Path) -> None:
    made = ensure(locks=locks)
    (made.folder / ".ingot-complete").unlink()
    (made.folder / "half-written").touch()
    assert ensure(locks=locks) == made
    assert not (made.folder / "half-written").exists()


def test_an_environment_whose_interpreter_was_removed_is_made_again(locks: Path) -> None:
    made = ensure(locks=locks)
    made.python.unlink()
    made.python.symlink_to("/gone/python3")
    assert asked(ensure(locks=locks), "print('well')") == "well"


def test_a_changed_plugin_gets_an_environment_beside_the_old_one(locks: Path, own_plugin: Path) -> None:
    old = ensure(locks=locks)
    (own_plugin / "__init__.py").write_text("VALUE = 2\n")
    new = ensure(locks=locks)
    question = "import ingot_ironic; print(ingot_ironic.VALUE)"
    assert (asked(old, question), asked(new, question)) == ("1", "2")


def test_two_who_need_it_at_once_wait_for_one_build(locks: Path) -> None:
    said: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: ensure(locks=locks, progress=said.append), range(2))
    assert one == two
    assert sum("making a virtual environment" in line for line in said) == 1


BUILDER = """
import sys
from pathlib import Path
from ingot.services.environment import ensure
ensure(locks=Path(sys.argv[1]))
"""


def test_a_tool_that_outlives_its_killed_builder_is_waited_for(locks: Path, tmp_path: Path) -> None:
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    slow = tmp_path / "bin" / "uv"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\ntouch {begun}\nwhile [ ! -e {go_on} ]; do sleep 0.05; done\n")
    slow.chmod(0o755)
    builder = subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(locks)],
        env={**os.environ, "PATH": f"{slow.parent}{os.pathsep}{os.environ['PATH']}"},
    )
    waited = False

    def hear(line: str) -> None:
        nonlocal waited
        if "waiting for it" in line:
            waited = True
            go_on.touch()

    try:
        end = time.monotonic() + 60
        while not begun.exists():
            assert time.monotonic() < end, "the tool never began"
            time.sleep(0.01)
        builder.kill()
        builder.wait()
        made = ensure(locks=locks, progress=hear)
    finally:
        go_on.touch()
    assert waited
    assert asked(made, "print('well')") == "well"


def test_it_works_without_uv(locks: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if Path(sys.executable).with_name("uv").exists():
        pytest.skip("uv stands beside this interpreter and cannot be hidden")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.find_uv() is None
    assert asked(ensure(locks=locks), "import ingot_ironic; print('there')") == "there"


def test_a_package_whose_hash_is_not_the_locked_one_is_refused(locks: Path) -> None:
    wheel = locks / "thing-1.0-py3-none-any.whl"
    wheel.write_bytes(b"not what was locked")
    (locks / "ironic-39.lock").write_text(f"thing @ {wheel.as_uri()} --hash=sha256:{'0' * 64}\n")
    with pytest.raises(EnvironmentUnavailable, match="Its last lines") as failure:
        ensure(locks=locks)
    assert "ash" in str(failure.value)
    with pytest.raises(EnvironmentUnavailable):
        ensure(locks=locks)


def test_an_unknown_version_names_those_there_are(locks: Path) -> None:
    with pytest.raises(EnvironmentUnavailable, match="no lock for Ironic '12'; it has: 39"):
        ensure("12", locks=locks)


def test_a_missing_plugin_says_where_it_was_looked_for(locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGOT_IRONIC_PLUGIN", "/nowhere")
    with pytest.raises(EnvironmentUnavailable, match="not in /nowhere"):
        ensure(locks=locks)


def test_the_lock_that_we_ship_pins_everything_by_hash_and_names_no_index() -> None:
    for version in environment.versions():
        text = (environment.LOCKS / f"ironic-{version}.lock").read_text()
        names = [line for line in text.splitlines() if line and line[0].isalnum()]
        assert f"ironic=={version}.0.0 \\" in names
        assert all("==" in line and line.endswith("\\") for line in names)
        assert "://" not in text


def test_a_wheel_of_ours_brings_the_plugin_where_it_is_looked_for(tmp_path: Path) -> None:
    checkout = Path(__file__).parents[3]
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=checkout, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    question = (
        "from ingot.services import plugin; found = plugin.sources(); print(found, plugin.digest(found))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", question],
        env={"PYTHONPATH": str(tmp_path / "installed")},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    shipped = tmp_path / "installed" / "ingot" / "services" / "ironic-plugin"
    assert answer == [str(shipped), plugin.digest(checkout / "ironic-plugin")]
