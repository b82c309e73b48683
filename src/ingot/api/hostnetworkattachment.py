"""HostNetworkAttachment: how a switch port is to be configured: which VLANs, which MTU.

Hosts refer to it in `spec.networkInterfaces`; while one does, it can be neither changed nor deleted.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ingot.api.definition import AGE, Column, Definition
from ingot.api.meta import Model, Object, Resource
from ingot.api.schema import doc

PortMode = Literal["access", "trunk", "hybrid"]


class HostNetworkAttachmentSpec(Model):
    """The configuration of a port. Cannot be changed while a host refers to it."""

    allowed_vlans: Annotated[
        list[Annotated[str, doc("One VLAN, 100, or a range, 200-299.", pattern=r"^\d+(-\d+)?$")]],
        doc("Tagged VLANs that the port carries, one by one or as ranges: 100, 200-299. Not in access mode."),
    ] = msgspec.field(name="allowedVLANs", default_factory=list)
    mode: Annotated[
        PortMode,
        doc(
            "`access`: one VLAN, untagged. `trunk`: several, tagged. `hybrid`: both.",
            required=True,
            default="access",
        ),
    ] = "access"
    mtu: Annotated[int | None, doc("Largest packet of the port in bytes.", minimum=68, maximum=9216)] = None
    native_vlan: Annotated[
        int, doc("The untagged VLAN of the port.", required=True, minimum=1, maximum=4094)
    ] = msgspec.field(name="nativeVLAN", default=1)


class HostNetworkAttachment(Object):
    """The configuration of a switch port."""

    spec: Annotated[HostNetworkAttachmentSpec, doc("The configuration of the port.")] = msgspec.field(
        default_factory=HostNetworkAttachmentSpec
    )


HOST_NETWORK_ATTACHMENTS: Final = Resource(
    group="metal3.io",
    version="v1alpha1",
    kind="HostNetworkAttachment",
    plural="hostnetworkattachments",
    type=HostNetworkAttachment,
)

DEFINITION: Final = Definition(
    resource=HOST_NETWORK_ATTACHMENTS,
    description="How the switch ports of the BareMetalHosts that refer to it are to be configured.",
    columns=(
        Column("Mode", ".spec.mode", description="Untagged, tagged or both"),
        Column("Native VLAN", ".spec.nativeVLAN", type="integer", description="The untagged VLAN"),
        AGE,
    ),
)
