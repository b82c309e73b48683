"""OpenStack's network_data.json becomes keyfiles; and a Secret's keys tell which language its network data is in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from textwrap import dedent
from typing import Any

import pytest

from ingot.formats import FormatError
from ingot.formats.network import keyfiles_of_network_data, keyfiles_of_secret

PHY = {"id": "enp1s0", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:01", "mtu": 1500, "vif_id": "x"}
PHY2 = {"id": "enp2s0", "type": "phy", "ethernet_mac_address": "52:54:00:00:00:02", "mtu": None}
BOND = {
    "id": "bond0",
    "type": "bond",
    "ethernet_mac_address": "52:54:00:00:00:01",
    "bond_mode": "802.3ad",
    "bond_xmit_hash_policy": "layer3+4",
    "bond_miimon": 100,
    "bond_links": ["enp1s0", "enp2s0"],
}
VLAN = {
    "id": "vlan2",
    "type": "vlan",
    "vlan_mac_address": "52:54:00:00:00:01",
    "vlan_id": 2,
    "vlan_link": "bond0",
}
STATIC = {
    "id": "network0",
    "type": "ipv4",
    "link": "enp1s0",
    "ip_address": "192.0.2.5",
    "netmask": "255.255.255.0",
    "network_id": "da5bb487-5193-4a65-a3df-4a0055a8c0d7",
    "routes": [{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "192.0.2.1"}],
}


def made(links: Sequence[Any], networks: Sequence[Any] = (), services: Sequence[Any] = ()) -> dict[str, str]:
    data = json.dumps({"links": links, "networks": networks, "services": services}).encode()
    return {name: content.decode() for name, content in keyfiles_of_network_data(data).items()}


def test_a_link_with_a_fixed_address_is_found_by_its_mac_address() -> None:
    files = made([PHY], [STATIC], [{"type": "dns", "address": "192.0.2.53"}])
    assert files == {
        "enp1s0.nmconnection": dedent("""\
            [connection]
            autoconnect=true
            autoconnect-slaves=-1
            id=enp1s0
            type=802-3-ethernet
            uuid=11655ff4-09bf-500f-9f38-9bfcc91ab36b

            [ipv4]
            address0=192.0.2.5/24
            dhcp-timeout=2147483647
            dns=192.0.2.53
            dns-priority=40
            method=manual
            route0=0.0.0.0/0,192.0.2.1,0
            route0_options=table=254

            [ipv6]
            dhcp-timeout=2147483647
            method=disabled

            [ethernet]
            mac-address=52:54:00:00:00:01
            mtu=1500
            """)
    }


def test_a_bond_of_links_and_a_vlan_on_it() -> None:
    files = made([PHY, PHY2, BOND, VLAN], [{"id": "n", "type": "ipv4_dhcp", "link": "vlan2"}])
    assert "[bond]\nmiimon=100\nmode=802.3ad\nxmit_hash_policy=layer3+4\n" in files["bond0.nmconnection"]
    assert "cloned-mac-address=52:54:00:00:00:01\n" in files["bond0.nmconnection"]
    for port, mac in (("enp1s0", "01"), ("enp2s0", "02")):
        assert "master=bond0\nslave-type=bond\n" in files[f"{port}.nmconnection"]
        assert f"\nmac-address=52:54:00:00:00:{mac}\n" in files[f"{port}.nmconnection"]
        assert "interface-name" not in files[f"{port}.nmconnection"]
    assert "method=auto\n" in files["vlan2.nmconnection"]
    assert files["vlan2.nmconnection"].endswith("[vlan]\nflags=1\nid=2\nparent=bond0\n")


def test_a_vlan_on_a_device_whose_name_is_not_known_refers_to_its_connection() -> None:
    files = made([PHY, VLAN | {"vlan_link": "enp1s0"}])
    assert "\nparent=11655ff4-09bf-500f-9f38-9bfcc91ab36b\n" in files["vlan2.nmconnection"]


@pytest.mark.parametrize("kind", ["ipv6_dhcp", "ipv6_slaac", "ipv6_dhcpv6-stateful", "ipv6_dhcpv6-stateless"])
def test_every_way_in_which_ipv6_configures_itself_is_left_to_the_routers(kind: str) -> None:
    content = made([PHY], [{"id": "n", "type": kind, "link": "enp1s0"}])["enp1s0.nmconnection"]
    assert "method=auto\n" in content.partition("[ipv6]")[2]
    assert "method=disabled\n" in content.partition("[ipv6]")[0]


@pytest.mark.parametrize(
    ("fields", "address"),
    [
        ({"ip_address": "2001:db8::5", "netmask": "ffff:ffff:ffff:ffff::"}, "2001:db8::5/64"),
        ({"ip_address": "2001:db8::5", "netmask": "64"}, "2001:db8::5/64"),
        ({"ip_address": "2001:db8::5", "netmask": 56}, "2001:db8::5/56"),
        ({"ip_address": "2001:0db8::0005/48"}, "2001:db8::5/48"),
    ],
)
def test_a_prefix_length_is_written_in_many_ways(fields: dict[str, Any], address: str) -> None:
    content = made([PHY], [{"id": "n", "type": "ipv6", "link": "enp1s0"} | fields])["enp1s0.nmconnection"]
    assert f"address0={address}\n" in content


def test_a_gateway_is_the_default_route_and_said_twice_is_one_route() -> None:
    content = made([PHY], [STATIC | {"gateway": "192.0.2.1"}])["enp1s0.nmconnection"]
    assert "route0=0.0.0.0/0,192.0.2.1,0\n" in content
    assert "route1" not in content


def test_several_networks_are_on_one_link() -> None:
    other = STATIC | {"ip_address": "198.51.100.5", "routes": []}
    six = {
        "id": "n6",
        "type": "ipv6",
        "link": "enp1s0",
        "ip_address": "2001:db8::5/64",
        "gateway": "2001:db8::1",
    }
    content = made([PHY], [STATIC, other, six])["enp1s0.nmconnection"]
    assert "address0=192.0.2.5/24\naddress1=198.51.100.5/24\n" in content
    assert "route0=::/0,2001:db8::1,1024\n" in content


def test_name_servers_count_wherever_they_stand_and_once() -> None:
    dns = [{"type": "dns", "address": address} for address in ("192.0.2.1", "2001:db8::53", "192.0.2.2")]
    route = {"network": "10.0.0.0", "netmask": "255.0.0.0", "gateway": "192.0.2.1", "services": [dns[2]]}
    six = {"id": "n6", "type": "ipv6_slaac", "link": "enp1s0"}
    networks = [STATIC | {"services": [dns[0], dns[1]], "routes": [route]}, six]
    content = made([PHY], networks, [dns[0]])["enp1s0.nmconnection"]
    assert "dns=192.0.2.1;192.0.2.2\ndns-priority=40\n" in content
    assert "dns=2001:db8::53\ndns-priority=50\n" in content


def test_an_id_that_is_no_name_for_an_interface_gives_one_that_stays_the_same() -> None:
    identity = "0c1e48a4-bond-of-everything"
    names = sorted(made([PHY, PHY2, BOND | {"id": identity}, VLAN | {"vlan_link": identity}]))
    assert names == sorted(made([PHY2, PHY, BOND | {"id": identity}, VLAN | {"vlan_link": identity}]))
    bond = next(name for name in names if name.startswith("bond"))
    assert bond.removesuffix(".nmconnection").isalnum()
    assert len(bond.removesuffix(".nmconnection")) <= 15


@pytest.mark.parametrize("kind", ["vif", "ovs", "bridge", "tap", "physical", "hw_veb", "ethernet"])
def test_whatever_a_link_is_plugged_into_it_is_an_ethernet_device(kind: str) -> None:
    assert list(made([PHY | {"type": kind}])) == ["enp1s0.nmconnection"]


def test_what_metal3_writes_where_nothing_was_asked_for_says_nothing() -> None:
    route = {"network": "10.0.0.0", "netmask": "255.0.0.0", "gateway": "", "services": []}
    six = {"id": "n6", "type": "ipv6_slaac", "link": "bond0", "routes": []}
    bond = BOND | {"bond_xmit_hash_policy": "", "mtu": 0}
    files = made([PHY, PHY2, bond], [STATIC | {"link": "bond0", "routes": [route]}, six])
    assert "[bond]\nmiimon=100\nmode=802.3ad\n\n" in files["bond0.nmconnection"]
    assert "mtu" not in files["bond0.nmconnection"]
    assert "route0=10.0.0.0/8,,0\n" in files["bond0.nmconnection"]


def test_a_mac_address_may_have_dashes_and_be_there_twice() -> None:
    mac = "52-54-00-00-00-0a"
    files = made([PHY, VLAN | {"vlan_link": "enp1s0", "vlan_mac_address": mac, "ethernet_mac_address": mac}])
    assert "cloned-mac-address=52:54:00:00:00:0A\n" in files["vlan2.nmconnection"]


def test_a_link_without_a_mac_address_is_found_by_its_name() -> None:
    files = made([{"id": "x", "name": "eth7", "type": "phy"}, VLAN | {"name": "data", "vlan_link": "x"}])
    assert "interface-name=eth7\n" in files["eth7.nmconnection"]
    assert "interface-name=data\n" in files["data.nmconnection"]
    assert files["data.nmconnection"].endswith("parent=eth7\n")


def test_a_link_that_is_found_by_its_mac_address_gives_its_name_to_its_connection() -> None:
    files = made([PHY | {"name": "uplink"}])
    assert "id=uplink\n" in files["uplink.nmconnection"]
    assert "interface-name" not in files["uplink.nmconnection"]


REFUSED = [
    ([PHY | {"type": "ib"}], [], "links[0].type: 'ib' is not one of phy, bond, vlan"),
    ([PHY | {"speed": 1}], [], "links[0].speed: is not supported"),
    ([PHY | {"ethernet_mac_address": None}], [], "links[0].ethernet_mac_address: is needed, or else a name"),
    ([PHY | {"ethernet_mac_address": ""}], [], "links[0].ethernet_mac_address: is needed, or else a name"),
    ([PHY | {"ethernet_mac_address": None, "name": "a/b"}], [], "links[0].name: 'a/b' is no name"),
    (
        [PHY, VLAN | {"vlan_link": "enp1s0", "ethernet_mac_address": "52:54:00:00:00:09"}],
        [],
        "links[1].ethernet_mac_address: is another address than vlan_mac_address",
    ),
    ([PHY | {"ethernet_mac_address": "x"}], [], "links[0].ethernet_mac_address: 'x' is not a MAC address"),
    ([PHY | {"id": "../x"}], [], "links[0].id: '../x' becomes the name of a file"),
    ([PHY | {"id": "lo"}], [], "links[0].id: is the name of the loopback interface"),
    ([PHY, PHY], [], "two of them have the same id"),
    (
        [PHY, PHY2 | {"ethernet_mac_address": "52:54:00:00:00:01"}],
        [],
        "52:54:00:00:00:01 is that of enp1s0 too",
    ),
    ([PHY, BOND], [], "links[1].bond_links[1]: there is no link with the id 'enp2s0'"),
    ([PHY, PHY2, BOND | {"bond_mode": "best"}], [], "links[2].bond_mode: 'best' is not one of"),
    ([PHY, PHY2, BOND | {"bond_new": 1}], [], "links[2].bond_new: is not supported"),
    (
        [PHY, PHY2, BOND | {"bond_lacp_rate": "slowish"}],
        [],
        "links[2].bond_lacp_rate: 'slowish' is not one of",
    ),
    ([PHY, VLAN], [], "links[1].vlan_link: there is no link with the id 'bond0'"),
    ([PHY, VLAN | {"vlan_link": "enp1s0", "vlan_id": 4096}], [], "links[1].vlan_id: 4096 is not between"),
    ([PHY], [STATIC | {"type": "ipv5"}], "networks[0].type: 'ipv5' is not one of"),
    ([PHY], [STATIC | {"link": "eth9"}], "networks[0].link: there is no link with the id 'eth9'"),
    ([PHY], [STATIC | {"netmask": "255.0.255.0"}], "networks[0].netmask: '255.0.255.0' is not a mask"),
    ([PHY], [STATIC | {"netmask": None}], "networks[0].netmask: is needed"),
    ([PHY], [STATIC | {"netmask": 33}], "networks[0].netmask: '192.0.2.5/33' has no prefix length"),
    ([PHY], [STATIC | {"ip_address": "2001:db8::1"}], "networks[0].ip_address: '2001:db8::1' is not an IPv4"),
    ([PHY], [STATIC | {"ip_address": "192.0.2.5/24"}], "networks[0].netmask: there is a prefix length"),
    ([PHY], [STATIC | {"type": "ipv4_dhcp"}], "networks[0].ip_address: is not supported"),
    ([PHY], [STATIC | {"dns_search": ["a"]}], "networks[0].dns_search: is not supported"),
    (
        [PHY],
        [STATIC | {"services": [{"type": "ntp", "address": "192.0.2.1"}]}],
        "services[0].type: 'ntp' is not one of",
    ),
    (
        [PHY],
        [STATIC | {"routes": [{"network": "::", "netmask": "::"}]}],
        "routes[0].netmask: '::' is not an IPv4",
    ),
    (
        [PHY | {"mtu": 1000}],
        [{"id": "n", "type": "ipv6_slaac", "link": "enp1s0"}],
        "links[0].mtu: IPv6 needs",
    ),
    (
        [PHY, PHY2, BOND],
        [{"id": "n", "type": "ipv4_dhcp", "link": "enp1s0"}],
        "enp1s0 is a port of bond0, so it cannot have addresses",
    ),
]


@pytest.mark.parametrize(("links", "networks", "why"), REFUSED, ids=[why for _, _, why in REFUSED])
def test_what_is_not_understood_is_refused_with_its_path(
    links: list[Any], networks: list[Any], why: str
) -> None:
    with pytest.raises(FormatError) as refused:
        made(links, networks)
    assert why in str(refused.value)


# Secrets

NMSTATE = b"interfaces: [{name: eth0}]"
NETWORK_DATA = json.dumps({"links": [PHY]}).encode()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"nmstate": NMSTATE}, "eth0"),
        ({"nmstate": NMSTATE, "networkData": NETWORK_DATA}, "eth0"),
        ({"networkData": NMSTATE}, "eth0"),
        ({"networkData": NETWORK_DATA}, "enp1s0"),
        ({"value": NETWORK_DATA, "other": b""}, "enp1s0"),
    ],
)
def test_a_secret_holds_either_language(data: dict[str, bytes], name: str) -> None:
    assert list(keyfiles_of_secret(data)) == [f"{name}.nmconnection"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({}, "neither the key nmstate nor the key networkData"),
        ({"nmstate": NETWORK_DATA}, "nmstate: links: is not supported"),
        ({"nmstate": b"interfaces: []"}, "nmstate: no network configuration"),
        ({"networkData": b"{}"}, "networkData: it is neither nmstate"),
        ({"networkData": b'{"links": [], "interfaces": []}'}, "networkData: it is neither nmstate"),
        ({"networkData": b""}, "networkData: it is neither nmstate"),
        ({"networkData": b"\xff"}, "networkData: byte 0 is not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_secret_is_said_with_the_key(data: dict[str, bytes], why: str) -> None:
    with pytest.raises(FormatError) as refused:
        keyfiles_of_secret(data)
    assert why in str(refused.value)
