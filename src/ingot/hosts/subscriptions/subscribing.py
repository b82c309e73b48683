"""Making a BMCEventSubscription at the management controller, and ending it there before it goes.

Made once: our finalizer is on it before the management controller is asked, and the ID is written afterwards. Whoever finds the
first without the second was interrupted in between; the back end finds what it has made then. Nothing is left to end when the
host is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any, Final

from msgspec.structs import replace

from ingot.api.admission import check
from ingot.api.baremetalhost import Annotation, BareMetalHost, OperationalStatus
from ingot.api.bmceventsubscription import (
    BMC_EVENT_SUBSCRIPTIONS,
    FINALIZER,
    BMCEventSubscription,
    BMCEventSubscriptionStatus,
)
from ingot.api.meta import Key, Malformed, PartialObjectMetadata
from ingot.api.wire import wire
from ingot.hosts.finalizers import without
from ingot.hosts.outcome import SOON
from ingot.hosts.patches import status_difference
from ingot.hosts.retries import Grounds, Retries
from ingot.hosts.subscriptions.headers import headers_secret, read_headers
from ingot.kube import Again, Client, Done, EventRecorder, Informer, NotFound
from ingot.provisioner import (
    BackendUnavailable,
    Busy,
    Failed,
    HostRef,
    NotRegistered,
    Provisioner,
    Ready,
    Subscription,
)
from ingot.trust import redact

log = logging.getLogger(__name__)

BY_HOST: Final = "host"
"""The index of subscriptions by the key of their host."""
FORGOTTEN: Final = 30.0
"""Seconds until a back end is asked again that does not know a host which was registered; the host's own pass mends that."""
LEFT_BEHIND: Final = "SubscriptionLeftBehind"
"""The reason of the Event that says so."""


def host_key(subscription: BMCEventSubscription) -> Key:
    return Key(subscription.metadata.namespace, subscription.spec.host_name)


def obstacle(host: BareMetalHost | None, key: Key) -> str:
    """Why the back end cannot be asked about the host now; "" when it can. A change of the host ends it."""
    if host is None:
        return f"BareMetalHost {key.name} does not exist in namespace {key.namespace}"
    if Annotation.PAUSED in host.metadata.annotations:
        return f"BareMetalHost {key.name} is paused"
    if host.status.operational_status is OperationalStatus.DETACHED:
        return f"BareMetalHost {key.name} is detached"
    return "" if host.status.provisioning.id else f"BareMetalHost {key.name} is not registered yet"


class SubscriptionReconciler:
    def __init__(
        self,
        client: Client,
        backend: Provisioner,
        recorder: EventRecorder,
        *,
        subscriptions: Informer[BMCEventSubscription],
        hosts: Informer[BareMetalHost],
        secrets: Informer[PartialObjectMetadata],
    ) -> None:
        self._client = client
        self._backend = backend
        self._recorder = recorder
        self._subscriptions = subscriptions
        self._hosts = hosts
        self._secrets = secrets
        self._retries = Retries(lambda: asyncio.get_running_loop().time())
        self._failures: dict[Key, int] = {}

    async def __call__(self, key: Key) -> Done | Again:
        subscription = self._subscriptions.get(key)
        if subscription is None:
            self._succeeded(key)
            return Done()
        grounds = self._grounds(subscription)
        if left := self._retries.remaining(key, grounds=grounds):
            return Again(left, subscription.status.error)
        if self._retries.starts_over(key, grounds=grounds):
            self._succeeded(key)
        leaving = subscription.metadata.deletion_timestamp is not None
        try:
            turn = self._end if leaving else self._make
            return await turn(subscription, grounds)
        except BackendUnavailable as error:
            log.info("%s: the back end is away: %s", key, redact(str(error)))
            return Again(SOON, "the back end is away")

    # Making

    async def _make(self, subscription: BMCEventSubscription, grounds: Grounds) -> Done | Again:
        if subscription.status.subscription_id:
            await self._note(subscription, error="")
            return Done()
        if (why := self._not_yet(subscription)) or not (host := self._hosts.get(host_key(subscription))):
            await self._note(subscription, error=why)
            return Done()
        try:
            headers = await read_headers(self._client, subscription)
        except Malformed as error:
            await self._note(subscription, error=str(error))
            return Done()
        if FINALIZER not in subscription.metadata.finalizers:
            kept = [*subscription.metadata.finalizers, FINALIZER]
            subscription = await self._patch(subscription, {"metadata": {"finalizers": kept}})
        wanted = Subscription(
            destination=subscription.spec.destination, context=subscription.spec.context, headers=headers
        )
        again = subscription.key in self._failures
        match await self._backend.subscribe(_ref(host), wanted, again=again):
            case Ready(name):
                await self._note(subscription, subscription_id=name, error="")
                self._succeeded(subscription.key)
                return Done()
            case Failed(message):
                return await self._failed(subscription, message, grounds)
            case NotRegistered(why):
                await self._note(subscription, error=_sentence(why))
                return Again(FORGOTTEN, why)
            case Busy(why):
                return Again(SOON, why)

    def _not_yet(self, subscription: BMCEventSubscription) -> str:
        """Why the management controller is not asked, as the user reads it; "" when it is."""
        kind = BMC_EVENT_SUBSCRIPTIONS
        if errors := check(kind.group, kind.kind, wire(subscription), None):
            # The API refuses such a subscription; a cluster whose webhook is off does not.
            return "; ".join(str(error) for error in errors)
        key = host_key(subscription)
        host = self._hosts.get(key)
        why = obstacle(host, key)
        if host is not None and host.metadata.deletion_timestamp is not None:
            why = f"BareMetalHost {key.name} is being deleted"
        return f"{why}. The subscription is made as soon as that changes." if why else ""

    # Ending

    async def _end(self, subscription: BMCEventSubscription, grounds: Grounds) -> Done | Again:
        if FINALIZER not in subscription.metadata.finalizers:
            return Done()
        key = host_key(subscription)
        host = self._hosts.get(key)
        name = subscription.status.subscription_id
        if host is None or (name and self._used_by_another(subscription)):
            return await self._let_go(subscription)
        if why := obstacle(host, key):
            if not name:
                return await self._let_go(subscription)
            await self._note(
                subscription,
                error=f"{why}. The subscription is ended as soon as that changes, or goes with the host.",
            )
            return Done()
        if not name:
            return await self._end_unnamed(subscription, host)
        match await self._backend.unsubscribe(_ref(host), name, again=subscription.key in self._failures):
            case Ready():
                return await self._let_go(subscription)
            case Failed(message):
                return await self._failed(subscription, message, grounds)
            case NotRegistered(why):
                await self._note(subscription, error=_sentence(why))
                return Again(FORGOTTEN, why)
            case Busy(why):
                return Again(SOON, why)

    async def _end_unnamed(self, subscription: BMCEventSubscription, host: BareMetalHost) -> Done | Again:
        """We may have been interrupted before the ID was written. Asked for it again, the back end finds it, if it is there."""
        spec = subscription.spec
        wanted = Subscription(destination=spec.destination, context=spec.context)
        match await self._backend.subscribe(_ref(host), wanted, again=True):
            case Ready(name):
                await self._note(subscription, subscription_id=name)
                return Again(0, "the subscription was found, and is ended")
            case Failed(message):
                # It was never seen to be there, and cannot be looked for.
                self._tell_left_behind(subscription, message)
                return await self._let_go(subscription)
            case Busy(why) | NotRegistered(why):
                return Again(SOON, why)

    def _used_by_another(self, subscription: BMCEventSubscription) -> bool:
        """Two subscriptions to the same destination are one to the management controller."""
        same = self._subscriptions.by_index(BY_HOST, str(host_key(subscription)))
        return any(
            other.key != subscription.key
            and other.status.subscription_id == subscription.status.subscription_id
            and other.metadata.deletion_timestamp is None
            for other in same
        )

    async def _let_go(self, subscription: BMCEventSubscription) -> Done:
        left = without(subscription.metadata.finalizers, FINALIZER)
        with contextlib.suppress(NotFound):
            await self._patch(subscription, {"metadata": {"finalizers": left}})
        self._succeeded(subscription.key)
        return Done()

    # Failures

    async def _failed(self, subscription: BMCEventSubscription, message: str, grounds: Grounds) -> Again:
        """`grounds`: what the attempt was made on. What changed since then has not been tried."""
        message = _sentence(message)
        failures = self._failures[subscription.key] = self._failures.get(subscription.key, 0) + 1
        wait = self._retries.pause(failures)
        self._retries.failed(subscription.key, wait, grounds=grounds)
        await self._note(subscription, error=message)
        return Again(wait, message)

    def _succeeded(self, key: Key) -> None:
        self._retries.forget(key)
        self._failures.pop(key, None)

    def _grounds(self, subscription: BMCEventSubscription) -> Grounds:
        """What an attempt depends on: as soon as that is different, the next one is due."""
        host = self._hosts.get(host_key(subscription))
        key = headers_secret(subscription)
        secret = self._secrets.get(key) if key is not None else None
        return Grounds(
            (
                f"{host.metadata.uid}/{host.status.provisioning.id}" if host is not None else "",
                secret.metadata.resource_version if secret is not None else "",
            ),
            deleting=subscription.metadata.deletion_timestamp is not None,
        )

    def _tell_left_behind(self, subscription: BMCEventSubscription, why: str) -> None:
        self._recorder.record(
            subscription,
            type="Warning",
            reason=LEFT_BEHIND,
            message=f"The management controller may still send events to {redact(subscription.spec.destination)}: "
            f"{redact(why)}",
        )

    # Writing

    async def _note(self, subscription: BMCEventSubscription, **fields: str) -> None:
        status: BMCEventSubscriptionStatus = replace(subscription.status, **fields)
        if patch := status_difference(subscription.status, status):
            await self._patch(subscription, {"status": patch}, subresource="status")

    async def _patch(
        self, subscription: BMCEventSubscription, patch: dict[str, Any], subresource: str = ""
    ) -> BMCEventSubscription:
        written = await self._client.patch(
            BMC_EVENT_SUBSCRIPTIONS,
            subscription.key,
            patch,
            subresource=subresource,
            resource_version=subscription.metadata.resource_version,
        )
        if written.metadata.finalizers or written.metadata.deletion_timestamp is None:
            self._subscriptions.observe(written)
        return written


def _sentence(text: str) -> str:
    return f"{redact(text).rstrip('.')}."


def _ref(host: BareMetalHost) -> HostRef:
    return HostRef(host.key, host.metadata.uid, host.status.provisioning.id)
