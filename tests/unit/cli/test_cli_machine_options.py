"""`ingot operator --controllers machines`: what it is told, and what it says where the API does not know Machines."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from aiohttp import web
from click.testing import CliRunner

from ingot.cli.parts.machine_crew import machine_options, machine_work_from
from ingot.embedded.server import kubeconfig
from ingot.machines.running import MachineSettings
from ingot.trust import Authority, random_token

UNKNOWN = {"kind": "Status", "code": 404, "reason": "NotFound", "message": "the server could not find it"}


def settings(*arguments: str, **environment: str) -> MachineSettings:
    @click.command()
    @machine_options
    def found(**options: Any) -> None:
        heard.append(machine_work_from(options | {"namespace": "rack", "controller_concurrency": 0}).settings)

    heard: list[MachineSettings] = []
    clean = dict.fromkeys(("INGOT_DEFAULTS_NAMESPACE", "INGOT_RELEASE_TARGET"), "")
    result = CliRunner().invoke(found, arguments, env=clean | environment)
    assert result.exit_code == 0, result.output
    return heard[0]


def test_what_is_not_said_is_as_usual() -> None:
    assert settings() == MachineSettings(namespace="rack")


def test_options_win_over_the_environment() -> None:
    of_shell = {"INGOT_DEFAULTS_NAMESPACE": "theirs", "INGOT_RELEASE_TARGET": "customDeploy: {method: a}"}
    assert settings(**of_shell).defaults_namespace == "theirs"
    assert settings(**of_shell).release_target == "customDeploy: {method: a}"
    found = settings(
        *("--defaults-namespace", "ours", "--release-target", "customDeploy: {method: b}"),
        *("--machinesets", "off"),
        **of_shell,
    )
    assert (found.defaults_namespace, found.machinesets) == ("ours", "off")
    assert found.release_target == "customDeploy: {method: b}"


@pytest.mark.parametrize("known", [(), ("baremetalhosts", "hostclaims", "hostdeploypolicies")])
async def test_an_api_that_does_not_know_the_kinds_is_told_in_a_sentence(
    tmp_path: Path, known: tuple[str, ...]
) -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.path.rpartition("/")[2] in known:
            return web.json_response({"kind": "List", "metadata": {"resourceVersion": "1"}, "items": []})
        return web.json_response(UNKNOWN, status=404)

    certificate = Authority(tmp_path / "ca").issue(tmp_path / "tls", "api", ["127.0.0.1"])
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate.cert_file, certificate.key_file)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        port = runner.addresses[0][1]
        ca = (tmp_path / "ca" / "ca.crt").read_bytes()
        file = tmp_path / "kubeconfig"
        kubeconfig.write(file, url=f"https://127.0.0.1:{port}", ca=ca, user="me", token=random_token())
        operator = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from ingot.cli.main import main; main()"),
            *("operator", "--controllers", "machines"),
            env=os.environ | {"KUBECONFIG": str(file), "INGOT_STATE": str(tmp_path / "state")},
            stderr=asyncio.subprocess.PIPE,
        )
        _, stderr = await operator.communicate()
    finally:
        await runner.cleanup()
    assert operator.returncode == 1
    said = " ".join(stderr.decode().split())
    assert "Traceback" not in said
    assert "does not know" in said
    assert "Machine (machine.openshift.io/v1beta1), MachineSet" in said
    assert ("BareMetalHost (" in said) == ("baremetalhosts" not in known)
    assert "ingot crds | kubectl apply" in said
