"""Talking to the API under test: a thin HTTP client, kubectl, and the objects the tests are about."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import os
import ssl
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml

HOSTS = "/apis/metal3.io/v1alpha1"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
BUILD = Path(__file__).parents[2] / "tools/kubernetes/build"


@dataclass(frozen=True)
class Answer:
    code: int
    body: Any
    headers: Any

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])


@dataclass
class Api:
    """A thin HTTP client: paths in, answers out, nothing hidden."""

    url: str
    session: aiohttp.ClientSession
    namespace: str
    streams: list[Stream] = field(default_factory=list)

    async def call(
        self, method: str, path: str, body: Any = None, *, type_: str = "application/json", **kw: Any
    ) -> Answer:
        headers = {"Accept": kw.pop("accept", "application/json")}
        if body is not None:
            headers["Content-Type"] = type_
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers |= kw.pop("headers", {})
        while True:
            data = None if content is None else io.BytesIO(content)
            async with self.session.request(
                method, self.url + path, data=data, headers=headers, params=kw
            ) as response:
                text = await response.text()
                # kube-apiserver calls the index of its OpenAPI documents plain text.
                is_json = "json" in response.content_type or path == "/openapi/v3"
                parsed = json.loads(text) if is_json else text
                answer = Answer(response.status, parsed, response.headers)
            if answer.code != 429:
                return answer
            # A server that is busy, or has just learnt of a kind, says when to come again; every client does.
            await asyncio.sleep(float(answer.headers["Retry-After"]))

    async def get(self, path: str, **kw: Any) -> Answer:
        return await self.call("GET", path, **kw)

    async def post(self, path: str, body: Any, **kw: Any) -> Answer:
        return await self.call("POST", path, body, **kw)

    async def patch(self, path: str, body: Any, type_: str = MERGE, **kw: Any) -> Answer:
        return await self.call("PATCH", path, body, type_=type_, **kw)

    async def put(self, path: str, body: Any, **kw: Any) -> Answer:
        return await self.call("PUT", path, body, **kw)

    async def delete(self, path: str, body: Any = None, **kw: Any) -> Answer:
        return await self.call("DELETE", path, body, **kw)

    async def watch(self, path: str, *, accept: str = "application/json", **params: Any) -> Stream:
        response = await self.session.get(
            self.url + path, params={"watch": "true", **params}, headers={"Accept": accept}
        )
        stream = Stream(response)
        self.streams.append(stream)
        return stream

    # Words of the domain

    @property
    def hosts(self) -> str:
        return f"{HOSTS}/namespaces/{self.namespace}/baremetalhosts"

    @property
    def secrets(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets"

    def host(self, name: str) -> str:
        return f"{self.hosts}/{name}"

    async def new_host(self, name: str, *, spec: Any = None, **metadata: Any) -> Answer:
        answer = await self.post(self.hosts, a_host(name, spec=spec, **metadata))
        assert answer.code == 201, answer.body
        return answer


class Stream:
    """An open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> Any:
        line = await self.response.content.readline()
        assert line, "the watch ended"
        return json.loads(line)

    async def names(self, count: int) -> list[tuple[str, str]]:
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def a_host(name: str, *, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": name, **metadata},
        "spec": {"online": False} if spec is None else spec,
    }


def a_status(state: str = "available", **more: Any) -> dict[str, Any]:
    """The least that the schema accepts as a host's status."""
    return {
        "operationalStatus": "OK",
        "errorMessage": "",
        "errorCount": 0,
        "poweredOn": False,
        "provisioning": {"ID": "", "state": state, "image": {"url": ""}},
        **more,
    }


@dataclass(frozen=True)
class Access:
    url: str
    context: ssl.SSLContext
    headers: dict[str, str]


def access_of(path: Path) -> Access:
    config = yaml.safe_load(path.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(
        cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
    )
    if "client-certificate-data" in user:
        with tempfile.TemporaryDirectory() as folder:
            for name in ("client-certificate-data", "client-key-data"):
                (Path(folder) / name).write_bytes(base64.b64decode(user[name]))
            context.load_cert_chain(
                Path(folder) / "client-certificate-data", Path(folder) / "client-key-data"
            )
    headers = {"Authorization": f"Bearer {user['token']}"} if "token" in user else {}
    return Access(cluster["server"], context, headers)


@contextlib.asynccontextmanager
async def connected(access: Access, namespace: str) -> AsyncIterator[Api]:
    connector = aiohttp.TCPConnector(ssl=access.context, limit=0)
    timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
    async with aiohttp.ClientSession(
        connector=connector, headers=access.headers, timeout=timeout, read_bufsize=2**22
    ) as session:
        api = Api(access.url, session, namespace)
        yield api
        for stream in api.streams:
            # Without a farewell: the server may be too busy to answer it before the loop ends.
            if (connection := stream.response.connection) and (transport := connection.transport):
                transport.abort()
            stream.response.close()
    # TLS connections are torn down by callbacks of the loop; let them run before it ends.
    await asyncio.sleep(0.01)


@dataclass(frozen=True)
class Kubectl:
    """The real kubectl with a home of its own, so that nobody's discovery cache is used or spoilt."""

    program: str
    kubeconfig: Path
    home: Path
    namespace: str

    def command(self, *words: str) -> list[str]:
        return [self.program, "--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace, *words]

    def environment(self, **more: str) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], **more}

    def run(self, *words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=90,
            env=self.environment(**environment),
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Let it run beside the test."""
        return subprocess.Popen(
            self.command(*words), stdout=subprocess.PIPE, text=True, env=self.environment()
        )

    def __call__(self, *words: str, stdin: str = "", **environment: str) -> str:
        """Run it; it must succeed. Answers with what it printed."""
        done = self.run(*words, stdin=stdin, **environment)
        assert done.returncode == 0, f"kubectl {' '.join(words)}:\n{done.stdout}{done.stderr}"
        return done.stdout


def built(program: str) -> Path | None:
    """A program of `tools/kubernetes/build`, if it was built."""
    where = subprocess.run([BUILD, "--where"], capture_output=True, text=True, check=True).stdout.strip()
    return path if (path := Path(where) / program).exists() else None


async def eventually(check: Callable[[], Awaitable[bool]], within: float = 60) -> None:
    """Ask again and again until it is so.

    kube-apiserver hangs up on requests that are under way while it takes up a changed definition; that is not yet so.
    """

    async def is_so() -> bool:
        try:
            return await check()
        except aiohttp.ServerDisconnectedError:
            return False

    async with asyncio.timeout(within):
        while not await is_so():  # noqa: ASYNC110 (the server is another process: there is no event to wait for)
            await asyncio.sleep(0.05)
