"""What the user wants of Ironic.

`credentialsRef`, `databaseRef` and `tlsRef` are a second way to write `apiCredentialsName`, `database` and `tls.certificateName`;
`ingot.api.ironic.spelling` reads them as one.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ingot.api.ironic.networking import Networking
from ingot.api.ironic.overrides import Overrides
from ingot.api.ironic.switching import NetworkingService
from ingot.api.meta import Model
from ingot.api.schema import doc


class LocalReference(Model):
    """Points at an object in the same namespace."""

    name: Annotated[str, doc("Name of the object.", required=True)] = ""


class Database(Model):
    """A MariaDB that somebody else runs."""

    credentials_name: Annotated[
        str, doc("Secret with the keys `username` and `password`.", required=True)
    ] = ""
    host: Annotated[str, doc("Where it is: HOST or HOST:PORT.", required=True)] = ""
    name: Annotated[str, doc("Name of the database inside it.", required=True)] = ""
    tls_certificate_name: Annotated[
        str, doc("Secret with the CA that signed its certificate, under the key `tls.crt`.")
    ] = ""


class DeployRamdisk(Model):
    """The ramdisk that hosts boot."""

    disable_downloader: Annotated[bool, doc("Do not fetch the ramdisk; it is there already.")] = False
    extra_kernel_params: Annotated[
        str, doc("Kernel arguments for the ramdisk, in addition to the usual ones.")
    ] = ""
    ssh_key: Annotated[str, doc("Public SSH key that may log in to the ramdisk.")] = ""


class ExtraConfig(Model):
    """One option of ironic.conf."""

    group: Annotated[str, doc("Section of the file; DEFAULT when empty.")] = ""
    name: Annotated[str, doc("Name of the option.")] = ""
    value: Annotated[str, doc("Its value.")] = ""


class Images(Model):
    """Container images to use instead of the usual ones."""

    deploy_ramdisk_branch: Annotated[str, doc("Which build of the ramdisk to fetch.")] = ""
    deploy_ramdisk_downloader: Annotated[str, doc("Image that fetches the ramdisk.")] = ""
    ironic: Annotated[str, doc("Image that runs Ironic and what belongs to it.")] = ""
    keepalived: Annotated[str, doc("Image that runs keepalived.")] = ""


class Inspection(Model):
    """How hosts are inspected."""

    collectors: Annotated[list[str], doc("What the ramdisk agent collects, in its own words.")] = (
        msgspec.field(default_factory=list)
    )
    vlan_interfaces: Annotated[
        list[str], doc("Interfaces on which the ramdisk agent opens the VLANs it hears of.")
    ] = msgspec.field(default_factory=list)


EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - the published default of what serves metrics, read-only


class PrometheusExporter(Model):
    """Metrics of the sensors of hosts."""

    enabled: Annotated[bool, doc("Whether sensors are read.", required=True)] = False
    bind_address: Annotated[str, doc("Address that the metrics are served on.", default=EVERYWHERE)] = (
        EVERYWHERE
    )
    disable_service_monitor: Annotated[bool, doc("Do not make a ServiceMonitor for Prometheus.")] = False
    sensor_collection_interval: Annotated[
        int, doc("Seconds from one reading of the sensors to the next.", default=60, minimum=60)
    ] = 60


ResourceKind = Literal["ConfigMap", "Secret"]


class ResourceReference(Model):
    """Points at a ConfigMap or Secret in the same namespace."""

    kind: Annotated[ResourceKind | None, doc("ConfigMap or Secret.", required=True)] = None
    name: Annotated[str, doc("Its name.", required=True)] = ""


class KeyReference(ResourceReference):
    """Points at one key of it, or at all of them."""

    key: Annotated[str, doc("The key to read; all of them when empty.")] = ""


class TLS(Model):
    """Certificates: which one Ironic shows, and which it trusts."""

    bmc_ca: Annotated[
        ResourceReference | None, doc("CAs that signed the certificates of management controllers.")
    ] = msgspec.field(name="bmcCA", default=None)
    bmc_ca_name: Annotated[str, doc("An older way to write bmcCA: the name of a Secret.")] = msgspec.field(
        name="bmcCAName", default=""
    )
    certificate_name: Annotated[
        str,
        doc(
            "Secret with the certificate of the API, keys `tls.crt` and `tls.key`. Made, and renewed, when empty."
        ),
    ] = ""
    disable_virtual_media_tls: Annotated[
        bool,
        doc("Serve virtual media without TLS, for management controllers that trust no private CA."),
    ] = msgspec.field(name="disableVirtualMediaTLS", default=False)
    insecure_rpc: Annotated[
        bool | None,
        doc(
            "Has no effect: replicas always talk to each other under TLS, from a CA of their own. Only with "
            "highAvailability."
        ),
    ] = msgspec.field(name="insecureRPC", default=None)
    trusted_ca: Annotated[
        KeyReference | None, doc("CAs that Ironic trusts in addition, for images and registries.")
    ] = msgspec.field(name="trustedCA", default=None)
    trusted_ca_name: Annotated[str, doc("An older way to write trustedCA: the name of a ConfigMap.")] = (
        msgspec.field(name="trustedCAName", default="")
    )


class IronicSpec(Model):
    """What is wanted of Ironic. With an empty spec it runs on one node, with SQLite."""

    api_credentials_name: Annotated[
        str, doc("Secret with the keys `username` and `password` of the API. Made when empty.")
    ] = ""
    credentials_ref: Annotated[LocalReference | None, doc("Another way to write apiCredentialsName.")] = None
    database: Annotated[
        Database | None, doc("A MariaDB that somebody else runs. Without it and databaseRef: SQLite.")
    ] = None
    database_ref: Annotated[
        LocalReference | None, doc("An IronicDatabase in the same namespace, instead of `database`.")
    ] = None
    deploy_ramdisk: Annotated[DeployRamdisk, doc("The ramdisk that hosts boot.")] = msgspec.field(
        default_factory=DeployRamdisk
    )
    extra_config: Annotated[
        list[ExtraConfig], doc("Options of ironic.conf. They win over what is set for other reasons.")
    ] = msgspec.field(default_factory=list)
    high_availability: Annotated[
        bool, doc("Run on every control plane node. Needs a database that the replicas share.")
    ] = False
    images: Annotated[Images, doc("Container images to use instead of the usual ones.")] = msgspec.field(
        default_factory=Images
    )
    inspection: Annotated[Inspection, doc("How hosts are inspected.")] = msgspec.field(
        default_factory=Inspection
    )
    networking: Annotated[Networking, doc("Where Ironic is on the network.")] = msgspec.field(
        default_factory=Networking
    )
    networking_service: Annotated[NetworkingService | None, doc("Configures the switch ports of hosts.")] = (
        None
    )
    node_selector: Annotated[dict[str, str], doc("Labels of the nodes that Ironic may run on.")] = (
        msgspec.field(default_factory=dict)
    )
    overrides: Annotated[Overrides | None, doc("What is different in the pods.")] = None
    prometheus_exporter: Annotated[PrometheusExporter | None, doc("Metrics of the sensors of hosts.")] = None
    tls: Annotated[TLS, doc("Certificates: which one Ironic shows, and which it trusts.")] = msgspec.field(
        default_factory=TLS
    )
    tls_ref: Annotated[LocalReference | None, doc("Another way to write tls.certificateName.")] = None
    version: Annotated[
        str, doc("Which Ironic: `latest` (the default) or a release such as 39.0. Never goes back.")
    ] = ""
