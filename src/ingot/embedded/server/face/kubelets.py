"""The kubelet of a node: where it listens, and how it is asked.

It is asked over TLS with a certificate of our authority, and has to show one itself. Whatever keeps it from answering becomes a
Status in the words that kube-apiserver has for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import aiohttp
from yarl import URL

from ingot.api.meta import Key
from ingot.embedded.server.dialing import why
from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.errors import Cause, Refused
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.store import Store
from ingot.trust import Certificate

_PORT: Final = 10250
_ADDRESSES: Final = ("InternalIP", "ExternalIP", "Hostname", "InternalDNS", "ExternalDNS")
_CONNECT_WITHIN: Final = 30.0
_SHOWN_BYTES: Final = 4096


class Kubelets:
    def __init__(self, store: Store, registry: Registry, certificate: Callable[[], Certificate]) -> None:
        """`certificate` is called in a thread for every question, so that what it answers with never grows old."""
        self._store = store
        self._registry = registry
        self._certificate = certificate

    def url(self, node: str, path: str, query: Mapping[str, str]) -> URL:
        """Where to ask. Raises a Refused when nobody knows."""
        kind = self._registry.at("", "v1", "nodes")
        found = self._store.get(kind, Key("", node)) if kind is not None else None
        if found is None:
            # The word is kube-apiserver's: it looks for a node and says that a pod is missing.
            raise Refused(404, "NotFound", f'pods "{node}" not found', details={"name": node, "kind": "pods"})
        status = found.document().get("status") or {}
        port = dig(status, "daemonEndpoints", "kubeletEndpoint", "Port") or _PORT
        host = _address(status.get("addresses") or [])
        try:
            url = URL.build(scheme="https", host=host, port=port, path=path, query=dict(query))
            # Only who asks for the port is told that there is none of this number.
            return url.with_port(url.port)
        except ValueError as error:
            words = f'node "{node}" says that its kubelet is at {host}:{port}: {error}'
            raise Refused(500, "", words) from None

    @contextlib.asynccontextmanager
    async def asked(self, url: URL, *, verified: bool = True) -> AsyncIterator[aiohttp.ClientResponse]:
        """The kubelet's answer, to be read as it comes. Leaving the block hangs up."""
        context = await asyncio.to_thread(self._context, verified=verified)
        # A log that is followed has no end, and may be silent for hours.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_WITHIN)
        async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session:
            try:
                response = await session.get(
                    url, ssl=context, allow_redirects=False, headers={"Accept-Encoding": "identity"}
                )
            except (aiohttp.ClientError, OSError) as error:
                raise Refused(500, "", f'Get "{url}": {why(error)}') from None
            try:
                yield response
            finally:
                response.close()

    def _context(self, *, verified: bool) -> ssl.SSLContext:
        ours = self._certificate()
        context = ssl.create_default_context(cafile=ours.ca_file)
        context.load_cert_chain(ours.cert_file, ours.key_file)
        if not verified:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


async def refusal(response: aiohttp.ClientResponse, *, name: str) -> Refused:
    """What the kubelet refuses, as the client of the API gets it."""
    text = (await response.content.read(_SHOWN_BYTES)).decode(errors="replace")
    match response.status:
        case 404:
            message = f"the server could not find the requested resource ( pods/log {name})"
            return Refused(404, "NotFound", message, details={"name": name, "kind": "pods/log"})
        case 400:
            return Refused(400, "BadRequest", text)
        case status if status >= 500:
            return Refused(
                500, "InternalError", f"Internal error occurred: {text}", causes=[Cause("", "", text)]
            )
        case status:
            return Refused(status, "", f"the kubelet answered with HTTP {status}: {text}")


def _address(addresses: list[Document]) -> str:
    for wanted in _ADDRESSES:
        for found in addresses:
            if found.get("type") == wanted and found.get("address"):
                return str(found["address"])
    known = " ".join(str(found.get("type", "")) for found in addresses)
    raise Refused(500, "", f"no preferred addresses found; known addresses: [{known}]")
