"""Ingot's admission rules, asked through a webhook.

Owns the way from a question of the API to the rules in `ingot.api.admission` and back. Rules that look at other objects are put
twice: what they looked for in vain the first time is fetched before the second. Hosts come from the operator's cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from ingot.api import admission
from ingot.api.admission import FieldError
from ingot.api.baremetalhost import BARE_METAL_HOSTS, BareMetalHost
from ingot.api.crd import DEFINITIONS
from ingot.api.meta import Key, Resource
from ingot.kube import Client, Informer, NotFound
from ingot.kube.admission import Problem, Question, Subject, Verdict

Document = dict[str, Any]

SUBJECTS: Final = tuple(
    Subject(definition.resource, operations)
    for definition in DEFINITIONS
    if (operations := admission.operations(definition.resource.group, definition.resource.kind))
)
"""What the API is to ask about."""


class Rules:
    """The judge of an `AdmissionServer`."""

    def __init__(self, client: Client, hosts: Informer[BareMetalHost]) -> None:
        self._client = client
        self._hosts = hosts

    async def __call__(self, question: Question) -> Verdict:
        if question.subresource:
            # Statuses and scales have no rules; the registration does not ask about them either.
            return Verdict()
        await self._hosts.synced()
        others = _Others(self._hosts)
        while True:
            found = _check(question, others)
            if not others.missing:
                return Verdict([_problem(error) for error in found])
            for resource, key in others.missing:
                others.known[resource.kind, key] = await self._fetch(resource, key)
            others.missing.clear()

    async def _fetch(self, resource: Resource[Any], key: Key) -> Document | None:
        try:
            found = await self._client.get(resource, key)
        except NotFound:
            return None
        document: Document = msgspec.to_builtins(found)
        return document


class _Others:
    """What the rules can see: hosts at once, anything else after it was fetched."""

    def __init__(self, hosts: Informer[BareMetalHost]) -> None:
        self._hosts = hosts
        self.known: dict[tuple[str, Key], Document | None] = {}
        self.missing: list[tuple[Resource[Any], Key]] = []

    def get(self, resource: Resource[Any], key: Key) -> Document | None:
        if (resource.kind, key) not in self.known:
            self.missing.append((resource, key))
            return None
        return self.known[resource.kind, key]

    def mentioning(self, resource: Resource[Any], text: str) -> Iterable[Document]:
        if resource.kind != BARE_METAL_HOSTS.kind:
            raise NotImplementedError(f"no rule has looked through all {resource.plural} so far")
        return _connected_by(self._hosts.items(), text)


def _connected_by(hosts: Iterable[BareMetalHost], attachment: str) -> Iterator[Document]:
    for host in hosts:
        references = (interface.host_network_attachment for interface in host.spec.network_interfaces)
        if any(reference is not None and reference.name == attachment for reference in references):
            yield {"metadata": msgspec.to_builtins(host.metadata), "spec": msgspec.to_builtins(host.spec)}


def _check(question: Question, others: _Others) -> list[FieldError]:
    if question.new is not None and question.operation in ("CREATE", "UPDATE"):
        return admission.check(question.group, question.kind, question.new, question.old, others)
    if question.old is not None and question.operation == "DELETE":
        return admission.check_deletion(question.group, question.kind, question.old, others)
    return []


def _problem(error: FieldError) -> Problem:
    """`spec.x: Invalid value: "y": why` without the path, which stands in a field of its own."""
    return Problem(error.path, f"FieldValue{error.kind.value}", str(error).removeprefix(f"{error.path}: "))
