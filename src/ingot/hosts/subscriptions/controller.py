"""BMCEventSubscription: have the events of a host's management controller posted to somebody's URL.

A subscription has its own name and names its host, and several can name one host; so it has a worker of its own, woken by its own
changes, by its host, and by the Secret with its headers. Waiting for any of these is waiting by watch, with a sentence in
`status.error`. What is done then is in `subscribing`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ingot.api.baremetalhost import BareMetalHost
from ingot.api.bmceventsubscription import BMC_EVENT_SUBSCRIPTIONS, BMCEventSubscription
from ingot.api.meta import PartialObjectMetadata
from ingot.hosts.subscriptions.headers import headers_secret
from ingot.hosts.subscriptions.subscribing import BY_HOST, SubscriptionReconciler, host_key, obstacle
from ingot.kube import Client, Controller, EventRecorder, Informer, follow, named_in
from ingot.provisioner import Provisioner

BY_SECRET: Final = "secret"  # noqa: S105 - the name of an index


def _secrets_of(subscription: BMCEventSubscription) -> Iterable[str]:
    key = headers_secret(subscription)
    return [] if key is None else [str(key)]


class SubscriptionController:
    """The subscriptions of one API and one back end, ready to be run."""

    def __init__(
        self,
        client: Client,
        backend: Provisioner,
        recorder: EventRecorder,
        *,
        hosts: Informer[BareMetalHost],
        secrets: Informer[PartialObjectMetadata],
        namespace: str = "",
        workers: int = 8,
    ) -> None:
        self.subscriptions = Informer(
            client,
            BMC_EVENT_SUBSCRIPTIONS,
            namespace=namespace,
            indexes={BY_HOST: lambda one: [str(host_key(one))], BY_SECRET: _secrets_of},
        )
        self.reconciler = SubscriptionReconciler(
            client, backend, recorder, subscriptions=self.subscriptions, hosts=hosts, secrets=secrets
        )
        self.controller = Controller("subscriptions", self.reconciler, workers=workers)
        follow(self.controller, self.subscriptions, when=_more_than_status)
        follow(self.controller, hosts, named_in(self.subscriptions, BY_HOST), when=_reachable_otherwise)
        follow(self.controller, secrets, named_in(self.subscriptions, BY_SECRET))

    @property
    def informers(self) -> list[Informer[Any]]:
        """What this adds to the informers of the hosts and Secrets."""
        return [self.subscriptions]


def _more_than_status(old: BMCEventSubscription, new: BMCEventSubscription) -> bool:
    return old.metadata.finalizers != new.metadata.finalizers or (
        old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
    )


def _reachable_otherwise(old: BareMetalHost, new: BareMetalHost) -> bool:
    return (
        obstacle(old, old.key) != obstacle(new, new.key)
        or old.status.provisioning.id != new.status.provisioning.id
    )
