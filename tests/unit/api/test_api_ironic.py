"""What is read out of an Ironic: one meaning from two spellings, a range from a network, defaults that are not written."""

from __future__ import annotations

import ipaddress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot.api.ironic import Ironic, IronicSpec
from ingot.api.ironic.dhcp import Pool, derived_pool, main_pool, read_network
from ingot.api.ironic.networking import DHCP
from ingot.api.ironic.spelling import TwoMeanings, contradictions, normalised
from ingot.api.ironicdatabase import IronicDatabaseSpec

DATABASE = {"host": "db-database", "name": "ironic", "credentialsName": "db-user"}


def spec(**fields: Any) -> IronicSpec:
    return msgspec.convert(fields, IronicSpec)


def test_an_empty_ironic_has_the_published_ports_although_nobody_wrote_them() -> None:
    networking = msgspec.convert({"spec": {}}, Ironic).spec.networking
    assert (
        networking.api_port,
        networking.image_server_port,
        networking.image_server_tls_port,
        networking.rpc_port,
        networking.prometheus_exporter_port,
    ) == (6385, 6180, 6183, 6189, 9608)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (spec(apiCredentialsName="a"), spec(apiCredentialsName="a")),
        (spec(credentialsRef={"name": "a"}), spec(apiCredentialsName="a")),
        (spec(apiCredentialsName="a", credentialsRef={"name": "a"}), spec(apiCredentialsName="a")),
        (spec(tlsRef={"name": "t"}), spec(tls={"certificateName": "t"})),
        (spec(tlsRef={"name": "t"}, tls={"certificateName": "t"}), spec(tls={"certificateName": "t"})),
        (spec(database=DATABASE), spec(database=DATABASE)),
        (spec(databaseRef={"name": "db"}), spec(databaseRef={"name": "db"})),
        (spec(databaseRef={"name": "db"}, database=DATABASE), spec(databaseRef={"name": "db"})),
        (
            spec(databaseRef={"name": "db"}, database=DATABASE | {"host": "db-database.metal.svc:3306"}),
            spec(databaseRef={"name": "db"}),
        ),
        (spec(tls={"bmcCAName": "b"}), spec(tls={"bmcCA": {"kind": "Secret", "name": "b"}})),
        (spec(tls={"trustedCAName": "t"}), spec(tls={"trustedCA": {"kind": "ConfigMap", "name": "t"}})),
        (
            spec(tls={"trustedCA": {"kind": "ConfigMap", "name": "t", "key": "k"}, "trustedCAName": "t"}),
            spec(tls={"trustedCA": {"kind": "ConfigMap", "name": "t", "key": "k"}}),
        ),
        (
            spec(networking={"ipAddressManager": "keepalived"}),
            spec(networking={"keepalived": {"enabled": True}}),
        ),
    ],
)
def test_either_spelling_means_the_same(written: IronicSpec, meant: IronicSpec) -> None:
    assert normalised(written) == meant
    assert normalised(meant) == meant


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        (
            spec(apiCredentialsName="a", credentialsRef={"name": "b"}),
            ("spec.apiCredentialsName", "spec.credentialsRef.name"),
        ),
        (
            spec(tls={"certificateName": "a"}, tlsRef={"name": "b"}),
            ("spec.tls.certificateName", "spec.tlsRef.name"),
        ),
        (
            spec(database=DATABASE, databaseRef={"name": "other"}),
            ("spec.database.host", "spec.databaseRef.name"),
        ),
        (
            spec(database=DATABASE | {"name": "nova"}, databaseRef={"name": "db"}),
            ("spec.database.host", "spec.databaseRef.name"),
        ),
        (
            spec(tls={"bmcCA": {"kind": "ConfigMap", "name": "b"}, "bmcCAName": "b"}),
            ("spec.tls.bmcCAName", "spec.tls.bmcCA"),
        ),
        (
            spec(tls={"trustedCA": {"kind": "ConfigMap", "name": "a"}, "trustedCAName": "b"}),
            ("spec.tls.trustedCAName", "spec.tls.trustedCA"),
        ),
    ],
)
def test_two_spellings_that_differ_are_an_error_that_names_both(
    written: IronicSpec, fields: tuple[str, str]
) -> None:
    (found,) = contradictions(written)
    assert (found.field, found.other) == fields
    with pytest.raises(TwoMeanings) as caught:
        normalised(written)
    assert all(field in str(caught.value) for field in fields)


def test_a_database_of_ours_has_two_spellings_too() -> None:
    written = msgspec.convert(
        {"credentialsRef": {"name": "c"}, "tlsRef": {"name": "t"}, "image": "i"}, IronicDatabaseSpec
    )
    assert normalised(written) == IronicDatabaseSpec(
        credentials_name="c", tls_certificate_name="t", image="i"
    )
    both = msgspec.convert({"credentialsRef": {"name": "c"}, "credentialsName": "d"}, IronicDatabaseSpec)
    with pytest.raises(TwoMeanings, match=r"spec\.credentialsName is 'd' and spec\.credentialsRef\.name"):
        normalised(both)


def pool(begin: str, end: str) -> Pool:
    return Pool(begin=ipaddress.ip_address(begin), end=ipaddress.ip_address(end))


@pytest.mark.parametrize(
    ("dhcp", "given_out"),
    [
        (DHCP(network_cidr="172.22.0.0/24"), pool("172.22.0.10", "172.22.0.253")),
        (DHCP(network_cidr="172.22.0.1/24"), pool("172.22.0.10", "172.22.0.253")),
        (DHCP(network_cidr="172.22.0.0/28"), pool("172.22.0.10", "172.22.0.13")),
        (DHCP(network_cidr="fd00::/64"), pool("fd00::a", "fd00::ffff:ffff:ffff:fffd")),
        (
            DHCP(network_cidr="172.22.0.0/24", range_begin="172.22.0.100"),
            pool("172.22.0.100", "172.22.0.253"),
        ),
        (DHCP(network_cidr="172.22.0.0/24", range_end="172.22.0.50"), pool("172.22.0.10", "172.22.0.50")),
        (
            DHCP(network_cidr="172.22.0.0/29", range_begin="172.22.0.2", range_end="172.22.0.6"),
            pool("172.22.0.2", "172.22.0.6"),
        ),
        (DHCP(network_cidr="172.22.0.0/29"), None),
        (DHCP(), None),
        (DHCP(network_cidr="172.22.0.0"), None),
        (DHCP(network_cidr="nonsense/24"), None),
        (DHCP(network_cidr="172.22.0.0/24", range_begin="nonsense"), None),
    ],
)
def test_the_range_is_what_is_written_and_otherwise_follows_from_the_network(
    dhcp: DHCP, given_out: Pool | None
) -> None:
    assert main_pool(dhcp) == given_out


@given(st.ip_addresses(v=4), st.integers(min_value=0, max_value=32))
def test_a_derived_range_lies_in_its_network_and_has_an_address(address: Any, prefix: int) -> None:
    network = read_network(f"{address}/{prefix}")
    assert network is not None
    if (found := derived_pool(network)) is not None:
        assert found.begin in network
        assert found.end in network
        assert int(found.begin) <= int(found.end)


@pytest.mark.parametrize(
    ("one", "other", "overlapping"),
    [
        (pool("10.0.0.1", "10.0.0.9"), pool("10.0.0.9", "10.0.0.20"), True),
        (pool("10.0.0.1", "10.0.0.9"), pool("10.0.0.10", "10.0.0.20"), False),
        (pool("10.0.0.1", "10.0.0.9"), pool("::1", "::9"), False),
        (pool("10.0.0.1", "10.0.0.99"), pool("10.0.0.10", "10.0.0.20"), True),
    ],
)
def test_ranges_overlap_when_they_share_an_address(one: Pool, other: Pool, overlapping: bool) -> None:
    assert one.overlaps(other) is overlapping
    assert other.overlaps(one) is overlapping
