"""DataImage: an ISO image with data for a host in use, attached to it as a virtual CD.

Belongs to the host of the same namespace and name. Attached and detached only while the host is off, on its way to
being switched on.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec

from ingot.api.definition import Definition
from ingot.api.meta import Model, Object, Resource
from ingot.api.schema import doc

FINALIZER: Final = "dataimage.metal3.io"


class DataImageSpec(Model):
    """What to attach."""

    url: Annotated[
        str,
        doc(
            "Where the ISO image is: an http or https URL the management controller can reach.", required=True
        ),
    ] = ""


class AttachedImage(Model):
    url: Annotated[str, doc("URL of the image that is attached.", required=True)] = ""


class DataImageError(Model):
    """What went wrong."""

    count: Annotated[int, doc("Failures since the last success.", required=True)] = 0
    message: Annotated[str, doc("What went wrong, in words.", required=True)] = ""


class DataImageStatus(Model):
    """What is attached."""

    attached_image: Annotated[AttachedImage | None, doc("The image that is attached now.")] = None
    error: Annotated[DataImageError | None, doc("Why the image cannot be attached or detached.")] = None
    last_reconciled: Annotated[datetime | None, doc("When the image was last looked after.")] = None


class DataImage(Object):
    """An ISO image for one host in use."""

    spec: Annotated[DataImageSpec, doc("What to attach at the next reboot.")] = msgspec.field(
        default_factory=DataImageSpec
    )
    status: Annotated[DataImageStatus, doc("What is attached.")] = msgspec.field(
        default_factory=DataImageStatus
    )


DATA_IMAGES: Final = Resource(
    group="metal3.io", version="v1alpha1", kind="DataImage", plural="dataimages", type=DataImage
)

DEFINITION: Final = Definition(
    resource=DATA_IMAGES,
    description="An ISO image that the BareMetalHost of the same name finds in a virtual CD drive after its next reboot.",
    columns=(),
)
