"""Exec plugins: programs that log us in, some of which misbehave."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from kube_scripted_api import WIDGET, ScriptedApi

from ingot.api.meta import Key
from ingot.kube import Client, ConfigError, CredentialError, Unauthorized
from ingot.kube import config as kubeconfig
from ingot.kube.exec_plugin import ExecPlugin, ExecSettings
from ingot.trust import Authority

KEY = Key("default", "one")
V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"


class Plugin:
    """A program in a folder that prints what stands in a file beside it, and counts how often it ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "login"
        self.script('echo x >>"$0.runs"; printf %s "$KUBERNETES_EXEC_INFO" >"$0.told"; cat "$0.answer"')

    def script(self, text: str) -> None:
        self.path.write_text(f"#!/bin/sh\n{text}\n")
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)

    def answers(self, version: str = V1, **status: Any) -> None:
        body = {"apiVersion": version, "kind": "ExecCredential", "status": status}
        self.path.with_name("login.answer").write_text(json.dumps(body))

    @property
    def runs(self) -> int:
        file = self.path.with_name("login.runs")
        return len(file.read_text().splitlines()) if file.exists() else 0

    @property
    def told(self) -> Any:
        return json.loads(self.path.with_name("login.told").read_text())

    def kubeconfig(self, cluster: dict[str, Any], **settings: Any) -> Path:
        user = {"exec": {"apiVersion": V1, "command": "./login", "interactiveMode": "Never", **settings}}
        path = self.folder / "config"
        path.write_text(
            yaml.safe_dump(
                {
                    "current-context": "it",
                    "clusters": [{"name": "it", "cluster": cluster}],
                    "users": [{"name": "it", "user": user}],
                    "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                }
            )
        )
        return path


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


@pytest.fixture
def cluster(api: ScriptedApi, tmp_path: Path) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(api.kubeconfig(tmp_path).read_text())["clusters"][0]["cluster"]
    return body


def soon(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_the_token_of_a_plugin_is_used_until_it_ends(
    api: ScriptedApi, plugin: Plugin, cluster: dict[str, Any], version: str
):
    api.put("one", 7)
    plugin.answers(version, token=api.token, expirationTimestamp=soon(3600))
    async with Client.from_kubeconfig(plugin.kubeconfig(cluster, apiVersion=version)) as client:
        for _ in range(3):
            assert (await client.get(WIDGET, KEY)).spec.size == 7
    assert plugin.runs == 1
    assert plugin.told == {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}


async def test_many_requests_at_once_run_the_plugin_once(
    api: ScriptedApi, plugin: Plugin, cluster: dict[str, Any]
):
    api.put("one", 7)
    plugin.answers(token=api.token)
    async with Client.from_kubeconfig(plugin.kubeconfig(cluster)) as client:
        await asyncio.gather(*(client.get(WIDGET, KEY) for _ in range(10)))
    assert plugin.runs == 1


async def test_a_token_that_ended_is_asked_for_again(
    api: ScriptedApi, plugin: Plugin, cluster: dict[str, Any]
):
    api.put("one", 7)
    plugin.answers(token=api.token, expirationTimestamp=soon(-1))
    async with Client.from_kubeconfig(plugin.kubeconfig(cluster)) as client:
        await client.get(WIDGET, KEY)
        await client.get(WIDGET, KEY)
    assert plugin.runs == 2


async def test_a_refused_token_is_asked_for_again_once(
    api: ScriptedApi, plugin: Plugin, cluster: dict[str, Any]
):
    api.put("one", 7)
    plugin.answers(token=api.token)
    async with Client.from_kubeconfig(plugin.kubeconfig(cluster)) as client:
        await client.get(WIDGET, KEY)
        api.token = "another"
        with pytest.raises(Unauthorized):
            await client.get(WIDGET, KEY)
        assert plugin.runs == 2
        plugin.answers(token="another")
        assert (await client.patch(WIDGET, KEY, {"spec": {"size": 8}})).spec.size == 8
        assert plugin.runs == 3


async def test_a_watch_that_was_refused_has_the_plugin_asked_for_the_next_one(
    api: ScriptedApi, plugin: Plugin, cluster: dict[str, Any]
):
    plugin.answers(token="old")
    async with Client.from_kubeconfig(plugin.kubeconfig(cluster)) as client:

        async def watch() -> None:
            async for _ in client.watch(WIDGET, resource_version=str(api.version), seconds=1):
                return

        plugin.answers(token=api.token)
        await client._transport._access.identity.identity()
        api.token = "renewed"
        plugin.answers(token="renewed")
        with pytest.raises(Unauthorized):
            await watch()
        await watch()


async def test_a_plugin_can_be_told_of_the_cluster_and_gets_its_arguments_and_environment(
    api: ScriptedApi, plugin: Plugin, cluster: dict[str, Any]
):
    api.put("one", 7)
    plugin.script('printf %s "$KUBERNETES_EXEC_INFO" >"$0.told"; echo "$1 $WHO" >"$0.args"; cat "$0.answer"')
    plugin.answers(token=api.token)
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"realm": "racks"}}
    path = plugin.kubeconfig(
        {**cluster, "tls-server-name": "localhost", "extensions": [extension]},
        args=["--realm"],
        env=[{"name": "WHO", "value": "operator"}],
        provideClusterInfo=True,
    )
    async with Client.from_kubeconfig(path) as client:
        await client.get(WIDGET, KEY)
    assert plugin.told["spec"]["cluster"] == {
        "server": api.url,
        "tls-server-name": "localhost",
        "certificate-authority-data": cluster["certificate-authority-data"],
        "config": {"realm": "racks"},
    }
    assert plugin.path.with_name("login.args").read_text() == "--realm operator\n"


async def test_a_certificate_of_a_plugin_is_shown_and_replaced_when_it_is_refused(
    tmp_path: Path, plugin: Plugin
):
    authority = Authority(tmp_path / "ca")
    certificates = {name: authority.issue(tmp_path, name, [name]) for name in ("first", "second")}
    context = authority.issue(tmp_path, "server", ["127.0.0.1"]).server_context()
    context.load_verify_locations(authority.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    known, names = {"first"}, list[str]()

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        names.append(dict(pair[0] for pair in peer["subject"])["commonName"])
        if names[-1] not in known:
            return web.json_response({"message": "who?", "reason": "Unauthorized"}, status=401)
        return web.json_response({"metadata": {"name": "one"}, "spec": {"size": 3}})

    def hand_out(name: str) -> None:
        made = certificates[name]
        plugin.answers(
            clientCertificateData=made.cert_file.read_text(), clientKeyData=made.key_file.read_text()
        )

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    server = f"https://127.0.0.1:{runner.addresses[0][1]}"
    hand_out("first")
    path = plugin.kubeconfig({"server": server, "certificate-authority": str(authority.ca_file)})
    try:
        async with Client.from_kubeconfig(path) as client:
            await client.get(WIDGET, KEY)
            known.clear()
            known.add("second")
            hand_out("second")
            assert (await client.get(WIDGET, KEY)).spec.size == 3
    finally:
        await runner.cleanup()
    assert names == ["first", "first", "second"]


SECRET_OUTPUT = "eyJhbGciOiJIUzI1NiJ9"


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (f"echo {SECRET_OUTPUT}", "did not print an ExecCredential as JSON"),
        (f"""echo '{{"kind": 7, "status": {{"token": "{SECRET_OUTPUT}"}}}}'""", "did not print an ExecCrede"),
        (f"""echo '{{"status": {{"token": "{SECRET_OUTPUT}"}}}}'""", f"not print an ExecCredential of {V1}"),
        (f"echo {SECRET_OUTPUT}; exit 3", "ended with exit code 3"),
        ("true", "did not print an ExecCredential as JSON"),
        (f"echo {SECRET_OUTPUT}; sleep 60", "did not end within 0.5 s"),
        ("sleep 60 & echo started", "did not end within 0.5 s"),
        ("yes", "printed more than 1048576 bytes"),
        (f"""echo '{{"apiVersion": "{V1}", "kind": "ExecCredential"}}'""", "neither a token nor a cert"),
        (
            f"""echo '{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": {{"clientKeyData": "k"}}}}'""",
            "a key without its certificate",
        ),
    ],
)
async def test_a_plugin_that_misbehaves_is_named_and_never_quoted(
    plugin: Plugin, script: str, sentence: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    plugin.script(script)
    # Those that hang are left soon; the others have all the time that a busy machine needs to start a program.
    patience = 0.5 if "did not end" in sentence else 60
    asked = ExecPlugin(
        ExecSettings(api_version=V1, command=str(plugin.path), interactive_mode="Never", patience=patience)
    )
    with pytest.raises(CredentialError, match=sentence) as caught:
        await asked.identity()
    assert str(plugin.path) in str(caught.value)
    chain: BaseException | None = caught.value
    while chain is not None:
        assert SECRET_OUTPUT not in str(chain)
        chain = chain.__cause__ or chain.__context__
    assert SECRET_OUTPUT not in caplog.text


async def test_what_a_hanging_plugin_started_ends_with_it(plugin: Plugin, tmp_path: Path):
    plugin.script(f"sleep 600 & echo $! >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/child; wait")
    for patience in (0.5, 5, 50):
        settings = ExecSettings(
            api_version=V1, command=str(plugin.path), interactive_mode="Never", patience=patience
        )
        with pytest.raises(CredentialError, match="did not end"):
            await ExecPlugin(settings).identity()
        # On a busy machine it may have been ended before it could start anything.
        if (tmp_path / "child").exists():
            break
    child = int((tmp_path / "child").read_text())
    async with asyncio.timeout(60):
        while _runs(child):  # noqa: ASYNC110 - somebody else's process has no event of ours
            await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


async def test_a_plugin_that_is_not_installed_tells_how_to_get_it(plugin: Plugin):
    settings = ExecSettings(
        api_version=V1, command="no-such-login", install_hint="Get it with `apt install login`."
    )
    with pytest.raises(CredentialError, match=r"no-such-login.*No such file.*apt install login"):
        await ExecPlugin(settings).identity()


async def test_a_plugin_that_needs_a_person_is_not_started_without_one(plugin: Plugin):
    settings = ExecSettings(api_version=V1, command=str(plugin.path), interactive_mode="Always")
    with pytest.raises(CredentialError, match="no terminal here"):
        await ExecPlugin(settings).identity()
    assert plugin.runs == 0


SERVER = {"server": "https://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("cluster", "settings", "sentence"),
    [
        (SERVER, {"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "found 'client.auth.*v1alpha1'"),
        (SERVER, {"command": ""}, "exec has no command"),
        (SERVER, {"interactiveMode": "Perhaps"}, "one of Never, IfAvailable, Always, found 'Perhaps'"),
        (SERVER, {"args": "one"}, "args should be a list of texts"),
        (SERVER, {"env": {"A": "B"}}, "env should be a list of mappings"),
        ({"server": "http://127.0.0.1:1"}, {}, "nothing is sent in the clear"),
    ],
)
def test_settings_that_cannot_be_used_are_said_in_a_sentence(
    plugin: Plugin, cluster: dict[str, Any], settings: dict[str, Any], sentence: str
):
    with pytest.raises(ConfigError, match=sentence):
        kubeconfig.load(plugin.kubeconfig(cluster, **settings))
