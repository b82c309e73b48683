"""PreprovisioningImage: the ramdisk that one host boots to be inspected, cleaned and installed.

Made for the host of the same namespace and name. Whoever builds images (ours or another's controller) reads the spec and answers
in the status; a host boots the image only when that answer fits the spec as it is now.
"""

from __future__ import annotations

import enum
from typing import Annotated, Final, Literal

import msgspec

from ingot.api.definition import Column, Definition
from ingot.api.meta import Condition, Model, Object, Resource
from ingot.api.schema import doc, map_list

ImageFormat = Literal["iso", "initrd"]

FINALIZER: Final = "preprovisioningimage.metal3.io"
"""Of the controller that builds images."""
HOST_FINALIZER: Final = "baremetalhost.metal3.io/preprovisioningImage"
"""Of the controller of the host."""


class ConditionType(enum.StrEnum):
    READY = "Ready"
    ERROR = "Error"


class ConditionReason(enum.StrEnum):
    SUCCESS = "ImageSuccess"
    CONFIGURATION_ERROR = "ConfigurationError"
    MISSING_NETWORK_DATA = "MissingNetworkData"
    BUILD_INVALID = "ImageBuildInvalid"


class NetworkDataStatus(Model):
    """Which version of which Secret is in the image."""

    name: Annotated[str, doc("Name of the Secret; empty if the image has no network configuration.")] = ""
    version: Annotated[str, doc("Its resourceVersion when the image was built.")] = ""


class PreprovisioningImageSpec(Model):
    """What the ramdisk is for."""

    accept_formats: Annotated[
        list[ImageFormat],
        doc(
            "Formats that the host can boot: `iso` for virtual media, `initrd` for network boot. Any one of them will do."
        ),
    ] = msgspec.field(default_factory=list)
    architecture: Annotated[str, doc("Architecture of the processor the image has to run on: x86_64.")] = ""
    network_data_name: Annotated[
        str, doc("Secret in the same namespace with the network configuration that goes into the image.")
    ] = ""


class PreprovisioningImageStatus(Model):
    """What was built."""

    architecture: Annotated[str, doc("Architecture the image was built for.")] = ""
    conditions: Annotated[
        list[Condition],
        doc("`Ready`: the image can be booted. `Error`: it cannot be built as asked.", **map_list("type")),
    ] = msgspec.field(default_factory=list)
    extra_kernel_params: Annotated[
        str, doc("Kernel arguments to boot an initrd with, in addition to the usual ones.")
    ] = ""
    format: Annotated[ImageFormat | None, doc("Format of the image.")] = None
    image_url: Annotated[str, doc("Where the image is, ISO or initrd.")] = ""
    kernel_url: Annotated[str, doc("Where the kernel for an initrd is; the usual one when empty.")] = ""
    network_data: Annotated[NetworkDataStatus, doc("The network configuration that is in the image.")] = (
        msgspec.field(default_factory=NetworkDataStatus)
    )
    version: Annotated[str, doc("The live image that it was made of, by its volume label.")] = ""


class PreprovisioningImage(Object):
    """A ramdisk for one host."""

    spec: Annotated[PreprovisioningImageSpec, doc("What the ramdisk is for.")] = msgspec.field(
        default_factory=PreprovisioningImageSpec
    )
    status: Annotated[PreprovisioningImageStatus, doc("What was built.")] = msgspec.field(
        default_factory=PreprovisioningImageStatus
    )


PREPROVISIONING_IMAGES: Final = Resource(
    group="metal3.io",
    version="v1alpha1",
    kind="PreprovisioningImage",
    plural="preprovisioningimages",
    type=PreprovisioningImage,
)

DEFINITION: Final = Definition(
    resource=PREPROVISIONING_IMAGES,
    description="The ramdisk that the BareMetalHost of the same name boots to be inspected, cleaned and installed.",
    short_names=("ppimg",),
    columns=(
        Column(
            "Ready", ".status.conditions[?(@.type=='Ready')].status", description="Whether it can be booted"
        ),
        Column("Reason", ".status.conditions[?(@.type=='Ready')].reason", description="Why, in one word"),
    ),
)
