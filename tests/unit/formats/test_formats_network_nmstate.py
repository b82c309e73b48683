"""Desired states of nmstate become keyfiles; what is not understood is refused with its path."""

from __future__ import annotations

from textwrap import dedent

import pytest

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.coreos.customizing import Customization, Input, customized
from ingot.formats.coreos.features import parse_features
from ingot.formats.network import keyfiles_of_nmstate
from network_states import REFUSED, STATES


def made(state: str) -> dict[str, str]:
    return {name: content.decode() for name, content in keyfiles_of_nmstate(state.encode()).items()}


def test_an_interface_with_a_fixed_address_its_route_and_its_name_server() -> None:
    files = made("""
interfaces:
- name: enp1s0
  type: ethernet
  state: up
  mtu: 9000
  ipv4: {enabled: true, address: [{ip: 192.0.2.10, prefix-length: 24}]}
dns-resolver: {config: {server: [192.0.2.1, 192.0.2.2], search: [example.com, example.org]}}
routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: enp1s0, metric: 150}]}
""")
    assert files == {
        "enp1s0.nmconnection": dedent("""\
            [connection]
            autoconnect=true
            autoconnect-slaves=-1
            id=enp1s0
            interface-name=enp1s0
            type=802-3-ethernet
            uuid=11655ff4-09bf-500f-9f38-9bfcc91ab36b

            [ipv4]
            address0=192.0.2.10/24
            dhcp-timeout=2147483647
            dns=192.0.2.1;192.0.2.2
            dns-priority=40
            dns-search=example.com;example.org
            method=manual
            route0=0.0.0.0/0,192.0.2.1,150
            route0_options=table=254

            [ipv6]
            dhcp-timeout=2147483647
            method=disabled

            [ethernet]
            mtu=9000
            """)
    }


def test_a_device_that_is_found_by_its_address_with_dhcp_and_a_vlan_on_it() -> None:
    files = made("""
interfaces:
- name: uplink
  identifier: mac-address
  mac-address: 52:54:00:aa:bb:cc
  ipv4: {enabled: true, dhcp: true}
  ipv6: {enabled: true, dhcp: true, autoconf: true, auto-dns: false}
- {name: storage, type: vlan, vlan: {base-iface: uplink, id: 7}}
""")
    assert files["uplink.nmconnection"] == dedent("""\
        [connection]
        autoconnect=true
        autoconnect-slaves=-1
        id=uplink
        type=802-3-ethernet
        uuid=337e60e5-0e64-50c3-af89-71f8725c8cff

        [ipv4]
        dhcp-client-id=mac
        dhcp-send-hostname=true
        dhcp-timeout=2147483647
        ignore-auto-dns=false
        ignore-auto-routes=false
        method=auto
        never-default=false

        [ipv6]
        addr-gen-mode=0
        dhcp-duid=ll
        dhcp-iaid=mac
        dhcp-send-hostname=true
        dhcp-timeout=2147483647
        ignore-auto-dns=true
        ignore-auto-routes=false
        method=auto
        never-default=false
        ra-timeout=2147483647

        [ethernet]
        mac-address=52:54:00:AA:BB:CC
        """)
    assert files["storage.nmconnection"].endswith(
        "[vlan]\nflags=1\nid=7\nparent=337e60e5-0e64-50c3-af89-71f8725c8cff\n"
    )


def test_a_bond_and_its_ports_which_need_not_be_described() -> None:
    files = made("""
interfaces:
- name: bond0
  type: bond
  link-aggregation:
    mode: lacp
    options: {miimon: 100, lacp_rate: 1}
    ports-config: [{name: eno1, queue-id: 2}, {name: eno2}]
""")
    assert sorted(files) == ["bond0.nmconnection", "eno1.nmconnection", "eno2.nmconnection"]
    assert "[bond]\nlacp_rate=fast\nmiimon=100\nmode=802.3ad\n" in files["bond0.nmconnection"]
    assert "autoconnect-slaves=1\n" in files["bond0.nmconnection"]
    for port in ("eno1", "eno2"):
        assert "master=bond0\nslave-type=bond\n" in files[f"{port}.nmconnection"]
        assert "[ipv4]" not in files[f"{port}.nmconnection"]
    assert files["eno1.nmconnection"].endswith("\n\n[bond-port]\nqueue-id=2\n")


def test_a_bridge_with_vlans_on_its_ports() -> None:
    files = made("""
interfaces:
- name: br0
  type: linux-bridge
  bridge:
    options: {group-addr: "01:80:c2:00:00:04", stp: {enabled: false}}
    port:
    - {name: eth0, vlan: {mode: trunk, trunk-tags: [{id-range: {min: 10, max: 12}}, {id: 5}]}}
    - {name: eth1, vlan: {mode: access, tag: 7}}
    - {name: eth2}
""")
    assert (
        "[bridge]\ngroup-address=01:80:C2:00:00:04\nstp=false\nvlan-filtering=true\n"
        in files["br0.nmconnection"]
    )
    assert files["eth0.nmconnection"].endswith("[bridge-port]\nvlans=5,10-12\n")
    assert files["eth1.nmconnection"].endswith("[bridge-port]\nvlans=7 pvid untagged\n")
    assert files["eth2.nmconnection"].endswith("[bridge-port]\n")


def test_rules_and_routes_that_lead_nowhere() -> None:
    files = made("""
interfaces:
- {name: eth0, ipv4: {enabled: true, address: [{ip: 192.0.2.9, prefix-length: 24}]}}
routes:
  config:
  - {destination: 198.51.100.0/24, next-hop-interface: eth0, table-id: 100}
  - {destination: "2001:db8::/32", route-type: blackhole}
route-rules:
  config:
  - {ip-from: 192.0.2.77/24, route-table: 100}
  - {ip-to: 203.0.113.0/24, route-table: 100, priority: 5, action: prohibit, fwmark: 0x10, fwmask: 0xff}
""")
    assert "routing-rule0=priority 30000 from 192.0.2.0/24 table 100\n" in files["eth0.nmconnection"]
    assert (
        "routing-rule1=priority 5 to 203.0.113.0/24 type prohibit table 100 fwmark 16/255\n"
        in files["eth0.nmconnection"]
    )
    assert "route0=2001:db8::/32,,1024\nroute0_options=table=254,type=blackhole\n" in files["lo.nmconnection"]


def test_servers_of_both_families_go_to_the_first_interface_with_fixed_addresses_of_each() -> None:
    files = made("""
interfaces:
- {name: a, ipv4: {enabled: true, dhcp: true}, ipv6: {enabled: true, dhcp: true, autoconf: true}}
- {name: b, ipv4: {enabled: true, address: [{ip: 192.0.2.9, prefix-length: 24}]}}
- {name: c, state: down, ipv6: {enabled: true, address: [{ip: "2001:db8::9", prefix-length: 64}]}}
dns-resolver: {config: {server: ["2001:db8::53", 192.0.2.53], search: [example.com]}}
""")
    assert (
        "dns=2001:db8::53\ndns-priority=40\ndns-search=example.com\n"
        in files["a.nmconnection"].partition("[ipv6]")[2]
    )
    assert "dns=192.0.2.53\ndns-priority=50\nmethod" in files["b.nmconnection"].partition("[ipv4]")[2]
    assert "dns" not in files["c.nmconnection"]


def test_no_file_for_what_is_absent_or_to_be_ignored_and_none_that_starts_for_what_is_down() -> None:
    files = made(STATES["up, down, absent, to be ignored"])
    assert sorted(files) == ["dummy0.nmconnection", "eth0.nmconnection", "eth1.nmconnection"]
    assert "autoconnect=false\n" in files["eth1.nmconnection"]
    assert "autoconnect=true\n" in files["eth0.nmconnection"]


def test_a_value_cannot_begin_another_line_or_another_item_of_a_list() -> None:
    with pytest.raises(FormatError, match=r"description: .* has control characters"):
        made('interfaces: [{name: eth0, description: "a\\n[connection]\\nid=b"}]')
    with pytest.raises(FormatError, match="search"):
        made(
            'interfaces: [{name: e, ipv4: {enabled: true, dhcp: true}}]\ndns-resolver: {config: {search: ["a;b"]}}'
        )
    files = made("interfaces: [{name: eth0, description: '  a \\ b;c'}]")
    assert files["eth0.nmconnection"].endswith("nmstate.interface.description=\\s\\sa \\\\ b;c\n")


@pytest.mark.parametrize(("state", "why", "_both"), REFUSED, ids=[why for _, why, _ in REFUSED])
def test_what_is_not_understood_is_refused_with_its_path(state: str, why: str, _both: bool) -> None:
    with pytest.raises(FormatError) as refused:
        made(state)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_the_same_state_always_gives_the_same_files(state: str) -> None:
    assert made(state) == made(state)
    assert list(made(state)) == sorted(made(state))


def test_two_connections_cannot_have_one_file() -> None:
    with pytest.raises(FormatError, match="two connections named 'same'"):
        made("interfaces: [{name: eth0, profile-name: same}, {name: eth1, profile-name: same}]")


def test_a_name_that_more_than_one_connection_has_is_no_reference() -> None:
    with pytest.raises(FormatError, match="'same' is the name of more than one connection"):
        made("""
interfaces:
- {name: eth0, profile-name: same}
- {name: eth1, profile-name: same}
- {name: v, type: vlan, vlan: {id: 1, base-iface: same}}
""")


def test_a_rule_cannot_name_a_device_whose_name_is_not_known() -> None:
    with pytest.raises(FormatError, match="iif: uplink is not found by its name"):
        made("""
interfaces: [{name: uplink, identifier: mac-address, mac-address: 52:54:00:00:00:01, ipv4: {enabled: true, dhcp: true}}]
route-rules: {config: [{family: ipv4, iif: uplink}]}
""")


def test_a_bond_with_the_address_of_its_active_port_cannot_have_another() -> None:
    with pytest.raises(FormatError, match="mac-address: with fail_over_mac active"):
        made("""
interfaces:
- name: bond0
  type: bond
  mac-address: 52:54:00:00:00:01
  link-aggregation: {mode: active-backup, options: {fail_over_mac: active}}
""")


# In a live image

STATE = Input("some/state.yaml", b"interfaces: [{name: eth0}]")
KEYFILE = Input("some/eth0.nmconnection", b"[connection]\n")
FEATURES = parse_features(b'{"live-initrd-network": true}')
FOLDER = "etc/coreos-firstboot-network"


def test_a_live_image_gets_the_keyfiles_of_a_state_beside_those_that_are_given() -> None:
    other = Input("other.nmconnection", b"[connection]\n")
    members, _ = customized(Customization(network_keyfile=[other], network_nmstate=[STATE]), FEATURES)
    assert members == {
        f"{FOLDER}/other.nmconnection": other.content,
        f"{FOLDER}/eth0.nmconnection": keyfiles_of_nmstate(STATE.content)["eth0.nmconnection"],
    }


def test_a_live_image_cannot_have_two_keyfiles_of_one_name() -> None:
    with pytest.raises(FormatError, match=f"config already specifies keyfile {FOLDER}/eth0.nmconnection"):
        customized(Customization(network_keyfile=[KEYFILE], network_nmstate=[STATE]), FEATURES)


def test_what_is_wrong_with_a_state_is_said_with_its_file() -> None:
    wrong = Input("some/state.yaml", b"interfaces: [{}]")
    with pytest.raises(FormatError, match=r"nmstate some/state\.yaml: interfaces\[0\]\.name: is needed"):
        customized(Customization(network_nmstate=[wrong]), FEATURES)


def test_an_image_that_takes_no_network_settings_says_so() -> None:
    with pytest.raises(UnsupportedFormat, match="does not support customizing network settings"):
        customized(Customization(network_nmstate=[STATE]), parse_features(b"{}"))
