"""Telling the API whom to ask: a ValidatingWebhookConfiguration of our own, kept as it should be.

Owns that one object, by name, and all that stands in it. It is looked at now and then and mended when it is missing or different,
and at once when the certificate authority changes: an API that does not trust us any more would refuse every write.

Updates that change neither the spec nor an annotation are not asked about at all: a condition in the registration has the API
itself tell them apart. So finalizers come off and metadata changes also while nobody is there to answer, although the failure
policy is to refuse.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from ingot.api.meta import Key, Object, Resource
from ingot.kube.admission.review import Operation
from ingot.kube.admission.server import PATH
from ingot.kube.backoff import Backoff
from ingot.kube.client import Client
from ingot.kube.errors import AlreadyExists, Conflict, KubeError, NotFound

log = logging.getLogger(__name__)

FailurePolicy = Literal["Fail", "Ignore"]

CHECK_EVERY: Final = 300.0
LOOK_AT_CA_EVERY: Final = 1.0
TIMEOUT: Final = 10
BACKOFF: Final = Backoff(first=1.0, limit=60.0)
_OTHERS_FASTER: Final = 3
"""How often in a row somebody else may be faster before that is trouble."""

CONDITION: Final = {
    "name": "spec-or-annotations-change",
    "expression": (
        "request.operation != 'UPDATE' || "
        "(has(object.spec) ? dyn(object.spec) : dyn({})) != (has(oldObject.spec) ? dyn(oldObject.spec) : dyn({})) || "
        "(has(object.metadata.annotations) ? dyn(object.metadata.annotations) : dyn({})) != "
        "(has(oldObject.metadata.annotations) ? dyn(oldObject.metadata.annotations) : dyn({}))"
    ),
}


class WebhookConfiguration(Object):
    """A ValidatingWebhookConfiguration. Its webhooks are compared and replaced as they are, so they stay undecoded."""

    webhooks: list[dict[str, Any]] = msgspec.field(default_factory=list)


CONFIGURATIONS: Final = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    kind="ValidatingWebhookConfiguration",
    plural="validatingwebhookconfigurations",
    type=WebhookConfiguration,
    namespaced=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A Service of the cluster in front of us."""

    namespace: str
    name: str
    port: int = 443


Endpoint = str | Service
"""Where the API reaches us: `https://host:port`, or a Service."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind, and what about it is asked."""

    kind: Resource[Any]
    operations: Sequence[Operation] = ("CREATE", "UPDATE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the configuration should say, but for the certificate authority."""

    subjects: Sequence[Subject]
    endpoint: Endpoint
    namespace: str = ""
    """The only namespace whose objects are asked about; "" for all."""
    failure_policy: FailurePolicy = "Fail"


def webhooks(wish: Wish, ca_bundle: bytes) -> list[dict[str, Any]]:
    """One for each kind, named after it, with everything said that the API would otherwise add by itself."""
    labels = {"matchLabels": {"kubernetes.io/metadata.name": wish.namespace}} if wish.namespace else {}
    return [
        {
            "name": f"{subject.kind.kind.lower()}.{subject.kind.group}",
            "admissionReviewVersions": ["v1"],
            "clientConfig": _client_config(wish.endpoint, ca_bundle),
            "rules": [
                {
                    "apiGroups": [subject.kind.group],
                    "apiVersions": [subject.kind.version],
                    "operations": list(subject.operations),
                    "resources": [subject.kind.plural],
                    "scope": "*",
                }
            ],
            "matchConditions": [CONDITION],
            "matchPolicy": "Equivalent",
            "namespaceSelector": labels,
            "objectSelector": {},
            "failurePolicy": wish.failure_policy,
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT,
        }
        for subject in wish.subjects
    ]


def _client_config(endpoint: Endpoint, ca_bundle: bytes) -> dict[str, Any]:
    bundle = base64.b64encode(ca_bundle).decode()
    if isinstance(endpoint, Service):
        place = {"namespace": endpoint.namespace, "name": endpoint.name, "port": endpoint.port, "path": PATH}
        return {"service": place, "caBundle": bundle}
    return {"url": endpoint.rstrip("/") + PATH, "caBundle": bundle}


class Registration:
    """Keeps one configuration. `run` it beside the server."""

    def __init__(
        self,
        client: Client,
        name: str,
        wish: Wish,
        *,
        ca_bundle: Callable[[], bytes],
        look_every: float = LOOK_AT_CA_EVERY,
        check_every: float = CHECK_EVERY,
    ) -> None:
        """`ca_bundle` is the certificate authority, PEM, as of now; it is asked every second and must not block."""
        self._client = client
        self._key = Key("", name)
        self._wish = wish
        self._ca_bundle = ca_bundle
        self._look_every = look_every
        self._check_every = check_every
        self.trouble = "the webhook is not registered yet"
        """Why the API may not ask us; "" while it does."""

    async def run(self) -> None:
        """Register, and see to it that it stays so, until cancelled."""
        failures = 0
        while True:
            try:
                bundle = self._ca_bundle()
                await self.ensure(bundle)
                failures, self.trouble = 0, ""
                await self._until_due(bundle)
            except KubeError as error:
                failures += 1
                self._troubled(f"webhook configuration {self._key}: {error}")
                await asyncio.sleep(BACKOFF.delay(failures))

    async def ensure(self, bundle: bytes) -> bool:
        """Make the configuration what it should be. True if it was not."""
        wanted = webhooks(self._wish, bundle)
        for _ in range(_OTHERS_FASTER):
            # Somebody else may write at the same time: then what they wrote is looked at.
            with contextlib.suppress(AlreadyExists, Conflict, NotFound):
                return await self._mended(wanted)
        return await self._mended(wanted)

    async def _mended(self, wanted: list[dict[str, Any]]) -> bool:
        try:
            found = await self._client.get(CONFIGURATIONS, self._key)
        except NotFound:
            await self._client.create(
                CONFIGURATIONS, {"metadata": {"name": self._key.name}, "webhooks": wanted}
            )
            log.info("webhook configuration %s is made", self._key)
            return True
        if found.webhooks == wanted:
            return False
        await self._client.patch(
            CONFIGURATIONS,
            self._key,
            {"webhooks": wanted},
            resource_version=found.metadata.resource_version,
        )
        log.info("webhook configuration %s was different and is mended", self._key)
        return True

    async def _until_due(self, bundle: bytes) -> None:
        """Return when it is time to look at the configuration again, or the authority is another one."""
        left = self._check_every * random.uniform(0.9, 1.1)  # noqa: S311 - jitter
        while left > 0:
            pause = min(left, self._look_every)
            await asyncio.sleep(pause)
            left -= pause
            if self._ca_bundle() != bundle:
                return

    def _troubled(self, why: str) -> None:
        if why != self.trouble:
            log.warning("%s", why)
            self.trouble = why
