"""Tokens, certificates and authorities that change while we run, and the pod that has a service account."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from kube_scripted_api import WIDGET, ScriptedApi

from ingot.api.meta import Key
from ingot.kube import Access, Client, ConfigError, KnownIdentity, Trust, Unauthorized, Unavailable, Untrusted
from ingot.kube import config as kubeconfig
from ingot.kube.content import FileContent
from ingot.trust import Authority, Certificate, Secret

KEY = Key("default", "one")


@pytest.fixture
def account(certificate: Certificate, tmp_path: Path) -> Path:
    """The folder that kubelet mounts into a pod."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(certificate.ca_file.read_bytes())
    (folder / "token").write_text("of-the-pod\n")
    return folder


def pod(api: ScriptedApi) -> dict[str, str]:
    host, _, port = api.url.removeprefix("https://").rpartition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


async def test_a_pod_uses_its_service_account_and_its_renewed_token(api: ScriptedApi, account: Path):
    api.put("one", 7)
    api.token = "of-the-pod"
    async with Client(kubeconfig.load(environment=pod(api), service_account=account)) as client:
        assert (await client.get(WIDGET, KEY)).spec.size == 7
        api.token = "renewed"
        (account / "token").write_text("renewed")
        assert (await client.patch(WIDGET, KEY, {"spec": {"size": 8}})).spec.size == 8


async def test_a_kubeconfig_that_is_named_comes_before_the_service_account(
    api: ScriptedApi, account: Path, tmp_path: Path
):
    named = {"KUBECONFIG": str(api.kubeconfig(tmp_path)), **pod(api)}
    access = kubeconfig.load(environment=named, service_account=account)
    assert (await access.identity.identity()).token == Secret(api.token)


def test_a_context_that_is_named_is_not_the_pods(account: Path, api: ScriptedApi, tmp_path: Path):
    with pytest.raises(ConfigError, match="there is no kubeconfig at"):
        kubeconfig.load(
            environment={"HOME": str(tmp_path), **pod(api)}, service_account=account, context="elsewhere"
        )


def test_an_address_of_ipv6_gets_brackets(account: Path):
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert (
        kubeconfig.load(environment=environment, service_account=account).server == "https://[fd00::1]:6443"
    )
    with pytest.raises(ConfigError, match="should be a number, found 'tcp'"):
        kubeconfig.load(environment=environment | {"KUBERNETES_SERVICE_PORT": "tcp"}, service_account=account)


async def test_an_authority_that_was_renewed_is_read_again(tmp_path: Path, api: ScriptedApi, account: Path):
    stranger = Authority(tmp_path / "stranger")
    (account / "ca.crt").write_bytes(stranger.ca_file.read_bytes())
    api.put("one", 7)
    api.token = "of-the-pod"
    async with Client(kubeconfig.load(environment=pod(api), service_account=account)) as client:
        with pytest.raises(Untrusted):
            await client.get(WIDGET, KEY)
        (account / "ca.crt").write_bytes(api.authority)
        assert (await client.get(WIDGET, KEY)).spec.size == 7


async def test_a_stream_on_old_connections_goes_on_when_the_authority_changes(
    api: ScriptedApi, account: Path, tmp_path: Path
):
    api.token = "of-the-pod"
    access = kubeconfig.load(environment=pod(api), service_account=account)
    async with Client(access) as client:
        news = client.watch(WIDGET, resource_version=str(api.version), seconds=30)
        await anext(news)
        both = api.authority + Authority(tmp_path / "next").ca_file.read_bytes()
        (account / "ca.crt").write_bytes(both)
        assert access.trust.look_again()
        api.put("one", 7)
        await client.get(WIDGET, KEY)
        async with asyncio.timeout(60):
            assert (await anext(news)).object.spec.size == 7
        await news.aclose()


async def test_a_pair_that_is_half_replaced_leaves_the_old_one_in_use(tmp_path: Path):
    authority = Authority(tmp_path / "ca")
    context = authority.issue(tmp_path, "server", ["127.0.0.1"]).server_context()
    ours, others = (authority.issue(tmp_path, name, [name]) for name in ("ours", "others"))

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"metadata": {"name": "one"}, "spec": {"size": 3}})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    certificate, key = (FileContent(file, "x") for file in (ours.cert_file, ours.key_file))
    access = Access(
        server=f"https://127.0.0.1:{runner.addresses[0][1]}",
        trust=Trust(FileContent(authority.ca_file, "authority")),
        identity=KnownIdentity(certificate=certificate, key=key),
    )
    try:
        async with Client(access) as client:
            await client.get(WIDGET, KEY)
            ours.cert_file.write_bytes(others.cert_file.read_bytes())
            assert certificate.look_again()
            assert (await client.get(WIDGET, KEY)).spec.size == 3
    finally:
        await runner.cleanup()


def test_a_file_that_went_away_still_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    file = tmp_path / "token"
    file.write_text("once")
    content = FileContent(file, "token file")
    assert content.read() == b"once"
    file.unlink()
    assert not content.look_again()
    assert content.read() == b"once"
    assert "the token file" in caplog.text


def test_a_file_that_is_empty_for_a_moment_still_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """Without its authority we would believe everybody this machine does, and without a token we would be nobody."""
    file = tmp_path / "ca.crt"
    file.write_text("once")
    content = FileContent(file, "authority")
    content.read()
    file.write_text("")
    assert not content.look_again()
    assert content.read() == b"once"
    assert f"the authority {file} is empty; going on with what it held before" in caplog.text


def test_a_file_that_is_empty_from_the_beginning_is_said_to_be(account: Path, api: ScriptedApi):
    (account / "ca.crt").write_text("")
    with pytest.raises(ConfigError, match=r"certificate authority .*ca\.crt is empty"):
        kubeconfig.load(environment=pod(api), service_account=account)


async def test_a_token_of_two_lines_is_said_to_be_none(api: ScriptedApi, account: Path):
    (account / "token").write_text("hush\nhush")
    async with Client(kubeconfig.load(environment=pod(api), service_account=account)) as client:
        with pytest.raises(ConfigError, match="a token holds spaces or line ends") as caught:
            await client.get(WIDGET, KEY)
    assert "hush" not in str(caught.value)


async def test_a_token_of_other_bytes_is_not_shown(api: ScriptedApi, account: Path):
    (account / "token").write_bytes(b"hush\xff")
    async with Client(kubeconfig.load(environment=pod(api), service_account=account)) as client:
        with pytest.raises(ConfigError, match="not ASCII") as caught:
            await client.get(WIDGET, KEY)
    assert "hush" not in str(caught.value)
    assert not caught.value.__cause__


async def test_a_proxy_tunnels_to_the_server(api: ScriptedApi, certificate: Certificate, tmp_path: Path):
    api.put("one", 7)
    asked: list[bytes] = []

    async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).splitlines()[0])
        if refuse:
            writer.write(b"HTTP/1.1 403 Not Through Here\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host, port = asked[-1].split()[1].decode().split(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
            sink.close()

        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    refuse = False
    proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
    path = api.kubeconfig(tmp_path)
    path.write_text(path.read_text().replace('"server":', f'"proxy-url": "{address}", "server":'))
    async with Client.from_kubeconfig(path) as client:
        assert (await client.get(WIDGET, KEY)).spec.size == 7
    refuse = True
    async with Client.from_kubeconfig(path) as client:
        with pytest.raises(Unavailable, match=f"the proxy does not connect us to {api.url}: 403 Not Through"):
            await client.get(WIDGET, KEY)
    proxy.close()
    assert set(asked) == {f"CONNECT {api.url.removeprefix('https://')} HTTP/1.1".encode()}


async def test_a_token_that_nobody_renewed_is_refused_once(api: ScriptedApi, account: Path):
    async with Client(kubeconfig.load(environment=pod(api), service_account=account)) as client:
        with pytest.raises(Unauthorized):
            await client.get(WIDGET, KEY)
    assert len(api.seen) == 1
