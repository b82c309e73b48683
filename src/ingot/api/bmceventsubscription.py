"""BMCEventSubscription: what a management controller notices, posted to somebody's URL.

Names its host in `spec.hostName`; both are in the same namespace. A subscription is never changed: the management controller
keeps it under an ID of its own, so another destination is another subscription.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ingot.api.definition import AGE, Column, Definition
from ingot.api.meta import Model, Object, Resource, SecretReference
from ingot.api.schema import ATOMIC_MAP, doc

FINALIZER: Final = "bmceventsubscription.metal3.io"


class BMCEventSubscriptionSpec(Model):
    """Which events go where. Cannot be changed."""

    context: Annotated[str, doc("Text that the management controller sends along with every event.")] = ""
    destination: Annotated[
        str,
        doc(
            "URL that events are posted to, with its path: https://collector.example.com/events, or at least a "
            "slash at the end."
        ),
    ] = ""
    host_name: Annotated[str, doc("The BareMetalHost whose management controller is to send events.")] = ""
    http_headers_ref: Annotated[
        SecretReference | None,
        doc(
            "Secret in the same namespace with HTTP headers to send along, one a key: Authorization.",
            **ATOMIC_MAP,
        ),
    ] = None


class BMCEventSubscriptionStatus(Model):
    """What became of it."""

    error: Annotated[str, doc("Why the subscription cannot be made; empty when it is there.")] = ""
    subscription_id: Annotated[str, doc("What the management controller calls the subscription.")] = (
        msgspec.field(name="subscriptionID", default="")
    )


class BMCEventSubscription(Object):
    """One receiver of one management controller's events."""

    spec: Annotated[BMCEventSubscriptionSpec, doc("Which events go where. Cannot be changed.")] = (
        msgspec.field(default_factory=BMCEventSubscriptionSpec)
    )
    status: Annotated[BMCEventSubscriptionStatus, doc("What became of the subscription.")] = msgspec.field(
        default_factory=BMCEventSubscriptionStatus
    )


BMC_EVENT_SUBSCRIPTIONS: Final = Resource(
    group="metal3.io",
    version="v1alpha1",
    kind="BMCEventSubscription",
    plural="bmceventsubscriptions",
    type=BMCEventSubscription,
)

DEFINITION: Final = Definition(
    resource=BMC_EVENT_SUBSCRIPTIONS,
    description="Asks the management controller of a BareMetalHost to post its events to a URL.",
    short_names=("bes", "bmcevent"),
    columns=(Column("Error", ".status.error", description="Why the subscription cannot be made"), AGE),
)
