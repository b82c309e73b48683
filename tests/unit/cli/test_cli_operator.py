"""`ingot operator` says in a sentence what keeps it from starting."""

from __future__ import annotations

import base64
import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ingot.cli.main import main
from ingot.trust import Authority


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """Complete settings, for an API and an Ironic that are not there."""
    state = tmp_path / "state"
    ca = Authority(state / "ca").ca_file
    auth = tmp_path / "auth/ironic"
    auth.mkdir(parents=True)
    (auth / "username").write_text("ingot")
    (auth / "password").write_text("a password")
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": base64.b64encode(ca.read_bytes()).decode(),
    }
    kubeconfig.write_text(
        json.dumps(
            {
                "current-context": "here",
                "clusters": [{"name": "c", "cluster": cluster}],
                "contexts": [{"name": "here", "context": {"cluster": "c"}}],
            }
        )
    )
    return {
        "INGOT_STATE": str(state),
        "KUBECONFIG": str(kubeconfig),
        "IRONIC_ENDPOINT": "https://127.0.0.1:1/v1",
        "IRONIC_CACERT_FILE": str(ca),
        "METAL3_AUTH_ROOT_DIR": str(tmp_path / "auth"),
    }


def operator(settings: dict[str, str], *arguments: str) -> Result:
    return CliRunner().invoke(main, ["operator", *arguments], env=settings)


@pytest.mark.parametrize("address", ["nowhere", ":1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:²"])
def test_an_address_that_is_none_is_refused(settings: dict[str, str], address: str) -> None:
    result = operator(settings, "--push-listen", address)
    assert result.exit_code == 2
    assert "is not ADDRESS:PORT" in result.output


def test_an_address_that_is_taken_is_named(settings: dict[str, str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        result = operator(settings, "--push-listen", address)
    assert result.exit_code == 1
    assert f"cannot listen for Ironic's reports at {address}: Address already in use" in result.output
    assert "--push-listen" in result.output


@pytest.mark.parametrize("missing", ["IRONIC_ENDPOINT", "KUBECONFIG"])
def test_a_setting_that_is_missing_is_named(settings: dict[str, str], missing: str, tmp_path: Path) -> None:
    settings[missing] = "" if missing == "IRONIC_ENDPOINT" else str(tmp_path / "none")
    result = operator(settings)
    assert result.exit_code == 1
    assert missing in result.output
