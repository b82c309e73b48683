"""Where a Service is: the address behind a webhook that is named by its Service.

On one machine there is no network of Services, so the address is looked up as a proxy would: what its Endpoints say, or the
external name, or a ready Pod that its selector chooses. `None of these` is a sentence for the webhook's failure policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ingot.api.meta import Key
from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.registry import Registry
from ingot.embedded.server.storage.store import Store
from ingot.embedded.server.writes.webhooks.hooks import Service
from ingot.embedded.server.writes.webhooks.reviews import Misbehaved

_CORE: Final = ("", "v1")

Address = tuple[str, int]


class Services:
    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry

    def address(self, wanted: Service) -> Address:
        """Host and port. Raises `Misbehaved` with the reason where there is none."""
        key = Key(wanted.namespace, wanted.name)
        service = self._get("services", key)
        if service is None:
            raise Misbehaved(f'service "{wanted.name}" not found')
        spec = service.get("spec") or {}
        port = _port(spec, wanted.port)
        if port is None:
            raise Misbehaved(f'service "{wanted.name}" has no port {wanted.port}')
        if name := spec.get("externalName"):
            return str(name), wanted.port
        for address in (*self._endpoints(key, port), *self._pods(wanted.namespace, spec, port)):
            return address
        raise Misbehaved(f'no endpoints available for service "{wanted.name}"')

    def _endpoints(self, key: Key, port: Document) -> Iterator[Address]:
        for subset in (self._get("endpoints", key) or {}).get("subsets") or ():
            for found in subset.get("ports") or ():
                if found.get("name", "") == port.get("name", ""):
                    yield from ((address["ip"], found["port"]) for address in subset.get("addresses") or ())

    def _pods(self, namespace: str, spec: Document, port: Document) -> Iterator[Address]:
        selector = spec.get("selector")
        kind = self._kind("pods")
        if not selector or kind is None:
            return
        collection = self._store.collection(kind)
        for key in collection.keys(namespace):
            item = collection.items[key]
            if all(item.selectable.labels.get(name) == value for name, value in selector.items()):
                pod = item.document()
                target = _target(pod, port)
                if target is not None and _is_ready(pod):
                    yield str(dig(pod, "status", "podIP")), target

    def _get(self, plural: str, key: Key) -> Document | None:
        kind = self._kind(plural)
        found = self._store.get(kind, key) if kind is not None else None
        return found.document() if found is not None else None

    def _kind(self, plural: str) -> Kind | None:
        return self._registry.at(*_CORE, plural)


def _port(spec: Document, number: int) -> Document | None:
    return next((port for port in spec.get("ports") or () if port.get("port") == number), None)


def _target(pod: Document, port: Mapping[str, Any]) -> int | None:
    """The port of the pod: given by number, by the name of a container's port, or the same as the Service's."""
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    for container in dig(pod, "spec", "containers") or ():
        for found in container.get("ports") or ():
            if found.get("name") == target:
                return int(found["containerPort"])
    return None


def _is_ready(pod: Document) -> bool:
    conditions = dig(pod, "status", "conditions") or ()
    ready = any(found.get("type") == "Ready" and found.get("status") == "True" for found in conditions)
    return ready and bool(dig(pod, "status", "podIP")) and not dig(pod, "metadata", "deletionTimestamp")
