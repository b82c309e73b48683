"""What a user changes in the pods of Ironic.

Parts of pods are Kubernetes' own. They are kept as they are, and checked by the API that gets the pods.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ingot.api.meta import Model
from ingot.api.schema import JsonObject, doc, part_named

AgentArchitecture = Literal["", "x86_64", "aarch64"]


class AgentImages(Model):
    """The ramdisk for hosts of one architecture."""

    initramfs: Annotated[
        str, doc("Where the initramfs is: an http, https, oci or file URL.", required=True, format="uri")
    ] = ""
    kernel: Annotated[
        str, doc("Where the kernel is: an http, https, oci or file URL.", required=True, format="uri")
    ] = ""
    architecture: Annotated[AgentArchitecture, doc("Architecture it is for; every other one when empty.")] = (
        ""
    )


_CONTAINER = part_named(
    "A container as in the spec of a Pod (core/v1).",
    name="One of the containers of Ironic replaces it; any other is added.",
)
_VOLUME = part_named(
    "A volume as in the spec of a Pod (core/v1).",
    name="One of the volumes of Ironic replaces it; others are added.",
)


class Overrides(Model):
    """What is different in the pods."""

    agent_images: Annotated[list[AgentImages], doc("Ramdisks to use instead of the usual one.")] = (
        msgspec.field(default_factory=list)
    )
    annotations: Annotated[dict[str, str], doc("Annotations that the pods get.")] = msgspec.field(
        default_factory=dict
    )
    containers: Annotated[
        list[Annotated[JsonObject, _CONTAINER]], doc("Containers to replace, by name, or to add.")
    ] = msgspec.field(default_factory=list)
    httpd_liveness_probe: Annotated[
        JsonObject | None,
        doc("Liveness probe of the image server, as in the spec of a Pod (core/v1 Probe)."),
    ] = None
    httpd_readiness_probe: Annotated[
        JsonObject | None,
        doc("Readiness probe of the image server, as in the spec of a Pod (core/v1 Probe)."),
    ] = None
    init_containers: Annotated[
        list[Annotated[JsonObject, _CONTAINER]], doc("Init containers to replace, by name, or to add.")
    ] = msgspec.field(default_factory=list)
    labels: Annotated[dict[str, str], doc("Labels that the pods get.")] = msgspec.field(default_factory=dict)
    volumes: Annotated[
        list[Annotated[JsonObject, _VOLUME]], doc("Volumes to replace, by name, or to add.")
    ] = msgspec.field(default_factory=list)
