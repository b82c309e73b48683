"""Kubeconfigs: which of their many shapes lead to a cluster, and what is said about the others."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from kube_scripted_api import WIDGET, ScriptedApi

from ingot.api.meta import Key
from ingot.kube import Client, ConfigError, Unauthorized, Untrusted
from ingot.kube import config as kubeconfig
from ingot.trust import Authority, Certificate, Secret

KEY = Key("default", "one")


def b64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def write(path: Path, *, cluster: dict[str, Any], user: dict[str, Any], name: str = "it") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": name,
                "clusters": [{"name": name, "cluster": cluster}],
                "users": [{"name": name, "user": user}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            }
        )
    )
    return path


async def reach(path: Path) -> int:
    async with Client.from_kubeconfig(path) as client:
        return (await client.get(WIDGET, KEY)).spec.size


async def test_ca_and_token_in_files_beside_the_kubeconfig(
    api: ScriptedApi, certificate: Certificate, tmp_path: Path
):
    api.put("one", 7)
    (tmp_path / "ca.pem").write_bytes(certificate.ca_file.read_bytes())
    (tmp_path / "token").write_text(api.token + "\n")
    path = write(
        tmp_path / "config",
        cluster={"server": api.url + "/", "certificate-authority": "ca.pem"},
        user={"tokenFile": "token"},
    )
    assert await reach(path) == 7


async def test_a_token_file_that_was_renewed_is_read_again_when_the_old_token_is_refused(
    api: ScriptedApi, certificate: Certificate, tmp_path: Path
):
    api.put("one", 7)
    token = tmp_path / "token"
    token.write_text(api.token)
    path = write(
        tmp_path / "config",
        cluster={"server": api.url, "certificate-authority-data": b64(certificate.ca_file)},
        user={"tokenFile": str(token)},
    )
    async with Client.from_kubeconfig(path) as client:
        await client.get(WIDGET, KEY)
        api.token = "renewed"
        with pytest.raises(Unauthorized):
            await client.get(WIDGET, KEY)
        token.write_text("renewed")
        assert (await client.patch(WIDGET, KEY, {"spec": {"size": 8}})).spec.size == 8


async def test_insecure_is_the_users_explicit_wish(api: ScriptedApi, tmp_path: Path):
    api.put("one", 7)
    path = write(
        tmp_path / "config",
        cluster={"server": api.url, "insecure-skip-tls-verify": True},
        user={"token": api.token},
    )
    assert await reach(path) == 7


async def test_the_name_in_the_certificate_can_be_given(
    api: ScriptedApi, certificate: Certificate, tmp_path: Path
):
    api.put("one", 7)
    cluster = {"server": api.url, "certificate-authority-data": b64(certificate.ca_file)}
    right = write(
        tmp_path / "a", cluster=cluster | {"tls-server-name": "localhost"}, user={"token": api.token}
    )
    assert await reach(right) == 7
    wrong = write(
        tmp_path / "b", cluster=cluster | {"tls-server-name": "elsewhere"}, user={"token": api.token}
    )
    with pytest.raises(Untrusted, match="not to be trusted"):
        await reach(wrong)


@pytest.mark.parametrize("as_data", [True, False])
async def test_a_client_certificate_is_shown_to_the_server(tmp_path: Path, as_data: bool):
    authority = Authority(tmp_path / "ca")
    server = authority.issue(tmp_path, "server", ["127.0.0.1"])
    ours = authority.issue(tmp_path, "operator", ["operator"])
    context = server.server_context()
    context.load_verify_locations(authority.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    names: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peer = request.transport.get_extra_info("peercert")
        names.append(dict(pair[0] for pair in peer["subject"])["commonName"])
        return web.json_response({"metadata": {"name": "one"}, "spec": {"size": 3}})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    user = (
        {"client-certificate-data": b64(ours.cert_file), "client-key-data": b64(ours.key_file)}
        if as_data
        else {"client-certificate": str(ours.cert_file), "client-key": str(ours.key_file)}
    )
    path = write(
        tmp_path / "config",
        cluster={
            "server": f"https://127.0.0.1:{runner.addresses[0][1]}",
            "certificate-authority": str(authority.ca_file),
        },
        user=user,
    )
    try:
        assert await reach(path) == 3
    finally:
        await runner.cleanup()
    assert names == ["operator"]


async def test_the_first_file_of_kubeconfig_wins_and_missing_ones_do_not_matter(tmp_path: Path):
    first = write(tmp_path / "a", cluster={"server": "https://first.test"}, user={"token": "1"})
    write(tmp_path / "b", cluster={"server": "https://second.test"}, user={"token": "2"})
    other = write(tmp_path / "c", cluster={"server": "https://third.test"}, user={"token": "3"}, name="other")
    environment = {"KUBECONFIG": f"{tmp_path / 'nowhere'}:{first}:{tmp_path / 'b'}:{other}"}
    assert kubeconfig.load(environment=environment).server == "https://first.test"
    chosen = kubeconfig.load(environment=environment, context="other")
    assert chosen.server == "https://third.test"
    assert (await chosen.identity.identity()).token == Secret("3")


def test_the_namespace_of_the_context_is_told(tmp_path: Path):
    path = write(tmp_path / "config", cluster={"server": "https://127.0.0.1:1"}, user={})
    assert kubeconfig.load(path).namespace == ""
    found = yaml.safe_load(path.read_text())
    found["contexts"][0]["context"]["namespace"] = "rack-3"
    path.write_text(yaml.safe_dump(found))
    assert kubeconfig.load(path).namespace == "rack-3"


def test_without_kubeconfig_the_one_in_the_home_folder_is_used(tmp_path: Path):
    write(tmp_path / ".kube" / "config", cluster={"server": "https://home.test"}, user={})
    assert kubeconfig.load(environment={"HOME": str(tmp_path)}).server == "https://home.test"


SERVER = {"server": "https://127.0.0.1:1"}


@pytest.mark.parametrize(
    ("cluster", "user", "sentence"),
    [
        ({}, {}, "should be an https:// address, found ''"),
        ({"server": "ftp://x"}, {}, "should be an https:// address"),
        ({"server": "http://x"}, {"token": "t"}, "never sent in the clear"),
        ({"server": "http://x"}, {"tokenFile": "t"}, "never sent in the clear"),
        ({**SERVER, "proxy-url": "socks5://p"}, {}, "proxy-url should be an http:// address"),
        (SERVER, {"auth-provider": {"name": "gcp"}}, "user it logs in by 'auth-provider'"),
        (SERVER, {"exec": {"command": "aws"}}, "apiVersion of exec should be"),
        (SERVER, {"client-key-data": "eA=="}, "both client-certificate and client-key"),
        (SERVER, {"client-certificate-data": "eA==", "client-key-data": "eA=="}, "client certificate cannot"),
        ({**SERVER, "certificate-authority": "missing.pem"}, {}, "missing.pem cannot be read: No such file"),
        ({**SERVER, "certificate-authority-data": "eHl6"}, {}, "certificate authority cannot be used"),
        ({**SERVER, "certificate-authority-data": "x"}, {}, "certificate-authority-data is not base64"),
        ({"server": 7}, {}, "server should be text"),
        ({"server": "https://"}, {}, "should be an https:// address"),
        ({"server": "https://host:api"}, {}, "should be an https:// address, found 'https://host:api'"),
        ({"server": "https://[::1"}, {}, "should be an https:// address"),
        ({**SERVER, "insecure-skip-tls-verify": "false"}, {}, "should be true or false, found 'false'"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], sentence: str
):
    path = write(tmp_path / "config", cluster=cluster, user=user)
    with pytest.raises(ConfigError, match=sentence) as caught:
        kubeconfig.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "should be a mapping"),
        ("[1, 2]", "should be a mapping"),
        ("a: [", "cannot be read"),
        ("clusters: [{cluster: {}}]", "without a name under clusters"),
        ("users: [{name: x, user: 7}]", "user of x should be a mapping"),
        ("clusters: 7", "clusters should be a list"),
        ("kind: Config", "has no current-context"),
        ("current-context: x", "has no entry 'x' under contexts; it has: none"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_said_to_be_none(tmp_path: Path, text: str, sentence: str):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError, match=sentence):
        kubeconfig.load(path)


def test_a_file_that_is_no_yaml_is_not_quoted(tmp_path: Path):
    path = tmp_path / "config"
    path.write_text("users:\n- name: it\n  user:\n    token: hush: hush\n")
    with pytest.raises(ConfigError, match="cannot be read: line 4, column 16: mapping values") as caught:
        kubeconfig.load(path)
    assert "hush" not in str(caught.value)
    assert not caught.value.__cause__


def test_a_path_that_cannot_be_one_is_said_in_a_sentence(tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot be read: File name too long"):
        kubeconfig.load(tmp_path / ("x" * 300))


def test_no_kubeconfig_at_all_tells_what_to_do(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"there is no kubeconfig at .*Set KUBECONFIG"):
        kubeconfig.load(tmp_path / "none")


def test_tokens_and_passwords_are_not_shown(tmp_path: Path):
    cluster = {**SERVER, "proxy-url": "http://me:hush@proxy.test"}
    path = write(tmp_path / "config", cluster=cluster, user={"token": "hush"})
    assert "hush" not in repr(kubeconfig.load(path))
