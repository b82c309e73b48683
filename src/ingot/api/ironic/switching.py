"""The networking service of Ironic: switch ports that follow what a host is doing."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ingot.api.hostnetworkattachment import PortMode
from ingot.api.meta import Model
from ingot.api.schema import doc

NetworkType = Literal["idle", "inspection", "cleaning", "rescuing", "servicing", "provisioning"]


class ProviderNetwork(Model):
    """The network of a host while it is in one phase."""

    type: Annotated[NetworkType, doc("The phase.")]
    allowed_vlans: Annotated[
        list[str], doc("Tagged VLANs of the port, one by one or as ranges: 100, 200-299. Not in access mode.")
    ] = msgspec.field(name="allowedVLANs", default_factory=list)
    mode: Annotated[
        PortMode,
        doc(
            "`access`: one VLAN, untagged. `trunk`: several, tagged. `hybrid`: both.",
            required=True,
            default="access",
        ),
    ] = "access"
    mtu: Annotated[
        int | None, doc("Largest packet of the port in bytes.", minimum=1280, maximum=9216, format="int32")
    ] = None
    native_vlan: Annotated[
        int,
        doc("The untagged VLAN of the port.", required=True, minimum=1, maximum=4094, format="int32"),
    ] = msgspec.field(name="nativeVLAN", default=1)


class NetworkingService(Model):
    """Configures the switch ports of hosts."""

    enabled: Annotated[bool, doc("Whether the service runs.", default=False)] = False
    provider_networks: Annotated[
        list[ProviderNetwork], doc("The network of a host in each phase, at most one for a phase.")
    ] = msgspec.field(default_factory=list)
    switch_config_secret_name: Annotated[
        str, doc("Secret with the description of the switches; made when empty.")
    ] = ""
    switch_credentials_secret_name: Annotated[
        str, doc("Secret with the keys to the switches; made when empty.")
    ] = ""
