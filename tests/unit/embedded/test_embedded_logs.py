"""How the embedded API and a kubelet prove to each other who they are."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from running_server import Caller, served

from ingot.trust import Authority

PODS = "/api/v1/namespaces/default/pods"


@contextlib.asynccontextmanager
async def node(
    api: Caller, folder: Path, *, shown: Authority, trusted: Authority
) -> AsyncIterator[list[str]]:
    """A node with one pod. Its kubelet shows a certificate of one authority and accepts only callers of another."""
    callers: list[str] = []

    async def log(request: web.BaseRequest) -> web.Response:
        certificate = request.get_extra_info("peercert")
        callers.append(next(value for ((name, value),) in certificate["subject"] if name == "commonName"))
        return web.Response(text="hello\n")

    context = shown.issue(folder, "kubelet", ["127.0.0.1"]).server_context()
    context.load_verify_locations(trusted.ca_file)
    context.verify_mode = ssl.CERT_REQUIRED
    runner = web.ServerRunner(web.Server(log, access_log=None), shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        status = {
            "addresses": [
                {"type": "Hostname", "address": "nowhere.invalid"},
                {"type": "InternalIP", "address": "127.0.0.1"},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": runner.addresses[0][1]}},
        }
        assert (await api.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}}))[0] == 201
        assert (await api.call("PATCH", "/api/v1/nodes/n1/status", {"status": status}))[0] == 200
        spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "x"}]}
        assert (await api.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec}))[0] == 201
        yield callers
    finally:
        await runner.cleanup()


async def test_the_api_shows_a_kubelet_a_certificate_of_its_own_authority(tmp_path: Path) -> None:
    async with served(tmp_path / "state") as api:
        ours = Authority(tmp_path / "state" / "ca")
        async with node(api, tmp_path, shown=ours, trusted=ours) as callers:
            assert await api.call("GET", f"{PODS}/p/log") == (200, "hello\n")
            assert callers == ["kube-apiserver-kubelet-client"]


async def test_a_kubelet_of_another_authority_is_not_listened_to_unless_the_client_says_so(
    tmp_path: Path,
) -> None:
    async with served(tmp_path / "state") as api:
        ours, strange = Authority(tmp_path / "state" / "ca"), Authority(tmp_path / "strange")
        async with node(api, tmp_path, shown=strange, trusted=ours) as callers:
            code, answer = await api.call("GET", f"{PODS}/p/log")
            assert code == 500
            assert "failed to verify certificate" in answer["message"]
            assert callers == []
            code, text = await api.call("GET", f"{PODS}/p/log", insecureSkipTLSVerifyBackend="true")
            assert (code, text) == (200, "hello\n")


async def test_a_pod_on_a_node_that_nobody_knows_is_told_as_kubernetes_tells_it(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        spec = {"nodeName": "gone", "containers": [{"name": "main", "image": "x"}]}
        assert (await api.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec}))[0] == 201
        code, answer = await api.call("GET", f"{PODS}/p/log")
        assert (code, answer["message"]) == (404, 'pods "gone" not found')
        assert (await api.call("POST", "/api/v1/nodes", {"metadata": {"name": "gone"}}))[0] == 201
        code, answer = await api.call("GET", f"{PODS}/p/log")
        assert (code, answer["message"]) == (500, "no preferred addresses found; known addresses: []")


@pytest.mark.parametrize(("address", "port"), [("not a host", 10250), ("127.0.0.1", 100_000)])
async def test_a_node_that_says_nonsense_about_its_kubelet_is_named(
    tmp_path: Path, address: str, port: int
) -> None:
    async with served(tmp_path) as api:
        status = {
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        await api.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}})
        code, _ = await api.call("PATCH", "/api/v1/nodes/n1/status", {"status": status})
        assert code == 200
        spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "x"}]}
        assert (await api.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec}))[0] == 201
        code, answer = await api.call("GET", f"{PODS}/p/log")
        assert (code, answer["message"].partition(" says")[0]) == (500, 'node "n1"')


async def test_what_needs_a_connection_into_a_pod_is_not_there(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        spec = {"containers": [{"name": "main", "image": "x"}]}
        assert (await api.call("POST", PODS, {"metadata": {"name": "p"}, "spec": spec}))[0] == 201
        for part in ("exec", "attach", "portforward"):
            for method in ("GET", "POST"):
                code, answer = await api.call(method, f"{PODS}/p/{part}")
                assert (code, answer["reason"]) == (404, "NotFound")
