"""Where Ironic is on the network: addresses, ports, DHCP, what others reach it by."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ingot.api.meta import Model
from ingot.api.schema import doc

AddressManager = Literal["", "keepalived"]

API_PORT: Final = 6385
IMAGE_PORT: Final = 6180
IMAGE_TLS_PORT: Final = 6183
RPC_PORT: Final = 6189
EXPORTER_PORT: Final = 9608

_PORT: Final = {"minimum": 1, "format": "int32"}


class DHCPRange(Model):
    """Addresses for hosts on one more network, which a DHCP relay forwards from."""

    network_cidr: Annotated[str, doc("The network: 192.168.7.0/24.", required=True)] = msgspec.field(
        name="networkCIDR", default=""
    )
    range_begin: Annotated[str, doc("First address that is given out.", required=True)] = ""
    range_end: Annotated[str, doc("Last address that is given out.", required=True)] = ""
    gateway_address: Annotated[str, doc("Router that hosts on this network use. Only for IPv4.")] = ""


class DHCP(Model):
    """Addresses for hosts that boot over the network."""

    dns_address: Annotated[str, doc("DNS server that hosts are told of. Not together with serveDNS.")] = ""
    extra_ranges: Annotated[list[DHCPRange], doc("Further networks, reached through DHCP relays.")] = (
        msgspec.field(default_factory=list)
    )
    gateway_address: Annotated[str, doc("Router that hosts are told of.")] = ""
    hosts: Annotated[
        list[str], doc("Fixed addresses, in dnsmasq's words: 52:54:00:12:34:56,192.168.0.7.")
    ] = msgspec.field(default_factory=list)
    ignore: Annotated[list[str], doc("Tags of hosts that get no answer, in dnsmasq's words.")] = (
        msgspec.field(default_factory=list)
    )
    network_cidr: Annotated[str, doc("The provisioning network: 172.22.0.0/24.")] = msgspec.field(
        name="networkCIDR", default=""
    )
    range_begin: Annotated[
        str, doc("First address that is given out; the tenth of the network when absent.")
    ] = ""
    range_end: Annotated[
        str, doc("Last address that is given out; the last but one that a host can have when absent.")
    ] = ""
    serve_dns: Annotated[
        bool, doc("Answer DNS queries of hosts, and tell them so. Not together with dnsAddress.")
    ] = msgspec.field(name="serveDNS", default=False)


class Ingress(Model):
    """An Ingress in front of the API."""

    annotations: Annotated[dict[str, str], doc("Annotations of the Ingress.")] = msgspec.field(
        default_factory=dict
    )
    host: Annotated[str, doc("Host name that the Ingress answers to.")] = ""
    ingress_class_name: Annotated[str, doc("Which Ingress controller; the default one when empty.")] = ""


class VirtualIP(Model):
    """One more address that keepalived holds."""

    interface: Annotated[str, doc("Interface that gets the address.", required=True, minLength=1)] = ""
    ip_address: Annotated[str, doc("The address.", required=True, minLength=1)] = ""
    prefix: Annotated[
        int | None, doc("Length of its prefix in bits.", minimum=0, maximum=128, format="int32")
    ] = None


class Keepalived(Model):
    """Let keepalived put ipAddress on the interface."""

    enabled: Annotated[
        bool, doc("Whether keepalived runs. Needs ipAddress and interface.", required=True)
    ] = False
    additional_vips: Annotated[list[VirtualIP], doc("Further addresses to hold.")] = msgspec.field(
        name="additionalVIPs", default_factory=list
    )


class Networking(Model):
    """Where Ironic is on the network."""

    api_port: Annotated[int, doc("Port of the Ironic API.", default=API_PORT, **_PORT)] = API_PORT
    bind_interface: Annotated[
        bool, doc("Listen on the provisioning interface only, instead of on all of them.")
    ] = False
    dhcp: Annotated[
        DHCP | None,
        doc("Give out addresses to hosts that boot over the network. Absent: something else does."),
    ] = None
    disable_host_network: Annotated[
        bool,
        doc(
            "Run in the network of the cluster instead of the node's. Then hosts are reached through virtual media only.",
            default=False,
        ),
    ] = False
    external_callback_url: Annotated[
        str,
        doc("URL of the API as the ramdisk reaches it. Together with imageServerExternalURL.", format="uri"),
    ] = msgspec.field(name="externalCallbackURL", default="")
    external_ip: Annotated[
        str, doc("Address that management controllers reach the images by, where it is another one.")
    ] = msgspec.field(name="externalIP", default="")
    image_server_external_url: Annotated[
        str,
        doc(
            "URL of the images as management controllers reach them. Together with externalCallbackURL.",
            format="uri",
        ),
    ] = msgspec.field(name="imageServerExternalURL", default="")
    image_server_port: Annotated[int, doc("Port of the image server.", default=IMAGE_PORT, **_PORT)] = (
        IMAGE_PORT
    )
    image_server_tls_port: Annotated[
        int,
        doc("Port of the image server for virtual media under TLS.", default=IMAGE_TLS_PORT, **_PORT),
    ] = msgspec.field(name="imageServerTLSPort", default=IMAGE_TLS_PORT)
    ingress: Annotated[Ingress | None, doc("Make an Ingress for the API.")] = None
    interface: Annotated[str, doc("Network interface of the provisioning network.")] = ""
    ip_address: Annotated[
        str, doc("Address of Ironic on the provisioning network. Not with highAvailability.")
    ] = ""
    ip_address_manager: Annotated[AddressManager | None, doc("An older way to write keepalived.enabled.")] = (
        None
    )
    keepalived: Annotated[Keepalived | None, doc("Let keepalived put ipAddress on the interface.")] = None
    mac_addresses: Annotated[
        list[str],
        doc("The provisioning interface by its MAC address; one of several, where each node has its own."),
    ] = msgspec.field(default_factory=list)
    prometheus_exporter_port: Annotated[
        int, doc("Port of the metrics of hosts.", default=EXPORTER_PORT, **_PORT)
    ] = EXPORTER_PORT
    rpc_port: Annotated[
        int, doc("Port that the replicas talk to each other on.", default=RPC_PORT, **_PORT)
    ] = RPC_PORT
