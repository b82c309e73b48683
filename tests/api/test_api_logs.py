"""Logs of pods: the API finds the container and its node, and hands on what the kubelet says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from kubelet import Kubelet
from kubernetes_api import Api, Kubectl, eventually

from ingot.trust import Authority


@pytest.fixture
async def kubelet(api: Api, kubeconfig: Path, tmp_path: Path) -> AsyncIterator[Kubelet]:
    """A node whose certificate this API trusts: by its own authority, where it has one beside its kubeconfig."""
    beside = kubeconfig.with_name("ca")
    authority = Authority(beside if beside.exists() else tmp_path / "ca")
    async with Kubelet.running(api, tmp_path, authority) as running:
        yield running


def pods(api: Api, name: str = "") -> str:
    return f"/api/v1/namespaces/{api.namespace}/pods" + (f"/{name}" if name else "")


async def new_pod(api: Api, name: str, *containers: str, node: str = "", **spec: Any) -> None:
    body = {
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": container, "image": "x"} for container in containers],
            "automountServiceAccountToken": False,
            **({"nodeName": node} if node else {}),
            **spec,
        },
    }
    answers: list[Any] = []

    async def made() -> bool:
        # A cluster makes the service account of a new namespace, without which there are no pods, in its own time.
        answers.append(await api.post(pods(api), body))
        return bool(answers[-1].code != 403)

    await eventually(made)
    assert answers[-1].code == 201, answers[-1].body


async def test_what_a_container_said_is_handed_on_as_text(api: Api, kubelet: Kubelet) -> None:
    await new_pod(api, "p", "main", node=kubelet.node)
    kubelet.says("main", "one")
    kubelet.says("main", "two")
    answer = await api.get(f"{pods(api, 'p')}/log")
    assert (answer.code, answer.body) == (200, "one\ntwo\n")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert kubelet.questions == [f"/containerLogs/{api.namespace}/p/main"]


async def test_what_is_asked_for_reaches_the_kubelet(api: Api, kubelet: Kubelet) -> None:
    await new_pod(api, "p", "a", "b", node=kubelet.node)
    asked = {
        "container": "b",
        "previous": "true",
        "tailLines": "5",
        "sinceSeconds": "10",
        "timestamps": "true",
        "limitBytes": "100",
        "follow": "false",
        "bogus": "x",
    }
    assert (await api.get(f"{pods(api, 'p')}/log", **asked)).code == 200
    since = {"container": "b", "sinceTime": "2026-01-01T00:00:00Z"}
    assert (await api.get(f"{pods(api, 'p')}/log", **since)).code == 200
    place = f"/containerLogs/{api.namespace}/p/b"
    assert [unquote(question) for question in kubelet.questions] == [
        f"{place}?limitBytes=100&previous=true&sinceSeconds=10&tailLines=5&timestamps=true",
        f"{place}?sinceTime=2026-01-01T00:00:00Z",
    ]


async def test_a_log_is_followed_until_its_reader_goes(api: Api, kubelet: Kubelet) -> None:
    await new_pod(api, "p", "main", node=kubelet.node)
    kubelet.says("main", "before")
    async with api.session.get(f"{api.url}{pods(api, 'p')}/log", params={"follow": "true"}) as response:
        assert await response.content.readline() == b"before\n"
        kubelet.says("main", "after")
        assert await response.content.readline() == b"after\n"
        assert kubelet.listeners == 1
        response.close()
    kubelet.says("main", "nobody hears this")

    async def nobody_listens() -> bool:
        kubelet.says("main", "nor this")
        return kubelet.listeners == 0

    await eventually(nobody_listens)


async def test_kubectl_shows_and_follows_logs(api: Api, kubectl: Kubectl, kubelet: Kubelet) -> None:
    await new_pod(api, "p", "main", node=kubelet.node)
    kubelet.says("main", "hello")
    assert await asyncio.to_thread(kubectl, "logs", "p") == "hello\n"
    assert await asyncio.to_thread(kubectl, "logs", "p", "--tail=3", "-c", "main") == "hello\n"
    following = kubectl.start("logs", "-f", "p")
    try:
        assert following.stdout is not None
        assert await asyncio.to_thread(following.stdout.readline) == "hello\n"
        kubelet.says("main", "again")
        assert await asyncio.to_thread(following.stdout.readline) == "again\n"
    finally:
        following.kill()
        following.wait()
        assert following.stdout is not None
        following.stdout.close()


async def test_which_container_is_meant_has_to_be_clear(api: Api, kubelet: Kubelet) -> None:
    await new_pod(api, "two", "a", "b", node=kubelet.node)
    answer = await api.get(f"{pods(api, 'two')}/log")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"] == ("a container name must be specified for pod two, choose one of: [a b]")
    answer = await api.get(f"{pods(api, 'two')}/log", container="c")
    assert (answer.code, answer.body["message"]) == (400, "container c is not valid for pod two")
    init = {"initContainers": [{"name": "i", "image": "x"}]}
    await new_pod(api, "three", "a", "b", node=kubelet.node, **init)
    answer = await api.get(f"{pods(api, 'three')}/log")
    assert answer.body["message"].endswith("choose one of: [i a b]")
    assert (await api.get(f"{pods(api, 'three')}/log", container="i")).code == 200


async def test_a_pod_that_is_nowhere_yet_has_said_nothing(api: Api) -> None:
    await new_pod(api, "p", "main", schedulerName="nobody")
    answer = await api.get(f"{pods(api, 'p')}/log")
    assert (answer.code, answer.body) == (204, "")
    answer = await api.get(f"{pods(api, 'none')}/log")
    assert (answer.code, answer.body["message"]) == (404, 'pods "none" not found')


@pytest.mark.parametrize(
    ("status", "text", "code", "reason", "message"),
    [
        (400, 'previous terminated container "main" in pod "p" not found', 400, "BadRequest", None),
        (404, "whatever", 404, "NotFound", "the server could not find the requested resource ( pods/log p)"),
        (500, "the disk is gone", 500, "InternalError", "Internal error occurred: the disk is gone"),
    ],
)
async def test_what_the_kubelet_refuses_is_refused(
    api: Api, kubelet: Kubelet, status: int, text: str, code: int, reason: str, message: str | None
) -> None:
    await new_pod(api, "p", "main", node=kubelet.node)
    kubelet.refusals["main"] = (status, text)
    answer = await api.get(f"{pods(api, 'p')}/log")
    assert (answer.code, answer.body["reason"]) == (code, reason)
    assert answer.body["message"] == (message or text)


async def test_a_kubelet_that_does_not_listen_is_named(api: Api, kubelet: Kubelet) -> None:
    await new_pod(api, "p", "main", node=kubelet.node)
    await kubelet.announce(api, 1)
    answer = await api.get(f"{pods(api, 'p')}/log")
    assert answer.code == 500
    assert f'Get "https://127.0.0.1:1/containerLogs/{api.namespace}/p/main"' in answer.body["message"]
    assert "connection refused" in answer.body["message"]


@pytest.mark.parametrize(
    ("query", "code", "field"),
    [
        ({"tailLines": "-1"}, 422, "tailLines"),
        ({"sinceSeconds": "0"}, 422, "sinceSeconds"),
        ({"limitBytes": "0"}, 422, "limitBytes"),
        ({"sinceSeconds": "5", "sinceTime": "2026-01-01T00:00:00Z"}, 422, "[]"),
        ({"tailLines": "many"}, 400, None),
        ({"sinceTime": "yesterday"}, 400, None),
    ],
)
async def test_what_cannot_be_meant_is_refused(
    api: Api, kubelet: Kubelet, query: dict[str, str], code: int, field: str | None
) -> None:
    await new_pod(api, "p", "main", node=kubelet.node)
    answer = await api.get(f"{pods(api, 'p')}/log", **query)
    assert answer.code == code
    if field is not None:
        assert [found["field"] for found in answer.body["details"]["causes"]] == [field]
        assert answer.body["message"].startswith('PodLogOptions "p" is invalid: ')
    assert kubelet.questions == []


async def test_a_log_can_only_be_read(api: Api, reader: Api, kubelet: Kubelet) -> None:
    await new_pod(api, "p", "main", node=kubelet.node)
    assert (await api.post(f"{pods(api, 'p')}/log", {})).code == 405
    assert (await reader.get(f"{pods(api, 'p')}/log")).code == 200
