"""Our keyfiles beside those of the nmstate that the real coreos-installer carries: the same files, to the byte.

The few places where they differ on purpose are the ones that `formats.network.connections` names; each has a test here that
shows both sides.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from configparser import RawConfigParser
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from ingot.formats import FormatError
from ingot.formats.initrd import read_members
from ingot.formats.network import keyfiles_of_nmstate
from live_images import live_initrd
from network_states import REFUSED, STATES

TOOL = Path(__file__).parents[2] / "tools" / "coreos-installer" / "build"
THEIRS = Path(subprocess.run([TOOL, "--where"], capture_output=True, text=True, check=True).stdout.strip())
pytestmark = pytest.mark.skipif(
    not THEIRS.exists(), reason="coreos-installer is not built; `make test-coreos` builds it"
)

NETWORK = "etc/coreos-firstboot-network/"
Files = dict[str, str]
Theirs = Callable[[str], Files | None]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Theirs:
    """The keyfiles that coreos-installer embeds for a desired state; None where it refuses the state."""
    folder = tmp_path_factory.mktemp("nmstate")
    initrd, state, output = (folder / name for name in ("initrd.img", "state.yaml", "out.img"))
    initrd.write_bytes(live_initrd())

    def made(text: str) -> Files | None:
        state.write_text(text)
        output.unlink(missing_ok=True)
        words = [THEIRS, "pxe", "customize", "--network-nmstate", state, "-o", output, initrd]
        if subprocess.run(words, capture_output=True, check=False).returncode:
            return None
        with output.open("rb") as file:
            found = read_members(file, lambda name: name.startswith(NETWORK))
        return {name.removeprefix(NETWORK): content.decode() for name, content in found.items()}

    return made


def ours(text: str) -> Files:
    return {name: content.decode() for name, content in keyfiles_of_nmstate(text.encode()).items()}


def ours_if_any(text: str) -> Files | None:
    try:
        return ours(text)
    except FormatError as error:
        note(f"refused: {error}")
        return None


def with_rules_in_order(files: Files | None) -> Files | None:
    """The order of rules that nmstate writes is another one in each run; their numbers say nothing."""
    return files and {name: _rules_in_order(content) for name, content in files.items()}


def _rules_in_order(content: str) -> str:
    lines = content.splitlines(keepends=True)
    rules = sorted(line.partition("=")[2] for line in lines if line.startswith("routing-rule"))
    return "".join("=" + rules.pop(0) if line.startswith("routing-rule") else line for line in lines)


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_a_state_as_people_write_it_gives_the_same_files_to_the_byte(state: str, theirs: Theirs) -> None:
    assert with_rules_in_order(ours(state)) == with_rules_in_order(theirs(state))


@pytest.mark.parametrize(("state", "why", "both"), REFUSED, ids=[why for _, why, _ in REFUSED])
def test_what_we_refuse_is_refused_by_nmstate_too_or_known_not_to_be(
    state: str, why: str, both: bool, theirs: Theirs
) -> None:
    with pytest.raises(FormatError):
        ours(state)
    assert (theirs(state) is None) == both


# Anything


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


BYTE = st.integers(0, 255)
FOUR = st.builds(lambda a, b: f"10.{a}.{b}.1", BYTE, BYTE)
SIX = st.builds(lambda a, b: f"2001:db8:{a:x}::{b:x}", BYTE, st.integers(1, 255))
MAC = st.builds(lambda a, b: f"52:54:00:00:{a:02x}:{b:02X}", BYTE, BYTE)
NUMBER = st.integers(0, 2**31)
FLAG = st.booleans()


def static(address: st.SearchStrategy[str], longest: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    each = st.fixed_dictionaries({"ip": address, "prefix-length": st.integers(1, longest)})
    return st.lists(each, min_size=1, max_size=3)


AUTO = {
    "auto-dns": FLAG,
    "auto-gateway": FLAG,
    "auto-routes": FLAG,
    "auto-route-table-id": st.integers(1, 500),
    "auto-route-metric": NUMBER,
    "dhcp-send-hostname": FLAG,
    "dhcp-custom-hostname": st.sampled_from(["host", "host.example", ""]),
}
IPV4 = st.one_of(
    st.fixed_dictionaries(
        {"enabled": st.just(True), "address": static(FOUR, 32)}, optional={"dhcp": FLAG, **AUTO}
    ),
    st.fixed_dictionaries(
        {"enabled": st.just(True), "dhcp": st.just(True)},
        optional={"dhcp-client-id": st.sampled_from(["ll", "iaid+duid", "abc"]), "forwarding": FLAG, **AUTO},
    ),
    st.fixed_dictionaries({"enabled": st.just(False)}, optional={"dhcp": FLAG, "forwarding": FLAG}),
)
IPV6 = st.one_of(
    st.fixed_dictionaries(
        {"enabled": st.just(True), "address": static(SIX, 128)},
        optional={"addr-gen-mode": st.sampled_from(["eui64", "stable-privacy"]), **AUTO},
    ),
    st.fixed_dictionaries(
        {"enabled": st.just(True), "dhcp": st.just(True), "autoconf": FLAG},
        optional={"dhcp-duid": st.sampled_from(["ll", "LLT", "lease", "00:01:5e"]), **AUTO},
    ),
    st.fixed_dictionaries({"enabled": FLAG}),
)
COMMON = {
    "state": st.sampled_from(["up", "up", "down"]),
    "mtu": st.integers(1280, 9000),
    "lldp": st.fixed_dictionaries({"enabled": FLAG}),
    "ipv4": IPV4,
    "ipv6": IPV6,
    "description": st.sampled_from(["", "text", "with; signs = here"]),
    "accept-all-mac-addresses": FLAG,
}


def interface(kind: str, name: str, **fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"name": st.just(name), "type": st.just(kind), **fields}, optional=COMMON)


BOND_OPTIONS = some(
    ad_select=st.sampled_from(["stable", "1", 2]),
    all_slaves_active=st.sampled_from([0, "1", "dropped"]),
    downdelay=NUMBER,
    fail_over_mac=st.sampled_from(["none", "follow", 1]),
    miimon=st.integers(1, 2**31),
    min_links=NUMBER,
    num_grat_arp=BYTE,
    primary_reselect=st.sampled_from(["always", "better", 2]),
    resend_igmp=NUMBER,
    tlb_dynamic_lb=FLAG,
    updelay=NUMBER,
    use_carrier=FLAG,
    xmit_hash_policy=st.sampled_from(["layer2", "layer3+4", "encap2+3", 5]),
    arp_missed_max=BYTE,
)
BOND = interface(
    "bond",
    "bond0",
    **{
        "link-aggregation": st.fixed_dictionaries(
            {"mode": st.sampled_from(["balance-rr", 1, 2, "3", "802.3ad", "balance-tlb", 6])},
            optional={
                "options": BOND_OPTIONS,
                "port": st.lists(st.sampled_from(["port0", "port1"]), unique=True),
            },
        )
    },
)
PORT_VLAN = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"mode": st.just("access"), "tag": st.integers(1, 4094)}),
    st.builds(
        lambda first, more, single: {
            "mode": "trunk",
            "trunk-tags": [{"id-range": {"min": first, "max": first + more}}, {"id": single}],
        },
        st.integers(1, 1000),
        st.integers(0, 100),
        st.integers(2000, 4094),
    ),
)
BRIDGE_PORT = some(
    **{
        "stp-hairpin-mode": FLAG,
        "stp-path-cost": NUMBER,
        "stp-priority": st.integers(0, 63),
        "vlan": PORT_VLAN,
    }
)
BRIDGE = interface(
    "linux-bridge",
    "br0",
    bridge=st.fixed_dictionaries(
        {},
        optional={
            "options": some(
                **{
                    "mac-ageing-time": NUMBER,
                    "multicast-router": st.sampled_from(["auto", 0, "enabled"]),
                    "multicast-snooping": FLAG,
                    "group-fwd-mask": st.integers(0, 8191).map(lambda number: number * 8),
                    "stp": some(
                        **{
                            "enabled": FLAG,
                            "hello-time": st.integers(1, 10),
                            "max-age": st.integers(6, 40),
                            "forward-delay": st.integers(2, 30),
                            "priority": st.integers(0, 65535),
                        }
                    ),
                }
            ),
            "port": st.lists(st.builds(lambda port: {"name": "port2"} | port, BRIDGE_PORT), max_size=1),
        },
    ),
)
VLAN = interface(
    "vlan",
    "vlan0",
    vlan=st.fixed_dictionaries(
        {"base-iface": st.sampled_from(["eth0", "bond0", "found", "elsewhere"]), "id": st.integers(0, 4094)},
        optional={
            "protocol": st.sampled_from(["802.1q", "802.1ad"]),
            "reorder-headers": FLAG,
            "loose-binding": FLAG,
            "registration-protocol": st.sampled_from(["gvrp", "mvrp", "none"]),
        },
    ),
)
FOUND = interface("ethernet", "found", **{"identifier": st.just("mac-address"), "mac-address": MAC})
ETHERNET = interface("ethernet", "eth0", **{"mac-address": MAC})
DUMMY = interface("dummy", "dummy0")
INTERFACES = st.tuples(
    *(st.one_of(st.none(), each) for each in (ETHERNET, FOUND, BOND, VLAN, BRIDGE, DUMMY))
).flatmap(lambda given: st.permutations([each for each in given if each]))
TABLE = st.sampled_from([254, 100, 200])


@st.composite
def desired_states(draw: st.DrawFn) -> dict[str, Any]:
    interfaces = draw(INTERFACES)
    state: dict[str, Any] = {"interfaces": interfaces}
    able = {
        version: [
            each["name"]
            for each in interfaces
            if each.get("state", "up") == "up"
            and (each.get(f"ipv{version}") or {}).get("enabled")
            and ({"address", "dhcp"} & set(each[f"ipv{version}"]))
        ]
        for version in (4, 6)
    }
    routes, servers = [], []
    for version, addresses in ((4, FOUR), (6, SIX)):
        if able[version]:
            width = st.integers(9, 32 if version == 4 else 128)
            route = st.fixed_dictionaries(
                {
                    "destination": st.builds(lambda address, length: f"{address}/{length}", addresses, width),
                    "next-hop-interface": st.sampled_from(able[version]),
                },
                optional={
                    "next-hop-address": addresses,
                    "metric": NUMBER,
                    "table-id": TABLE,
                    "mtu": st.integers(1, 9000),
                },
            )
            routes += draw(
                st.lists(
                    route, max_size=4, unique_by=lambda each: ip_network(each["destination"], strict=False)
                )
            )
            servers += draw(st.lists(addresses, max_size=2, unique=True))
    if routes:
        state["routes"] = {"config": draw(st.permutations(routes))}
    if servers and not any(each.get("state") == "down" for each in interfaces):
        state["dns-resolver"] = {"config": {"server": servers}}
        if draw(FLAG):
            state["dns-resolver"]["config"]["search"] = ["example.com", "example.org"]
    return state


@given(desired_states())
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_any_state_gives_the_same_files_or_is_refused_by_both(theirs: Theirs, state: dict[str, Any]) -> None:
    text = yaml.safe_dump(state, sort_keys=False)
    assert ours_if_any(text) == theirs(text)


ENABLED = {
    "ipv4": st.one_of(
        st.fixed_dictionaries({"enabled": st.just(True), "address": static(FOUR, 32)}),
        st.fixed_dictionaries(
            {"enabled": st.just(True), "dhcp": st.just(True)}, optional={"auto-route-table-id": TABLE}
        ),
    ),
    "ipv6": st.one_of(
        st.fixed_dictionaries({"enabled": st.just(True), "address": static(SIX, 128)}),
        st.fixed_dictionaries(
            {"enabled": st.just(True), "dhcp": st.just(True), "autoconf": FLAG},
            optional={"auto-route-table-id": TABLE},
        ),
    ),
}
RULE_OPTIONS = {
    "priority": st.integers(0, 100_000),
    "route-table": TABLE,
    "iif": st.sampled_from(["eth0", "eth1", "eth2"]),
    "fwmark": NUMBER,
    "action": st.sampled_from(["blackhole", "unreachable", "prohibit"]),
    "suppress-prefix-length": st.integers(0, 32),
}
RULE = st.one_of(
    st.fixed_dictionaries({"ip-from": FOUR}, optional={"ip-to": FOUR, **RULE_OPTIONS}),
    st.fixed_dictionaries({"ip-from": SIX}, optional={"ip-to": SIX, **RULE_OPTIONS}),
)


@st.composite
def states_with_rules(draw: st.DrawFn) -> dict[str, Any]:
    """Interfaces that could all keep a rule, of which one has a route: nmstate has to choose, and not by chance."""
    names = draw(st.permutations(["eth0", "eth1", "eth2"]))
    state: dict[str, Any] = {
        "interfaces": [{"name": name} | draw(st.fixed_dictionaries(ENABLED)) for name in names],
        "route-rules": {"config": draw(st.lists(RULE, max_size=4, unique_by=lambda rule: rule["ip-from"]))},
    }
    if draw(FLAG):
        route = {"destination": "192.0.2.0/24", "next-hop-interface": draw(st.sampled_from(names))}
        state["routes"] = {"config": [route | {"table-id": draw(TABLE)}]}
    return state


@given(states_with_rules())
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_any_rules_are_kept_by_the_same_interfaces(theirs: Theirs, state: dict[str, Any]) -> None:
    text = yaml.safe_dump(state, sort_keys=False)
    assert with_rules_in_order(ours_if_any(text)) == with_rules_in_order(theirs(text))


# NetworkManager itself


@pytest.mark.skipif(
    shutil.which("nmcli") is None, reason="nmcli, of the package network-manager, is not there"
)
@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_networkmanager_takes_every_file_and_reads_the_same_in_it(state: str) -> None:
    for content in ours(state).values():
        words = ["nmcli", "--offline", "connection", "modify", "connection.autoconnect-priority", "0"]
        read = subprocess.run(words, input=content, capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, "")
        mine, other = sections(content), sections(read.stdout)
        for family in {"ipv4", "ipv6"} & set(mine):
            assert numbered(other[family], "address") == numbered(mine[family], "address")
            assert len(numbered(other[family], "routing-rule")) == len(numbered(mine[family], "routing-rule"))
            assert {gone(route) for route in numbered(other[family], "route")} == {
                gone(route) for route in numbered(mine[family], "route")
            }
            assert other[family].get("dns", "").rstrip(";") == mine[family].get("dns", "")
            assert other[family]["method"] == mine[family]["method"]


def numbered(section: dict[str, str], name: str) -> set[str]:
    """The values under `name` and a number; NetworkManager counts from one."""
    return {value for key, value in section.items() if re.fullmatch(rf"{name}\d+", key)}


def gone(route: str) -> str:
    """A route without a gateway is written in more than one way."""
    return route.replace(",0.0.0.0,", ",,").replace(",::,", ",,")


# On purpose


def sections(content: str) -> dict[str, dict[str, str]]:
    parser = RawConfigParser(delimiters=("=",), strict=True)
    parser.read_string(content)
    return {name: dict(parser[name]) for name in parser.sections()}


def both(
    state: str, name: str, theirs: Theirs
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    found = theirs(state)
    assert found is not None
    return sections(ours(state)[name]), sections(found[name])


def test_settings_of_a_port_that_is_found_by_its_address_are_not_lost(theirs: Theirs) -> None:
    state = """
interfaces:
- {name: eth0, identifier: mac-address, mac-address: 52:54:00:00:00:01}
- {name: bond0, type: bond, link-aggregation: {mode: 1, ports-config: [{name: eth0, queue-id: 3}]}}
"""
    mine, other = both(state, "eth0.nmconnection", theirs)
    assert mine.pop("bond-port") == {"queue-id": "3"}
    assert mine == other


def test_the_group_address_of_a_bridge_is_written_as_an_address(theirs: Theirs) -> None:
    state = (
        "interfaces: [{name: br0, type: linux-bridge, bridge: {options: {group-addr: '01:80:c2:00:00:04'}}}]"
    )
    mine, other = both(state, "br0.nmconnection", theirs)
    assert mine["bridge"] == {"group-address": "01:80:C2:00:00:04"}
    assert other["bridge"] == {"group-address": "1;128;194;0;0;4"}


def test_routes_that_differ_in_their_metric_are_all_kept(theirs: Theirs) -> None:
    state = """
interfaces: [{name: eth0, ipv4: {enabled: true, address: [{ip: 192.0.2.9, prefix-length: 24}]}}]
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-interface: eth0, next-hop-address: 192.0.2.1, metric: 20}
  - {destination: 0.0.0.0/0, next-hop-interface: eth0, next-hop-address: 192.0.2.1, metric: 10}
"""
    mine, other = both(state, "eth0.nmconnection", theirs)
    assert [mine["ipv4"]["route0"], mine["ipv4"]["route1"]] == [
        "0.0.0.0/0,192.0.2.1,10",
        "0.0.0.0/0,192.0.2.1,20",
    ]
    assert "route1" not in other["ipv4"]


def test_a_backslash_is_read_back_as_one(theirs: Theirs) -> None:
    state = "interfaces: [{name: eth0, description: 'C:\\new'}]"
    mine, other = both(state, "eth0.nmconnection", theirs)
    assert mine["user"] == {"nmstate.interface.description": "C:\\\\new"}
    assert other["user"] == {"nmstate.interface.description": "C:\\new"}


def test_a_rule_of_the_main_table_is_not_lost_on_an_interface_without_addresses(theirs: Theirs) -> None:
    state = """
interfaces: [{name: a}, {name: b, ipv4: {enabled: true, dhcp: true}}]
route-rules: {config: [{ip-from: 192.0.2.0/24, priority: 5}]}
"""
    found = theirs(state)
    assert found is not None
    assert not any("routing-rule" in content for content in found.values())
    rule = sections(ours(state)["b.nmconnection"])["ipv4"]["routing-rule0"]
    assert rule == "priority 5 from 192.0.2.0/24 table 254"


def test_a_port_can_be_named_by_its_connection(theirs: Theirs) -> None:
    state = """
interfaces:
- {name: eth0, profile-name: uplink}
- {name: bond0, type: bond, link-aggregation: {mode: 1, port: [uplink]}}
"""
    assert theirs(state) is None  # it makes a second connection of that name
    assert sections(ours(state)["uplink.nmconnection"])["connection"]["master"] == "bond0"
