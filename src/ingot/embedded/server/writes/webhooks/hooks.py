"""Webhooks as their configurations describe them, and which of them an attempt concerns.

A `Hook` is made once from a configuration that has passed its schema. Matching is pure: rules by group, version, resource,
operation and scope, then the selectors. Conditions in CEL come last and belong to `conditions`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ingot.embedded.server.documents import Document, dig
from ingot.embedded.server.kinds.kind import Kind
from ingot.embedded.server.kinds.selectors import Requirement
from ingot.embedded.server.writes.webhooks.attempt import Attempt

REGISTRATION_GROUP: Final = "admissionregistration.k8s.io"
VALIDATING: Final = "validatingwebhookconfigurations"
MUTATING: Final = "mutatingwebhookconfigurations"

_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}


@dataclass(frozen=True, slots=True)
class Rule:
    """Which writes a webhook wants to hear of. `*` stands for all."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: frozenset[str]
    scope: str

    def covers(self, attempt: Attempt, kind: Kind) -> bool:
        return (
            _has(self.operations, attempt.operation)
            and _has(self.groups, kind.group)
            and _has(self.versions, kind.version)
            and self.scope in ("*", "Namespaced" if kind.namespaced else "Cluster")
            and self._names(kind.plural, attempt.subresource)
        )

    def _names(self, plural: str, subresource: str) -> bool:
        if not subresource:
            return not self.resources.isdisjoint(("*", "*/*", plural))
        names = ("*/*", f"{plural}/*", f"*/{subresource}", f"{plural}/{subresource}")
        return not self.resources.isdisjoint(names)


@dataclass(frozen=True, slots=True)
class Service:
    """A webhook inside of what this API runs."""

    namespace: str
    name: str
    port: int
    path: str


@dataclass(frozen=True, slots=True)
class Hook:
    name: str
    place: str | Service
    ca_bundle: bytes
    rules: tuple[Rule, ...]
    namespaces: tuple[Requirement, ...]
    objects: tuple[Requirement, ...]
    conditions: tuple[tuple[str, str], ...]
    timeout: int
    # A webhook that cannot be asked stops the write; otherwise the write goes on without it.
    must_answer: bool
    only_exact: bool
    safe_when_dry: bool
    asked_again: bool

    def kind_for(self, attempt: Attempt, equivalents: Iterable[Kind]) -> Kind | None:
        """The kind, in the version that the webhook understands, that this attempt is told as; None if it is not concerned."""
        for kind in (attempt.kind, *(() if self.only_exact else equivalents)):
            if any(rule.covers(attempt, kind) for rule in self.rules):
                return kind
        return None

    def selects(
        self, namespace_labels: Mapping[str, str] | None, new: Document | None, old: Document | None
    ) -> bool:
        """Whether the labels are such that it wants to hear. None for what is in no namespace, which counts as selected."""
        if namespace_labels is not None and not _all_hold(self.namespaces, namespace_labels):
            return False
        versions = [document for document in (new, old) if document is not None]
        return not self.objects or any(_all_hold(self.objects, _labels(document)) for document in versions)


def hooks_of(configuration: Document) -> Iterator[Hook]:
    """The webhooks of one configuration, in its order."""
    for webhook in configuration.get("webhooks") or ():
        yield _hook(webhook)


def _hook(webhook: Document) -> Hook:
    client = webhook["clientConfig"]
    return Hook(
        name=webhook["name"],
        place=_place(client),
        ca_bundle=_decoded(client.get("caBundle") or ""),
        rules=tuple(_rule(rule) for rule in webhook.get("rules") or ()),
        namespaces=_requirements(webhook.get("namespaceSelector")),
        objects=_requirements(webhook.get("objectSelector")),
        conditions=tuple(
            (found["name"], found["expression"]) for found in webhook.get("matchConditions") or ()
        ),
        timeout=webhook.get("timeoutSeconds") or 10,
        must_answer=webhook.get("failurePolicy") != "Ignore",
        only_exact=webhook.get("matchPolicy") == "Exact",
        safe_when_dry=webhook.get("sideEffects") in ("None", "NoneOnDryRun"),
        asked_again=webhook.get("reinvocationPolicy") == "IfNeeded",
    )


def _place(client: Document) -> str | Service:
    if url := client.get("url"):
        return str(url)
    service = client.get("service") or {}
    return Service(
        namespace=service.get("namespace", ""),
        name=service.get("name", ""),
        port=service.get("port") or 443,
        path="/" + (service.get("path") or "").lstrip("/"),
    )


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # No certificate: the call fails, and the webhook's failure policy decides.
        return b"\0"


def _rule(rule: Document) -> Rule:
    return Rule(
        operations=frozenset(rule.get("operations") or ()),
        groups=frozenset(rule.get("apiGroups") or ()),
        versions=frozenset(rule.get("apiVersions") or ()),
        resources=frozenset(rule.get("resources") or ()),
        scope=rule.get("scope") or "*",
    )


def _requirements(selector: Document | None) -> tuple[Requirement, ...]:
    selector = selector or {}
    equal = [
        Requirement(key, "in", frozenset({value}))
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    return (
        *equal,
        *(
            Requirement(found["key"], _OPERATORS[found["operator"]], frozenset(found.get("values") or ()))
            for found in selector.get("matchExpressions") or ()
        ),
    )


def _all_hold(requirements: Sequence[Requirement], labels: Mapping[str, str]) -> bool:
    return all(requirement.holds(labels) for requirement in requirements)


def _labels(document: Mapping[str, Any]) -> Mapping[str, str]:
    return dig(document, "metadata", "labels") or {}


def _has(found: frozenset[str], wanted: str) -> bool:
    return wanted in found or "*" in found
