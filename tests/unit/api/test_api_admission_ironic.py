"""What is refused of an Ironic and its database, one rule a case; and where Ingot refuses less than others do."""

from __future__ import annotations

from typing import Any

import pytest

from ingot.api.admission import FieldError, Kind, check

Json = dict[str, Any]

R, I, F, N, D = Kind.REQUIRED, Kind.INVALID, Kind.FORBIDDEN, Kind.NOT_SUPPORTED, Kind.DUPLICATE  # noqa: E741 - a table reads better

DATABASE = {"credentialsName": "db-user", "host": "mariadb.db.svc", "name": "ironic"}
HA: Json = {"highAvailability": True, "database": DATABASE}
CIDR = {"networkCIDR": "172.22.0.0/24"}
RANGE = CIDR | {"rangeBegin": "172.22.0.10", "rangeEnd": "172.22.0.100"}
EXTRA = {
    "networkCIDR": "192.168.7.0/24",
    "rangeBegin": "192.168.7.10",
    "rangeEnd": "192.168.7.20",
    "gatewayAddress": "192.168.7.1",
}


def document(kind: str, spec: Json) -> Json:
    return {
        "apiVersion": "ironic.metal3.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "ironic", "namespace": "metal"},
        "spec": spec,
    }


def created(spec: Json, kind: str = "Ironic") -> list[FieldError]:
    return check("ironic.metal3.io", kind, document(kind, spec), None)


def changed(new: Json, old: Json) -> list[FieldError]:
    return check("ironic.metal3.io", "Ironic", document("Ironic", new), document("Ironic", old))


def networking(**fields: Any) -> Json:
    return {"networking": fields}


def dhcp(**fields: Any) -> Json:
    return networking(interface="eth1", dhcp=fields)


def extra(**fields: Any) -> Json:
    return dhcp(**RANGE, extraRanges=[EXTRA | fields])


def ramdisks(*images: Json) -> Json:
    usual = {"kernel": "http://images/kernel", "initramfs": "http://images/initramfs"}
    return {"overrides": {"agentImages": [usual | image for image in images]}}


def switching(*networks: Json, enabled: bool = True) -> Json:
    usual = {"type": "idle", "mode": "access", "nativeVLAN": 1}
    return {
        "networkingService": {
            "enabled": enabled,
            "providerNetworks": [usual | network for network in networks],
        }
    }


URLS = {"externalCallbackURL": "https://api.example.com", "imageServerExternalURL": "https://i.example.com"}

ACCEPTED: dict[str, Json] = {
    "nothing at all": {},
    "one node on an interface": networking(interface="eth1", ipAddress="172.22.0.2"),
    "a database": {"database": DATABASE},
    "a database with a port": {"database": DATABASE | {"host": "10.0.0.1:3306"}},
    "a database on IPv6": {"database": DATABASE | {"host": "[fd00::1]:3306"}},
    "high availability": HA,
    "high availability with a database of ours": {"highAvailability": True, "databaseRef": {"name": "db"}},
    "high availability with insecure RPC, which changes nothing": HA | {"tls": {"insecureRPC": True}},
    "high availability with an exporter": HA
    | {"prometheusExporter": {"enabled": True, "disableServiceMonitor": True}},
    "the network of the cluster": networking(disableHostNetwork=True, **URLS),
    "an external address": networking(externalIP="192.0.2.1"),
    "an ingress and one URL": networking(ingress={}, externalCallbackURL="https://api.example.com"),
    "keepalived": networking(
        interface="eth1",
        ipAddress="172.22.0.2",
        keepalived={"enabled": True, "additionalVIPs": [{"ipAddress": "fd00::2", "interface": "eth2"}]},
    ),
    "keepalived in the older way": networking(
        interface="eth1", ipAddress="172.22.0.2", ipAddressManager="keepalived"
    ),
    "keepalived switched off beside the older way": networking(
        interface="eth1",
        ipAddress="172.22.0.2",
        ipAddressManager="keepalived",
        keepalived={"enabled": False},
    ),
    "an exporter for this machine alone": {
        "prometheusExporter": {"enabled": True, "disableServiceMonitor": True, "bindAddress": "127.0.0.1"}
    },
    "certificates": {
        "tls": {
            "certificateName": "cert",
            "bmcCA": {"kind": "Secret", "name": "ca"},
            "bmcCAName": "ca",
            "trustedCA": {"kind": "ConfigMap", "name": "trusted", "key": "ca.crt"},
        }
    },
    "the newest": {"version": "latest"},
    "a release": {"version": "39.0"},
    "the release before": {"version": "38.0"},
    "DHCP": dhcp(**RANGE, dnsAddress="172.22.0.1", gatewayAddress="10.0.0.1", hosts=["52:54:00:1,1.2.3.4"]),
    "DHCP on a network that names a host": dhcp(**RANGE | {"networkCIDR": "172.22.0.1/24"}),
    "DHCP beside a zone": networking(
        interface="eth1",
        ipAddress="fe80::1%eth1",
        dhcp={"networkCIDR": "fe80::/64", "rangeBegin": "fe80::10", "rangeEnd": "fe80::20"},
    ),
    "further ranges alone": dhcp(extraRanges=[EXTRA]),
    "a further range right behind": dhcp(
        **RANGE, extraRanges=[{**CIDR, "rangeBegin": "172.22.0.101", "rangeEnd": "172.22.0.110"}]
    ),
    "a further range of the other family": dhcp(
        **RANGE, extraRanges=[{"networkCIDR": "fd00::/64", "rangeBegin": "fd00::1", "rangeEnd": "fd00::9"}]
    ),
    "ramdisks for two architectures": ramdisks(
        {"architecture": "x86_64", "kernel": "file:///images/kernel"},
        {"architecture": "aarch64", "kernel": "oci://registry/kernel"},
        {"architecture": "", "initramfs": "  https://images/initramfs\n"},
    ),
    "options": {"extraConfig": [{"group": "DEFAULT", "name": "debug", "value": "a\nb"}, {"name": "x"}, {}]},
    "a key with a line break behind it": {"deployRamdisk": {"sshKey": "ssh-ed25519 AAAA me\n"}},
    "networks": switching(
        {"type": "idle"}, {"type": "provisioning", "mode": "trunk", "allowedVLANs": ["2", "10-20"]}
    ),
    "networks of a service that is off": switching({"mode": "trunk"}, {"mode": "trunk"}, enabled=False),
    # Where others refuse.
    "DHCP in high availability": HA | dhcp(**RANGE),
    "DHCP with the network alone": dhcp(**CIDR),
    "DHCP with one end of the range": dhcp(**CIDR, rangeBegin="172.22.0.50"),
    "the spelling of the proposals": {
        "credentialsRef": {"name": "c"},
        "databaseRef": {"name": "db"},
        "tlsRef": {"name": "t"},
    },
    "both spellings of one thing": {"apiCredentialsName": "c", "credentialsRef": {"name": "c"}},
}


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED)
def test_what_can_be_done_is_accepted(spec: Json) -> None:
    assert created(spec) == []


N_ = "spec.networking"
D_ = f"{N_}.dhcp"
X_ = f"{D_}.extraRanges[0]"
V_ = f"{N_}.keepalived.additionalVIPs[0]"
P_ = "spec.networkingService.providerNetworks"
A_ = "spec.overrides.agentImages"

REFUSED: list[tuple[str, Json, str, Kind, str]] = [
    ("replicas without a database", {"highAvailability": True}, "spec.database", R, "share"),
    (
        "no credentials",
        {"database": DATABASE | {"credentialsName": ""}},
        "spec.database.credentialsName",
        R,
        "told by",
    ),
    ("no host", {"database": DATABASE | {"host": ""}}, "spec.database.host", R, "told by"),
    ("no name", {"database": DATABASE | {"name": ""}}, "spec.database.name", R, "told by"),
    ("a host of two lines", {"database": DATABASE | {"host": "a\nb"}}, "spec.database.host", I, "HOST:PORT"),
    ("a host with a path", {"database": DATABASE | {"host": "a/b"}}, "spec.database.host", I, "HOST:PORT"),
    (
        "bound inside",
        networking(disableHostNetwork=True, bindInterface=True),
        f"{N_}.bindInterface",
        F,
        "no interface",
    ),
    (
        "an interface inside",
        networking(disableHostNetwork=True, interface="e"),
        f"{N_}.interface",
        F,
        "no interface",
    ),
    (
        "an address inside",
        networking(disableHostNetwork=True, ipAddress="1.2.3.4"),
        f"{N_}.ipAddress",
        F,
        "no interface",
    ),
    (
        "a MAC address inside",
        networking(disableHostNetwork=True, macAddresses=["52:54:00:12:34:56"]),
        f"{N_}.macAddresses",
        F,
        "no interface",
    ),
    (
        "keepalived inside, even if it is off",
        networking(disableHostNetwork=True, keepalived={"enabled": False}),
        f"{N_}.keepalived",
        F,
        "no interface",
    ),
    ("no address", networking(ipAddress="172.22.0"), f"{N_}.ipAddress", I, "not an IP address"),
    ("no external address", networking(externalIP="example.com"), f"{N_}.externalIP", I, "not an IP address"),
    ("an interface of two", networking(interface="eth0 eth1"), f"{N_}.interface", I, "this name"),
    ("an interface of two lines", networking(interface="eth0\n"), f"{N_}.interface", I, "this name"),
    (
        "a MAC address that is none",
        networking(macAddresses=["52:54"]),
        f"{N_}.macAddresses[0]",
        I,
        "MAC address",
    ),
    (
        "two ways out",
        networking(externalIP="1.2.3.4", **URLS),
        f"{N_}.externalIP",
        F,
        "externalCallbackURL and image",
    ),
    (
        "an address and an ingress",
        networking(externalIP="1.2.3.4", ingress={}),
        f"{N_}.externalIP",
        F,
        "ingress",
    ),
    (
        "an external API alone",
        networking(externalCallbackURL="https://a"),
        f"{N_}.imageServerExternalURL",
        R,
        "go together",
    ),
    (
        "external images alone",
        networking(imageServerExternalURL="https://a"),
        f"{N_}.externalCallbackURL",
        R,
        "go together",
    ),
    (
        "a callback that is no URL of the web",
        networking(**URLS | {"externalCallbackURL": "ftp://a"}),
        f"{N_}.externalCallbackURL",
        N,
        "http, https",
    ),
    ("one address for replicas", HA | networking(ipAddress="1.2.3.4"), f"{N_}.ipAddress", F, "of its own"),
    (
        "a managed address for replicas",
        HA | networking(ipAddressManager="keepalived"),
        f"{N_}.ipAddressManager",
        F,
        "no single address",
    ),
    (
        "nothing to manage",
        networking(interface="eth0", ipAddressManager="keepalived"),
        f"{N_}.ipAddress",
        R,
        "needs both",
    ),
    (
        "nowhere to manage it",
        networking(ipAddress="1.2.3.4", ipAddressManager="keepalived"),
        f"{N_}.interface",
        R,
        "needs both",
    ),
    (
        "keepalived in both ways",
        networking(
            interface="eth0",
            ipAddress="1.2.3.4",
            ipAddressManager="keepalived",
            keepalived={"enabled": True},
        ),
        f"{N_}.keepalived",
        F,
        "older way",
    ),
    (
        "keepalived for replicas",
        HA | networking(keepalived={"enabled": True}),
        f"{N_}.keepalived",
        F,
        "no single",
    ),
    (
        "keepalived without an interface",
        networking(ipAddress="1.2.3.4", keepalived={"enabled": True}),
        f"{N_}.interface",
        R,
        "needs both",
    ),
    *(
        (
            f"a virtual address: {problem}",
            networking(
                interface="eth0",
                ipAddress="1.2.3.4",
                keepalived={
                    "enabled": True,
                    "additionalVIPs": [{"ipAddress": "1.2.3.5", "interface": "eth0"} | part],
                },
            ),
            f"{V_}.{field}",
            kind,
            words,
        )
        for problem, part, field, kind, words in (
            ("none", {"ipAddress": ""}, "ipAddress", R, "which address"),
            ("nonsense", {"ipAddress": "x"}, "ipAddress", I, "not an IP"),
            ("nowhere", {"interface": ""}, "interface", R, "which interface"),
            ("on nonsense", {"interface": "a b"}, "interface", I, "this name"),
        )
    ),
    (
        "a monitor of replicas, even if the exporter is off",
        HA | {"prometheusExporter": {"enabled": False}},
        "spec.prometheusExporter.disableServiceMonitor",
        R,
        "one replica only",
    ),
    (
        "metrics on a name",
        {"prometheusExporter": {"enabled": True, "bindAddress": "localhost"}},
        "spec.prometheusExporter.bindAddress",
        I,
        "not an IP",
    ),
    (
        "metrics out of reach",
        {"prometheusExporter": {"enabled": True, "bindAddress": "127.0.0.1"}},
        "spec.prometheusExporter.bindAddress",
        I,
        "loopback",
    ),
    (
        "metrics out of reach on IPv6",
        {"prometheusExporter": {"enabled": True, "bindAddress": "::1"}},
        "spec.prometheusExporter.bindAddress",
        I,
        "loopback",
    ),
    ("RPC of one", {"tls": {"insecureRPC": False}}, "spec.tls.insecureRPC", F, "no remote calls"),
    (
        "a CA without a name",
        {"tls": {"bmcCA": {"kind": "Secret", "name": ""}}},
        "spec.tls.bmcCA.name",
        R,
        "which",
    ),
    (
        "trust in nothing",
        {"tls": {"trustedCA": {"kind": "Secret", "name": ""}}},
        "spec.tls.trustedCA.name",
        R,
        "which",
    ),
    (
        "a CA told twice",
        {"tls": {"bmcCA": {"kind": "ConfigMap", "name": "ca"}, "bmcCAName": "ca"}},
        "spec.tls.bmcCAName",
        I,
        "remove one",
    ),
    (
        "trust told twice",
        {"tls": {"trustedCA": {"kind": "Secret", "name": "ca"}, "trustedCAName": "ca"}},
        "spec.tls.trustedCAName",
        I,
        "remove one",
    ),
    ("a version nobody has", {"version": "36.0"}, "spec.version", N, "latest, 39.0, 38.0"),
    ("a version that is none", {"version": "newest"}, "spec.version", N, "latest"),
    (
        "credentials in two spellings",
        {"apiCredentialsName": "a", "credentialsRef": {"name": "b"}},
        "spec.apiCredentialsName",
        I,
        "'b'",
    ),
    (
        "a database in two spellings",
        {"database": DATABASE, "databaseRef": {"name": "db"}},
        "spec.database.host",
        I,
        "'db'",
    ),
    (
        "a certificate in two spellings",
        {"tls": {"certificateName": "a"}, "tlsRef": {"name": "b"}},
        "spec.tls.certificateName",
        I,
        "'b'",
    ),
    ("an empty reference", {"credentialsRef": {"name": ""}}, "spec.credentialsRef.name", R, "which Secret"),
    (
        "an impossible reference",
        {"databaseRef": {"name": "a/b"}},
        "spec.databaseRef.name",
        I,
        "no IronicDatabase",
    ),
    ("impossible credentials", {"apiCredentialsName": "../x"}, "spec.apiCredentialsName", I, "no Secret"),
    ("an impossible ConfigMap", {"tls": {"trustedCAName": "A"}}, "spec.tls.trustedCAName", I, "no ConfigMap"),
    ("DHCP nowhere", networking(dhcp=RANGE), f"{N_}.interface", R, "say which"),
    (
        "two DNS servers",
        dhcp(**RANGE, serveDNS=True, dnsAddress="1.2.3.4"),
        f"{D_}.dnsAddress",
        F,
        "Remove one",
    ),
    ("no DNS server", dhcp(**RANGE, dnsAddress="dns"), f"{D_}.dnsAddress", I, "not an IP"),
    ("no router", dhcp(**RANGE, gatewayAddress="router"), f"{D_}.gatewayAddress", I, "not an IP"),
    ("no network", dhcp(), f"{D_}.networkCIDR", R, "which network"),
    (
        "a range of no network",
        dhcp(rangeBegin="1.2.3.4", rangeEnd="1.2.3.5"),
        f"{D_}.networkCIDR",
        R,
        "which network",
    ),
    (
        "half a range of no network",
        dhcp(rangeEnd="1.2.3.5", extraRanges=[EXTRA]),
        f"{D_}.networkCIDR",
        R,
        "which",
    ),
    ("a network that is none", dhcp(networkCIDR="172.22.0.0"), f"{D_}.networkCIDR", I, "172.22.0.0/24"),
    ("a network of words", dhcp(networkCIDR="lab/24"), f"{D_}.networkCIDR", I, "not a network"),
    (
        "a network too small to derive from",
        dhcp(networkCIDR="172.22.0.0/29"),
        f"{D_}.rangeBegin",
        R,
        "too small",
    ),
    ("a beginning that is none", dhcp(**RANGE | {"rangeBegin": "x"}), f"{D_}.rangeBegin", I, "not an IP"),
    (
        "a beginning elsewhere",
        dhcp(**RANGE | {"rangeBegin": "172.21.0.9"}),
        f"{D_}.rangeBegin",
        I,
        "not in its network",
    ),
    (
        "an end elsewhere",
        dhcp(**RANGE | {"rangeEnd": "172.23.0.9"}),
        f"{D_}.rangeEnd",
        I,
        "not in its network",
    ),
    (
        "an end of the other family",
        dhcp(**RANGE | {"rangeEnd": "fd00::1"}),
        f"{D_}.rangeEnd",
        I,
        "not in its network",
    ),
    ("a range backwards", dhcp(**RANGE | {"rangeEnd": "172.22.0.9"}), f"{D_}.rangeEnd", I, "down to"),
    (
        "a beginning behind the derived end",
        dhcp(**CIDR, rangeBegin="172.22.0.254"),
        f"{D_}.rangeBegin",
        I,
        "down to",
    ),
    (
        "an address of another network",
        networking(ipAddress="10.0.0.1", dhcp=RANGE),
        f"{N_}.ipAddress",
        I,
        "provisioning network",
    ),
    ("a further range without end", extra(rangeEnd=""), f"{X_}.rangeEnd", R, "told by"),
    ("a further network that is none", extra(networkCIDR="x"), f"{X_}.networkCIDR", I, "not a network"),
    (
        "a further network of everything",
        extra(networkCIDR="0.0.0.0/0"),
        f"{X_}.networkCIDR",
        I,
        "all addresses",
    ),
    (
        "a further range elsewhere",
        extra(rangeBegin="192.168.6.9"),
        f"{X_}.rangeBegin",
        I,
        "not in its network",
    ),
    ("a further range backwards", extra(rangeEnd="192.168.7.9"), f"{X_}.rangeEnd", I, "down to"),
    (
        "a further router elsewhere",
        extra(gatewayAddress="192.168.6.1"),
        f"{X_}.gatewayAddress",
        I,
        "not in its",
    ),
    ("a further router that is none", extra(gatewayAddress="x"), f"{X_}.gatewayAddress", I, "not an IP"),
    (
        "a router for IPv6",
        extra(networkCIDR="fd00::/64", rangeBegin="fd00::1", rangeEnd="fd00::9", gatewayAddress="fd00::a"),
        f"{X_}.gatewayAddress",
        F,
        "IPv6",
    ),
    (
        "ranges that overlap",
        extra(**CIDR | {"rangeBegin": "172.22.0.100", "rangeEnd": "172.22.0.110", "gatewayAddress": ""}),
        f"{X_}.rangeBegin",
        I,
        "in common",
    ),
    (
        "a range that overlaps the derived one",
        dhcp(**CIDR, extraRanges=[{**CIDR, "rangeBegin": "172.22.0.200", "rangeEnd": "172.22.0.210"}]),
        f"{X_}.rangeBegin",
        I,
        "in common",
    ),
    ("a host of two lines", dhcp(**RANGE, hosts=["a\nport=53"]), f"{D_}.hosts[0]", I, "one line"),
    ("a tag that is empty", dhcp(**RANGE, ignore=[" "]), f"{D_}.ignore[0]", I, "not empty"),
    ("no kernel", ramdisks({"kernel": " "}), f"{A_}[0].kernel", R, "give both"),
    ("no initramfs", ramdisks({"initramfs": ""}), f"{A_}[0].initramfs", R, "give both"),
    ("a kernel from ftp", ramdisks({"kernel": "ftp://a/b"}), f"{A_}[0].kernel", N, "file, http, https, oci"),
    ("a kernel on a file's host", ramdisks({"kernel": "file://h/b"}), f"{A_}[0].kernel", I, "file:///PATH"),
    ("a kernel on half a host", ramdisks({"kernel": "file://["}), f"{A_}[0].kernel", I, "file:///PATH"),
    ("a kernel from somewhere here", ramdisks({"kernel": "file:b"}), f"{A_}[0].kernel", I, "absolute"),
    ("a kernel from no host", ramdisks({"kernel": "http:///b"}), f"{A_}[0].kernel", I, "names no host"),
    (
        "two ramdisks for one architecture",
        ramdisks({"architecture": "x86_64"}, {"architecture": "x86_64"}),
        f"{A_}[1].architecture",
        D,
        "x86_64 already",
    ),
    ("two ramdisks for the rest", ramdisks({}, {}), f"{A_}[1].architecture", D, "every other"),
    (
        "an option of two lines",
        {"extraConfig": [{"name": "a\nb", "value": "c"}]},
        "spec.extraConfig[0].name",
        I,
        "name",
    ),
    (
        "a section that ends early",
        {"extraConfig": [{"group": "a]", "name": "b"}]},
        "spec.extraConfig[0].group",
        I,
        "name",
    ),
    (
        "a control character",
        {"extraConfig": [{"name": "a", "value": "\x1b"}]},
        "spec.extraConfig[0].value",
        I,
        "control",
    ),
    (
        "kernel arguments of two lines",
        {"deployRamdisk": {"extraKernelParams": "a\nb"}},
        "spec.deployRamdisk.extraKernelParams",
        I,
        "one line",
    ),
    (
        "two keys",
        {"deployRamdisk": {"sshKey": "ssh-rsa A\nssh-rsa B"}},
        "spec.deployRamdisk.sshKey",
        I,
        "one line",
    ),
    ("two networks at a time", switching({}, {}), f"{P_}[1].type", D, "listed already"),
    (
        "VLANs on an access port",
        switching({"allowedVLANs": ["2"]}),
        f"{P_}[0].allowedVLANs",
        F,
        "access mode",
    ),
    ("no VLANs on a trunk", switching({"mode": "trunk"}), f"{P_}[0].allowedVLANs", R, "say which"),
    ("no VLANs on a hybrid port", switching({"mode": "hybrid"}), f"{P_}[0].allowedVLANs", R, "say which"),
    (
        "a VLAN beyond the last",
        switching({"mode": "trunk", "allowedVLANs": ["1", "4095"]}),
        f"{P_}[0].allowedVLANs[1]",
        I,
        "1 to 4094",
    ),
    (
        "a range of one VLAN",
        switching({"mode": "trunk", "allowedVLANs": ["7-7"]}),
        f"{P_}[0].allowedVLANs[0]",
        I,
        "less than",
    ),
]


@pytest.mark.parametrize(
    ("spec", "path", "kind", "words"), [pytest.param(*case, id=name) for name, *case in REFUSED]
)
def test_what_breaks_a_rule_is_refused_with_the_field_and_the_reason(
    spec: Json, path: str, kind: Kind, words: str
) -> None:
    (error,) = created(spec)
    assert (error.path, error.kind) == (path, kind)
    assert words in error.message


def test_dhcp_in_the_network_of_the_cluster_is_refused() -> None:
    errors = created(networking(disableHostNetwork=True, interface="eth0", dhcp=RANGE))
    assert f"{D_}" in {error.path for error in errors}


OURS = {"databaseRef": {"name": "db"}}
OURS_SPELLED_OUT = {"database": DATABASE | {"host": "db-database"}}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"database": DATABASE}),
        ({"database": DATABASE}, {}),
        ({"database": DATABASE}, {"database": DATABASE, "version": "39.0"}),
        (OURS, OURS_SPELLED_OUT),
        (OURS_SPELLED_OUT, OURS),
        (OURS, {}),
    ],
)
def test_a_database_can_be_added_taken_away_and_told_in_the_other_spelling(old: Json, new: Json) -> None:
    assert changed(new, old) == []


@pytest.mark.parametrize(
    ("old", "new", "path", "words"),
    [
        (
            {"database": DATABASE},
            {"database": DATABASE | {"host": "elsewhere"}},
            "spec.database",
            "'mariadb.db.svc'",
        ),
        (OURS, {"databaseRef": {"name": "other"}}, "spec.databaseRef", "IronicDatabase 'db'"),
        ({"database": DATABASE}, OURS, "spec.databaseRef", "'mariadb.db.svc'"),
        (OURS, {"database": DATABASE}, "spec.database", "IronicDatabase 'db'"),
    ],
)
def test_a_database_cannot_be_changed_to_another_one(old: Json, new: Json, path: str, words: str) -> None:
    (error,) = changed(new, old)
    assert (error.path, error.kind) == (path, F)
    assert words in error.message


@pytest.mark.parametrize(
    ("spec", "path", "kind"),
    [
        ({"credentialsName": "a", "credentialsRef": {"name": "b"}}, "spec.credentialsName", I),
        ({"tlsCertificateName": "a", "tlsRef": {"name": "b"}}, "spec.tlsCertificateName", I),
        ({"credentialsRef": {"name": ""}}, "spec.credentialsRef.name", R),
        ({"tlsRef": {"name": "A"}}, "spec.tlsRef.name", I),
        ({"credentialsName": "a/b"}, "spec.credentialsName", I),
        ({"tlsCertificateName": "a/b"}, "spec.tlsCertificateName", I),
    ],
)
def test_a_database_that_breaks_a_rule_is_refused(spec: Json, path: str, kind: Kind) -> None:
    (error,) = created(spec, "IronicDatabase")
    assert (error.path, error.kind) == (path, kind)


def test_an_ordinary_database_is_accepted() -> None:
    assert created({}, "IronicDatabase") == []
    assert created({"credentialsName": "c", "tlsRef": {"name": "t"}, "image": "i"}, "IronicDatabase") == []
