"""A server in this process, and a client for it that knows nothing but HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from ingot.embedded.server import Running, serve
from ingot.trust import client_context

SECRETS = "/api/v1/namespaces/default/secrets"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def widget_crd(**schema: Any) -> dict[str, Any]:
    """A small kind of our own, so that these tests do not hang on the fields of the real ones."""
    properties = {
        "spec": {"type": "object", **schema},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [version],
        },
    }


def a_widget(name: str, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, **metadata},
        "spec": spec or {},
    }


class Caller:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def call(self, method: str, path: str, body: Any = None, **params: Any) -> tuple[int, Any]:
        types = {"PATCH": "application/merge-patch+json"}
        headers = {"Content-Type": types.get(method, "application/json")} if body is not None else {}
        data = None if body is None else json.dumps(body).encode()
        async with self.session.request(
            method, self.url + path, data=data, headers=headers, params=params
        ) as response:
            text = await response.text()
            return response.status, json.loads(text) if "json" in response.content_type else text

    async def gone(self, path: str) -> None:
        async with asyncio.timeout(60):
            while (await self.call("GET", path))[0] != 404:  # noqa: ASYNC110 (what happens behind HTTP has no event)
                await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def calling(running: Running) -> AsyncIterator[Caller]:
    token = yaml.safe_load(running.kubeconfig.read_text())["users"][0]["user"]["token"]
    connector = aiohttp.TCPConnector(ssl=client_context(running.ca_file), limit=0)
    async with aiohttp.ClientSession(
        connector=connector, headers={"Authorization": f"Bearer {token}"}
    ) as session:
        yield Caller(session, running.url)
    # TLS connections are torn down by callbacks of the loop; let them run before it ends.
    await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def served(
    state: Path, *, crds: Sequence[Mapping[str, Any]] | None = (), **options: Any
) -> AsyncIterator[Caller]:
    """A server with the built-in kinds and these; with `crds=None` it has ours, which take it ten times as long to start."""
    async with serve(state, crds=crds, **options) as running, calling(running) as caller:
        yield caller
