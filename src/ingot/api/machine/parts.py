"""What Machine and MachineSet have in common: the description of a machine, and the conditions of both."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from ingot.api.baremetalhost import Taint
from ingot.api.meta import LABEL_KEY_PATTERN, Model, OwnerReference
from ingot.api.schema import ATOMIC_LIST, ATOMIC_MAP, JsonObject, doc, map_list


class LifecycleHook(Model):
    """Somebody who has to be waited for."""

    name: Annotated[
        str,
        doc("Name of the hook, unique in its list.", minLength=3, maxLength=256, pattern=LABEL_KEY_PATTERN),
    ]
    owner: Annotated[str, doc("Who set the hook and will remove it.", minLength=3, maxLength=512)]


class LifecycleHooks(Model):
    """Whom to wait for while a machine is deleted."""

    pre_drain: Annotated[
        list[LifecycleHook], doc("Wait for these before the node is drained.", **map_list("name"))
    ] = msgspec.field(default_factory=list)
    pre_terminate: Annotated[
        list[LifecycleHook], doc("Wait for these before the host is released.", **map_list("name"))
    ] = msgspec.field(default_factory=list)


class TemplateMetadata(Model):
    """Metadata for what is made from a description."""

    annotations: Annotated[dict[str, str], doc("Annotations to set.")] = msgspec.field(default_factory=dict)
    generate_name: Annotated[str, doc("Beginning of a name that the API completes.")] = ""
    labels: Annotated[dict[str, str], doc("Labels to set.")] = msgspec.field(default_factory=dict)
    name: Annotated[str, doc("A name.")] = ""
    namespace: Annotated[str, doc("A namespace.")] = ""
    owner_references: Annotated[
        list[Annotated[OwnerReference, doc("One owner.", **ATOMIC_MAP)]],
        doc("Objects that own what is made.", **map_list("uid")),
    ] = msgspec.field(default_factory=list)


class ProviderSpec(Model):
    value: Annotated[
        JsonObject | None,
        doc(
            "A BareMetalMachineProviderSpec (baremetal.cluster.k8s.io/v1alpha1): image or customDeploy, userData, "
            "hostSelector."
        ),
    ] = None


class MachineSpec(Model):
    """What is wanted of a machine."""

    lifecycle_hooks: Annotated[LifecycleHooks, doc("Whom to wait for while the machine is deleted.")] = (
        msgspec.field(default_factory=LifecycleHooks)
    )
    metadata: Annotated[
        TemplateMetadata, doc("Labels and annotations that the node of the machine gets.")
    ] = msgspec.field(default_factory=TemplateMetadata)
    provider_id: Annotated[
        str,
        doc(
            "Which host the machine is: baremetalhost:///NAMESPACE/NAME/UID. Set once, when a host was found."
        ),
    ] = msgspec.field(name="providerID", default="")
    provider_spec: Annotated[ProviderSpec, doc("Which host will do, and what is installed on it.")] = (
        msgspec.field(default_factory=ProviderSpec)
    )
    taints: Annotated[
        list[Taint], doc("Taints that the node of the machine gets; others are left alone.", **ATOMIC_LIST)
    ] = msgspec.field(default_factory=list)


class MachineCondition(Model):
    """One aspect of a machine's state. An older form of condition, with a severity."""

    last_transition_time: Annotated[datetime, doc("When `status` last changed.")]
    status: Annotated[str, doc("Whether it holds: True, False or Unknown.")]
    type: Annotated[str, doc("Which aspect this is.")]
    message: Annotated[str, doc("Why, in a sentence for people.")] = ""
    reason: Annotated[str, doc("Why, in one word that programs can compare.")] = ""
    severity: Annotated[str, doc("How bad it is while it does not hold: Error, Warning or Info.")] = ""
