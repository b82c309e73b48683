"""`ingot operator --provisioner demo` says in a sentence what keeps it from starting."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ingot.cli.main import main
from ingot.trust import Authority


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """An API that is not there; of Ironic nothing at all."""
    state = tmp_path / "state"
    ca = Authority(state / "ca").ca_file
    cluster = {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": base64.b64encode(ca.read_bytes()).decode(),
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": cluster}],
                "contexts": [{"name": "here", "context": {"cluster": "c"}}],
            }
        )
    )
    return {"INGOT_STATE": str(state), "KUBECONFIG": str(kubeconfig), "IRONIC_ENDPOINT": ""}


def operator(settings: dict[str, str], *arguments: str) -> Result:
    return CliRunner().invoke(main, ["operator", *arguments], env=settings)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            None,
            "script.yaml cannot be read: No such file or directory. Correct it, or leave out --demo-script.",
        ),
        ("default: {dance: {}}", "script.yaml cannot be played: Object contains unknown field `dance`"),
    ],
)
def test_a_script_that_cannot_be_played_is_said_before_anything_starts(
    settings: dict[str, str], tmp_path: Path, script: str | None, said: str
):
    path = tmp_path / "script.yaml"
    if script is not None:
        path.write_text(script)
    result = operator(settings, "--provisioner", "demo", "--demo-script", str(path))
    assert result.exit_code == 1
    assert said in result.output


def test_a_script_is_of_no_use_to_real_machines(settings: dict[str, str], tmp_path: Path):
    result = operator(settings, "--demo-script", str(tmp_path / "script.yaml"))
    assert result.exit_code == 2
    assert "--demo-script is for --provisioner demo" in result.output


def test_a_file_of_machines_that_cannot_be_used_is_said(settings: dict[str, str], tmp_path: Path):
    (tmp_path / "state" / "operator" / "demo-machines.sqlite").mkdir(parents=True)
    result = operator(settings, "--provisioner", "demo")
    assert result.exit_code == 1
    assert "Error: the demo machines' file" in result.output
    assert "Traceback" not in result.output
