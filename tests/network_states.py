"""Desired states of nmstate, as people write them, and such that are refused.

`STATES` is what both our keyfiles and those of the real nmstate are made from; each has a shape that is met in the field, and
among them they use everything that is understood. `REFUSED` has what we refuse: with a part of the sentence, and whether
nmstate does too.
"""

from __future__ import annotations

STATES = {
    "one interface with fixed addresses": """
interfaces:
- name: enp1s0
  type: ethernet
  state: up
  mtu: 9000
  mac-address: 0e:f9:2b:28:42:d9
  lldp: {enabled: true}
  accept-all-mac-addresses: false
  wait-ip: ipv4
  ipv4:
    enabled: true
    dhcp: false
    address:
    - {ip: 192.0.2.10, prefix-length: "24"}
    - {ip: 192.0.2.11, prefix-length: 24}
    forwarding: true
  ipv6: {enabled: false}
dns-resolver:
  config: {server: [192.0.2.1], options: [rotate, "ndots:2"]}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: enp1s0, metric: 150, table-id: 254}
  - {state: absent, next-hop-interface: enp1s0}
  - {state: ignore, destination: 10.0.0.0/8, next-hop-interface: enp1s0}
""",
    "DHCP in every way": """
interfaces:
- name: eth0
  ipv4: {enabled: yes, dhcp: true, auto-dns: false, auto-gateway: false, auto-routes: true, auto-route-table-id: 200,
         auto-route-metric: 50, dhcp-client-id: iaid+duid, dhcp-custom-hostname: a.example}
  ipv6: {enabled: true, dhcp: true, autoconf: false, dhcp-duid: LLT, addr-gen-mode: stable-privacy,
         dhcp-send-hostname: false}
- name: eth1
  type: ethernet
  ipv4: {enabled: true, dhcp: true, dhcp-custom-hostname: host, dhcp-client-id: "01:aa"}
  ipv6: {enabled: true, dhcp: true, autoconf: true, token: "::0.0.250.193", dhcp-custom-hostname: h.example,
         address: [{ip: "2001:db8::1", prefix-length: 64}]}
- name: eth2
  ipv4: {enabled: true, dhcp: false}
  ipv6: {enabled: true, autoconf: false, dhcp: false}
- {name: eth3, wait-ip: any, ipv4: {enabled: false, dhcp: true}, ipv6: {enabled: false, autoconf: true}}
dns-resolver:
  config: {search: [example.com, "~."], options: ["timeout:3"]}
""",
    "up, down, absent, to be ignored": """
interfaces:
- {name: eth0, state: up}
- {name: eth1, state: down, ipv4: {enabled: true, address: [{ip: 10.0.0.1, prefix-length: 8}]}}
- {name: eth2, state: absent, ipv4: {enabled: whatever}}
- {name: br9, state: absent, type: ovs-bridge}
- {name: eth3, state: ignore}
- {name: dummy0, type: dummy, mtu: "1400", ipv6: {enabled: true, address: [{ip: "2001:DB8:0:0::1", prefix-length: 64}]}}
""",
    "an active-backup bond that watches with ARP": """
interfaces:
- name: bond0
  type: bond
  mac-address: 52:54:00:AA:00:01
  ipv4: {enabled: true, dhcp: true}
  ipv6: {enabled: true, dhcp: true, autoconf: true}
  link-aggregation:
    mode: 1
    options:
      primary: eno1
      fail_over_mac: follow
      primary_reselect: "1"
      num_grat_arp: 3
      num_unsol_na: 3
      arp_interval: 100
      arp_ip_target: 192.0.2.1,192.0.2.2
      arp_validate: filter_backup
      arp_all_targets: all
      arp_missed_max: 3
      all_slaves_active: delivered
      resend_igmp: 2
      use_carrier: true
      ns_ip6_target: ["2001:db8::1", "2001:db8::0:2"]
    ports-config:
    - {name: eno1, priority: 10, queue-id: 0}
    - {name: eno2, queue-id: 3}
    - {name: eno3, priority: 0}
""",
    "a bond with LACP and a VLAN on it": """
interfaces:
- name: bond0
  type: bond
  state: up
  copy-mac-from: eno1
  ipv4: {enabled: false}
  ipv6: {enabled: false}
  bond:
    mode: lacp
    options:
      lacp_rate: fast
      lacp_active: on
      ad_select: bandwidth
      ad_actor_sys_prio: 1000
      ad_actor_system: "00:00:00:00:00:ab"
      ad_user_port_key: 5
      miimon: "100"
      updelay: 200
      downdelay: 200
      min_links: 1
      xmit_hash_policy: layer2+3
    ports: [eno1, eno2]
- name: eno1
  type: ethernet
  mac-address: 52:54:00:aa:00:04
  mtu: 9000
  ethernet: {auto-negotiation: false, speed: 1000, duplex: full}
- {name: eno2, type: ethernet, ipv4: {enabled: false}, ethernet: {auto-negotiation: true, speed: 1000, duplex: full}}
- name: bond0.100
  type: vlan
  vlan: {base-iface: bond0, id: 100}
  ipv4: {enabled: true, address: [{ip: 192.0.2.2, prefix-length: 24}]}
  ipv6: {enabled: true, address: [{ip: "2001:db8::2", prefix-length: 64}]}
dns-resolver: {config: {server: [192.0.2.1, "2001:db8::1"], search: [example.org, example.com]}}
routes:
  config:
  - {destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: bond0.100}
  - {destination: "::/0", next-hop-address: "2001:db8::ffff", next-hop-interface: bond0.100}
""",
    "other bonds": """
interfaces:
- name: bond2
  type: bond
  link-aggregation:
    mode: balance-xor
    options: {balance-slb: true, xmit_hash_policy: vlan+srcmac, arp_missed_max: 2}
    port: []
- {name: bond3, type: bond, state: down, link-aggregation: {mode: 5, options: {tlb_dynamic_lb: 0}, port: [e9]}}
- {name: bond4, type: bond, link-aggregation: {mode: balance-rr, options: {packets_per_slave: 1, arp_interval: 0}}}
- {name: bond5, type: bond, link-aggregation: {mode: "6", options: {lp_interval: 2}}}
- {name: bond6, type: bond, link-aggregation: {mode: broadcast, port: [e10]}}
- {name: e11, type: ethernet, controller: bond4, mtu: 1500}
- {name: e10, controller: bond6}
""",
    "a bridge with everything": """
interfaces:
- name: br0
  type: linux-bridge
  ipv4: {enabled: true, address: [{ip: 192.0.2.3, prefix-length: 25}]}
  bridge:
    options:
      gc-timer: 10
      hello-timer: 10
      group-forward-mask: 8
      hash-max: 4096
      mac-ageing-time: 300
      multicast-last-member-count: 2
      multicast-last-member-interval: 100
      multicast-membership-interval: 26000
      multicast-querier: false
      multicast-querier-interval: 25500
      multicast-query-interval: 12500
      multicast-query-response-interval: 1000
      multicast-query-use-ifaddr: false
      multicast-router: 1
      multicast-snooping: true
      multicast-startup-query-count: 2
      multicast-startup-query-interval: 3125
      vlan-protocol: 802.1q
      vlan-default-pvid: 5
      stp: {enabled: true, forward-delay: 15, hello-time: 2, max-age: 20, priority: 32768}
    port:
    - {name: eth1, stp-hairpin-mode: false, stp-path-cost: 100, stp-priority: 32}
    - {name: eth2, vlan: {mode: trunk, trunk-tags: [{id-range: {min: 600, max: 900}}, {id: 101}], tag: 100, enable-native: true}}
    - {name: bond0.5, vlan: {mode: access, tag: 305}}
- name: bond0.5
  type: vlan
  vlan:
    base-iface: bond0
    id: 5
    protocol: 802.1ad
    registration-protocol: mvrp
    reorder-headers: false
    loose-binding: true
    ingress-qos-map: [{from: 5, to: 6}, {from: 1, to: 9}]
    egress-qos-map: [{from: 0, to: 7}]
- {name: bond0, type: bond, link-aggregation: {mode: balance-rr, port: [eth5, eth6]}}
""",
    "small bridges": """
interfaces:
- {name: br1, type: linux-bridge}
- {name: eth7, controller: br1, description: to the core}
- {name: br2, type: linux-bridge, bridge: {ports: [{name: eth8, vlan: {}}]}}
- {name: br3, type: linux-bridge, copy-mac-from: eth9,
   bridge: {options: {group-fwd-mask: "8", stp: {enabled: false}}, port: [{name: eth9}]}}
- {name: eth9, mac-address: "52:54:00:12:34:56", permanent-mac-address: "52:54:00:12:34:57", controller: br3}
""",
    "devices that are found by their address": """
interfaces:
- name: wan
  profile-name: the-wan
  type: ethernet
  identifier: mac-address
  mac-address: 52:54:00:00:00:01
- name: wan.7
  type: vlan
  vlan: {base-iface: the-wan, id: "7", registration-protocol: gvrp}
  ipv6: {enabled: true, address: [{ip: "2001:db8::7", prefix-length: 64}, {ip: "::ffff:192.0.2.1", prefix-length: 128}]}
- name: pci
  identifier: pci-address
  pci-address: "07:00.1"
  ipv4: {enabled: true, dhcp: true}
- {name: other, type: ethernet, profile-name: a name with blanks, driver: e1000, min-mtu: 68, max-mtu: 9000}
- {name: eth0, identifier: mac-address, mac-address: 52:54:00:00:00:02}
- {name: eth1, identifier: mac-address, mac-address: 52:54:00:00:00:03}
- {name: bond0, type: bond, link-aggregation: {mode: active-backup, port: [eth0, eth1]}, ipv4: {enabled: true, dhcp: true}}
dns-resolver:
  config: {server: ["fe80::1%wan.7", "2001:db8::53", 192.0.2.53], search: [example.net]}
routes:
  config:
  - {destination: "::/0", next-hop-address: "2001:db8::1", next-hop-interface: wan.7}
  - {destination: "2001:db8:f::1", next-hop-address: "2001:db8::2", next-hop-interface: wan.7, metric: -1, table-id: 0}
""",
    "routes of every kind": """
interfaces:
- {name: eth0, ipv4: {enabled: true, address: [{ip: 192.0.2.9, prefix-length: 24}]}}
- {name: eth1, ipv4: {enabled: true, dhcp: true}, ipv6: {enabled: true, address: [{ip: "2001:db8::9", prefix-length: 64}]}}
routes:
  running: [{destination: nowhere}]
  config:
  - {destination: 10.0.0.0/8, next-hop-interface: eth0, next-hop-address: 0.0.0.0}
  - {destination: 10.0.0.0/8, next-hop-interface: eth0, next-hop-address: 192.0.2.1}
  - {destination: 10.0.0.0/9, next-hop-interface: eth0, next-hop-address: 192.0.2.1}
  - {destination: 10.0.0.0/8, next-hop-interface: eth0, next-hop-address: 192.0.2.1}
  - {destination: 198.51.100.7/24, next-hop-address: 192.0.2.2, next-hop-interface: eth0, table-id: 100, mtu: 1400,
     source: 192.0.2.10, weight: 5, cwnd: 20, initcwnd: 3, initrwnd: 4, quickack: true, advmss: 1300}
  - {destination: "2001:db8:1::/48", next-hop-interface: eth1, next-hop-address: "2001:db8::1", quickack: false}
  - {destination: 203.0.113.0/24, next-hop-interface: eth1}
  - {destination: "2001:db8:e::/48", route-type: prohibit}
  - {destination: 192.0.2.128/25, route-type: unreachable, next-hop-interface: lo}
  - {destination: 192.0.2.128/25, route-type: blackhole, table-id: 7}
""",
    "rules": """
interfaces:
- {name: eth0, ipv4: {enabled: true, dhcp: true, auto-route-table-id: 200}}
- {name: eth1, ipv4: {enabled: true, address: [{ip: 192.0.2.9, prefix-length: 24}]},
   ipv6: {enabled: true, dhcp: true, autoconf: true}}
routes:
  config:
  - {destination: 198.51.100.0/24, next-hop-interface: eth1, table-id: 100}
route-rules:
  config:
  - {ip-to: 10.1.0.0/16, priority: 500, route-table: 200}
  - {ip-from: 10.2.3.4/16, route-table: 100}
  - {ip-from: "2001:db8::/32", ip-to: "2001:db8:1::/48", route-table: 300, fwmark: 0x10, fwmask: 255}
  - {family: ipv4, iif: eth1, suppress_prefixlength: 0, priority: 100}
  - {ip-from: 192.0.2.1, action: prohibit, route-table: 200, fwmark: "7"}
  - {family: ipv6, ip-to: "2001:db8:2::/48"}
  - {state: absent, priority: 5}
""",
    "a rule with nowhere to be": """
interfaces: [{name: eth0}]
route-rules: {config: [{ip-from: 192.0.2.0/24, route-table: 42}]}
""",
    "a rule for what the machine itself sends": """
interfaces: [{name: eth0, ipv4: {enabled: true, dhcp: true}}]
route-rules: {config: [{family: ipv4, iif: lo, route-table: 42}]}
""",
    "name servers of DHCP replaced": """
interfaces:
- {name: eth0, ipv4: {enabled: true, dhcp: true}}
- {name: eth1, ipv4: {enabled: true, dhcp: true, auto-dns: false}}
dns-resolver: {running: {server: [x]}, config: {server: [192.0.2.53, 192.0.2.54]}}
""",
    "JSON": """
{"interfaces":[{"name":"eth0","type":"ethernet","state":"up","ipv4":{"enabled":true,"dhcp":true},"mtu":1500}],
 "dns-resolver":{"config":{}},"routes":{"config":[]},"hostname":{"running":"x"},"description":"d"}
""",
    "aliases": """
interfaces:
- {name: eth0, ipv4: &address {enabled: true, dhcp: true}}
- {name: eth1, ipv4: *address}
""",
    "nothing": "interfaces: []\n",
}

_ETH0 = "{name: eth0, ipv4: {enabled: true, address: [{ip: 192.0.2.9, prefix-length: 24}]}}"
_DHCP = "{name: eth0, ipv4: {enabled: true, dhcp: true}}"


def _interface(fields: str) -> str:
    return f"interfaces: [{{name: eth0, {fields}}}]"


def _with(rest: str, interfaces: str = _ETH0) -> str:
    return f"interfaces: [{interfaces}]\n{rest}"


REFUSED: list[tuple[str, str, bool]] = [
    # What nmstate can do and we cannot.
    (
        _interface("type: vxlan, vxlan: {base-iface: eth1, id: 5}"),
        "interfaces[0].type: 'vxlan' is not one of",
        False,
    ),
    (_interface("type: ovs-bridge"), "interfaces[0].type: 'ovs-bridge'", False),
    (
        _interface("ethernet: {sr-iov: {total-vfs: 2}}"),
        "interfaces[0].ethernet.sr-iov: is not supported",
        False,
    ),
    (_interface("802.1x: {identity: me, password: secret}"), "interfaces[0].802.1x: is not supported", False),
    (_interface("ethtool: {pause: {autoneg: true}}"), "interfaces[0].ethtool: is not supported", False),
    ("ovs-db: {external_ids: {}}", "ovs-db: is not supported", False),
    ("hostname: {config: a}", "hostname.config: a keyfile cannot carry", False),
    # What nmstate drops without a word, or writes so that NetworkManager does not take it.
    (_interface("type: etehrnet"), "interfaces[0].type: 'etehrnet'", False),
    (_interface("ipv4: {dhcp: true}"), "interfaces[0].ipv4.enabled: is needed", False),
    (
        _interface("ipv6: {enabled: true, address: [{ip: 'fe80::1', prefix-length: 64}]}"),
        "address[0].ip: a link-local",
        False,
    ),
    (_interface("identifier: mac-address"), "interfaces[0].mac-address: is needed", False),
    (_interface("identifier: pci-address"), "interfaces[0].pci-address: is needed", False),
    (_interface("mac-address: 12:34"), "interfaces[0].mac-address: '12:34' is not a MAC address", False),
    (
        _interface("profile-name: ../../x"),
        "interfaces[0].profile-name: '../../x' becomes the name of a file",
        False,
    ),
    (_interface("profile-name: .hidden"), "becomes the name of a file", False),
    (_interface("copy-mac-from: eth1"), "interfaces[0].copy-mac-from: only a bond", False),
    (
        _interface("ethernet: {speed: 1000}"),
        "interfaces[0].ethernet.auto-negotiation: has to be false",
        False,
    ),
    (_interface("type: vlan"), "interfaces[0].vlan: is needed", False),
    (_interface("wait-ip: ipv6"), "interfaces[0].wait-ip: there is no IPv6", False),
    ("interfaces: [{name: a/b}]", "interfaces[0].name: 'a/b' is no name for an interface", False),
    ("interfaces: [{name: a-name-that-is-too-long}]", "no name for an interface", False),
    ("interfaces: [{name: lo}]", "interfaces[0].name: the loopback", False),
    (_interface("type: vlan, vlan: {id: 5, base-iface: lo}"), "vlan.base-iface: 'lo' is no name", False),
    (
        _interface("type: linux-bridge, bridge: {port: [{name: lo}]}"),
        "port: 'lo' is no name for an interface",
        False,
    ),
    (
        _with("dns-resolver: {config: {server: ['fe80::1%lo']}}"),
        "server[0]: there is no interface 'lo'",
        False,
    ),
    ("interfaces: [{name: eth0}, {name: eth0}]", "there are two interfaces named 'eth0'", False),
    ("interfaces: [{name: eth0, state: unknown}]", "interfaces[0].state: 'unknown' is not one of", False),
    (
        "interfaces: [{name: a, type: vlan, vlan: {id: 1, base-iface: b}}, {name: b, type: vlan, vlan: {id: 1, base-iface: a}}]",
        "in a circle",
        False,
    ),
    (
        _with(
            "routes: {config: [{destination: '::/0', next-hop-interface: eth0}]}",
            "{name: eth0, ipv6: {enabled: true}}",
        ),
        "eth0 has no IPv6 address",
        False,
    ),
    (_with("dns-resolver: {config: {search: ['a;b']}}"), "search[0]: 'a;b' is not a domain", False),
    (
        _interface("type: bond, link-aggregation: {mode: 0, options: {primary: eth1}}"),
        "options.primary: is for",
        False,
    ),
    (
        _interface("type: bond, link-aggregation: {mode: 1, options: {arp_interval: 5}}"),
        "needs an arp_ip_target",
        False,
    ),
    (
        _interface("type: bond, link-aggregation: {mode: 1, options: {arp_ip_target: 192.0.2.1}}"),
        "an arp_interval",
        False,
    ),
    (
        _interface("type: bond, link-aggregation: {mode: 1, options: {miimon: 0, updelay: 5}}"),
        "updelay: needs",
        False,
    ),
    (
        _interface("type: bond, link-aggregation: {mode: 1, options: {num_grat_arp: 1, num_unsol_na: 2}}"),
        "differs",
        False,
    ),
    (
        _interface("type: linux-bridge, bridge: {options: {group-addr: '52:54:00:00:00:01'}}"),
        "options.group-addr: ",
        False,
    ),
    (
        _interface("type: linux-bridge, bridge: {options: {group-fwd-mask: 4}}"),
        "options.group-fwd-mask: 4 has",
        False,
    ),
    (
        _interface("type: linux-bridge, bridge: {options: {hash-max: 6}}"),
        "options.hash-max: 6 is not a power of two",
        False,
    ),
    (
        _interface(
            "type: linux-bridge, bridge: {port: [{name: a, "
            "vlan: {mode: trunk, trunk-tags: [{id: 5}], tag: 5, enable-native: true}}]}"
        ),
        "vlan.trunk-tags: the VLAN 5 is there twice",
        False,
    ),
    (
        _interface("ipv6: {enabled: true, dhcp: true, dhcp-duid: uuid}"),
        "ipv6.dhcp-duid: 'uuid' is neither",
        False,
    ),
    (
        _interface(
            "ipv6: {enabled: true, dhcp: true, autoconf: true, token: '::1', addr-gen-mode: stable-privacy}"
        ),
        "ipv6.token: needs the addr-gen-mode eui64",
        False,
    ),
    # What nmstate refuses too.
    ("interfaces: [{type: ethernet}]", "interfaces[0].name: is needed", True),
    ("interfaces: {name: eth0}", "interfaces: expected a list", True),
    ("interfaces: [eth0]", "interfaces[0]: expected a mapping", True),
    ("[]", "the document: expected a mapping", True),
    ("interfaces: [", "not YAML or JSON", True),
    ("a: 1\n---\nb: 2\n", "more than one YAML document", True),
    ("unknown: 1", "unknown: is not supported", True),
    (_interface("mttu: 1500"), "interfaces[0].mttu: is not supported", True),
    (_interface("mtu: 1200, ipv6: {enabled: true}"), "interfaces[0].mtu: IPv6 needs at least 1280", True),
    (_interface("mtu: much"), "interfaces[0].mtu: expected a number, found 'much'", True),
    (_interface("mtu: -1"), "interfaces[0].mtu: -1 is not between", True),
    (_interface("ipv4: {enabled: perhaps}"), "interfaces[0].ipv4.enabled: expected true or false", True),
    (
        _interface("ipv4: {enabled: true, autoconf: true}"),
        "interfaces[0].ipv4.autoconf: is not supported",
        True,
    ),
    (_interface("ipv6: {enabled: true, autoconf: true}"), "autoconf: without dhcp is not supported", True),
    (
        _interface("ipv6: {enabled: true, dhcp: true, autoconf: false, token: '::1'}"),
        "ipv6.token: is for autoconf",
        True,
    ),
    (
        _interface("ipv6: {enabled: true, dhcp: true, autoconf: true, token: '1::1'}"),
        "ipv6.token: 1::1 has something",
        True,
    ),
    (
        _interface("ipv4: {enabled: true, address: [{ip: '2001:db8::1', prefix-length: 64}]}"),
        "not an IPv4 address",
        True,
    ),
    (
        _interface("ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: 33}]}"),
        "33 is not between 0 and 32",
        True,
    ),
    (_interface("ipv4: {enabled: true, address: [{ip: 192.0.2.1}]}"), "prefix-length: is needed", True),
    (_interface("type: bond"), "interfaces[0].link-aggregation: is needed", True),
    (
        _interface("type: bond, link-aggregation: {mode: best}"),
        "link-aggregation.mode: 'best' is not one of",
        True,
    ),
    (
        _interface("type: bond, link-aggregation: {mode: 1, options: {lacp_rate: fast}}"),
        "options.lacp_rate: is for",
        True,
    ),
    (
        _interface("type: bond, link-aggregation: {mode: 4, options: {arp_interval: 5}}"),
        "options.arp_interval: cannot",
        True,
    ),
    (
        _interface("type: bond, link-aggregation: {mode: 1, options: {arp_interval: 5, miimon: 5}}"),
        "not with both",
        True,
    ),
    (
        _interface("type: bond, link-aggregation: {mode: 1, options: {new: 1}}"),
        "options.new: is not supported",
        True,
    ),
    (
        _interface(
            "type: bond, link-aggregation: {mode: 1, ports-config: [{name: a, queue-id: 1}, {name: b, queue-id: 1}]}"
        ),
        "link-aggregation.ports-config: two ports have the same queue-id",
        True,
    ),
    (
        _interface("type: bond, link-aggregation: {mode: 1, port: [a], ports-config: [{name: b}]}"),
        "describes other ports",
        True,
    ),
    (_interface("type: vlan, vlan: {id: 5}"), "interfaces[0].vlan.base-iface: is needed", True),
    (_interface("type: vlan, vlan: {base-iface: eth1}"), "interfaces[0].vlan.id: is needed", True),
    (
        _interface("type: linux-bridge, bridge: {options: {stp: {hello-time: 11}}}"),
        "stp.hello-time: 11 is not between",
        True,
    ),
    (
        _interface("type: linux-bridge, bridge: {options: {vlan-default-pvid: 5}}"),
        "vlan-default-pvid: no port",
        True,
    ),
    (
        _interface(
            "type: linux-bridge, bridge: {port: [{name: a, vlan: {mode: trunk, trunk-tags: [{id: 1}, {id: 1}]}}]}"
        ),
        "vlan.trunk-tags: the VLAN 1 is there twice",
        True,
    ),
    (
        "interfaces: [{name: a, type: linux-bridge, bridge: {port: [{name: c}]}}, "
        "{name: b, type: linux-bridge, bridge: {port: [{name: c}]}}]",
        "'c' cannot be a port twice, of a and b",
        True,
    ),
    (
        "interfaces: [{name: a, type: linux-bridge, bridge: {port: [{name: eth0}]}}, " + _DHCP + "]",
        "eth0 is a port of a, so it cannot have addresses",
        True,
    ),
    ("interfaces: [{name: eth0, controller: br0}]", "there is no bond and no linux-bridge named 'br0'", True),
    (
        "interfaces: [{name: b, type: bond, copy-mac-from: a, link-aggregation: {mode: 1}}]",
        "interfaces[0].copy-mac-from: no interface named 'a'",
        True,
    ),
    (
        _with("routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: eth1}]}"),
        "no interface 'eth1' that is up",
        True,
    ),
    (
        _with("routes: {config: [{destination: '::/0', next-hop-interface: eth0}]}"),
        "IPv6 is not enabled on eth0",
        True,
    ),
    (
        _with("routes: {config: [{destination: 0.0.0.0/8, next-hop-interface: eth0}]}"),
        "no packet can go to 0.0.0.0/8",
        True,
    ),
    (
        _with("routes: {config: [{destination: 10.0.0.0/33, next-hop-interface: eth0}]}"),
        "prefix length between 0 and 32",
        True,
    ),
    (_with("routes: {config: [{destination: 10.0.0.0/8}]}"), "next-hop-interface: is needed", True),
    (
        _with(
            "routes: {config: [{destination: 10.0.0.0/8, next-hop-interface: eth0, route-type: blackhole}]}"
        ),
        "nowhere",
        True,
    ),
    (
        _with("route-rules: {config: [{route-table: 5}]}"),
        "route-rules.config[0]: ip-from, ip-to or family",
        True,
    ),
    (_with("route-rules: {config: [{family: ipv4, iif: eth7}]}"), "iif: there is no interface 'eth7'", True),
    (_with("dns-resolver: {config: {server: [one]}}"), "server[0]: 'one' is not an IP address", True),
    (_with("dns-resolver: {config: {server: ['fe80::1%%']}}"), "server[0]: there is no interface '%'", True),
    (_with("dns-resolver: {config: {server: ['2001:db8::1']}}"), "no interface has IPv6 addresses", True),
    (_with("dns-resolver: {config: {options: [fast]}}"), "options[0]: 'fast' is not an option", True),
    (
        "interfaces: [{name: e, ipv4: {enabled: true, dhcp: true}, ipv6: {enabled: true, dhcp: true, autoconf: true}}]\n"
        "dns-resolver: {config: {server: [192.0.2.1, '2001:db8::1', 192.0.2.2]}}",
        "all of one kind have to stand before the other",
        True,
    ),
]
