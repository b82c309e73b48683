"""MachineSet: a number of machines, all alike."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ingot.api.definition import AGE, Column, Definition, Scale
from ingot.api.machine.parts import MachineCondition, MachineSpec, TemplateMetadata
from ingot.api.meta import Model, Object, Resource
from ingot.api.schema import ATOMIC_LIST, ATOMIC_MAP, doc, map_list

DeletePolicy = Literal["Random", "Newest", "Oldest"]


class LabelSelectorRequirement(Model):
    """One demand on one label."""

    key: Annotated[str, doc("The label.", required=True)] = ""
    operator: Annotated[
        str, doc("How its value is compared: In, NotIn, Exists or DoesNotExist.", required=True)
    ] = ""
    values: Annotated[list[str], doc("The values to compare with.", **ATOMIC_LIST)] = msgspec.field(
        default_factory=list
    )


class LabelSelector(Model):
    """Which objects are meant, by their labels."""

    match_expressions: Annotated[
        list[LabelSelectorRequirement], doc("Demands on single labels.", **ATOMIC_LIST)
    ] = msgspec.field(default_factory=list)
    match_labels: Annotated[dict[str, str], doc("Labels with exactly these values.")] = msgspec.field(
        default_factory=dict
    )


class MachineTemplate(Model):
    """What each machine looks like."""

    metadata: Annotated[TemplateMetadata, doc("Labels and annotations of each machine.")] = msgspec.field(
        default_factory=TemplateMetadata
    )
    spec: Annotated[MachineSpec, doc("What is wanted of each machine.")] = msgspec.field(
        default_factory=MachineSpec
    )


class MachineSetSpec(Model):
    """How many machines, and what they look like."""

    delete_policy: Annotated[
        DeletePolicy | None,
        doc(
            "Which machines go first when there are too many, after those that are marked or not well; Newest when absent."
        ),
    ] = None
    min_ready_seconds: Annotated[
        int, doc("How long a machine has to be ready before it counts as available.", format="int32")
    ] = 0
    replicas: Annotated[int, doc("How many machines there are to be.", default=1, format="int32")] = 1
    selector: Annotated[
        LabelSelector, doc("The machines that belong to the set; has to fit the template.", **ATOMIC_MAP)
    ] = msgspec.field(default_factory=LabelSelector)
    template: Annotated[MachineTemplate, doc("What each machine looks like.")] = msgspec.field(
        default_factory=MachineTemplate
    )


class MachineSetStatus(Model):
    """How many machines there are."""

    available_replicas: Annotated[
        int, doc("Machines that have been ready for minReadySeconds.", format="int32")
    ] = 0
    conditions: Annotated[list[MachineCondition], doc("The state of the set.", **map_list("type"))] = (
        msgspec.field(default_factory=list)
    )
    error_message: Annotated[str, doc("What is wrong, in words; empty when all is well.")] = ""
    error_reason: Annotated[str, doc("What is wrong, in one word.")] = ""
    fully_labeled_replicas: Annotated[
        int, doc("Machines that have all labels of the template.", format="int32")
    ] = 0
    label_selector: Annotated[
        str, doc("The selector as text, for autoscalers.", minLength=1, maxLength=4096)
    ] = ""
    observed_generation: Annotated[
        int, doc("The generation of the set that this was said of.", format="int64")
    ] = 0
    ready_replicas: Annotated[int, doc("Machines whose node is ready.", format="int32")] = 0
    replicas: Annotated[int, doc("Machines there are.", format="int32")] = 0


class MachineSet(Object):
    """A number of machines, all alike."""

    spec: Annotated[MachineSetSpec, doc("How many machines, and what they look like.")] = msgspec.field(
        default_factory=MachineSetSpec
    )
    status: Annotated[MachineSetStatus, doc("How many machines there are.")] = msgspec.field(
        default_factory=MachineSetStatus
    )


MACHINE_SETS: Final = Resource(
    group="machine.openshift.io", version="v1beta1", kind="MachineSet", plural="machinesets", type=MachineSet
)

DEFINITION: Final = Definition(
    resource=MACHINE_SETS,
    description="Keeps a number of Machines that are all alike.",
    columns=(
        Column("Desired", ".spec.replicas", type="integer", description="Machines there are to be"),
        Column("Current", ".status.replicas", type="integer", description="Machines there are"),
        Column("Ready", ".status.readyReplicas", type="integer", description="Those whose node is ready"),
        Column(
            "Available", ".status.availableReplicas", description="Those that have been ready for a while"
        ),
        AGE,
    ),
    scale=Scale(wanted=".spec.replicas", present=".status.replicas", selector=".status.labelSelector"),
)
