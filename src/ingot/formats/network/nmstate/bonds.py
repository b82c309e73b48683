"""The part of a bond in a desired state: mode, options, ports.

The options are the kernel's, with its names, numbers and words. What the kernel would refuse together is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import HIGHEST, Port
from ingot.formats.network.reading import Fields
from ingot.formats.network.values import address_of, mac_address, written


def _words(*words: str) -> dict[str, str]:
    """Words that the kernel numbers from zero."""
    return {str(number): word for number, word in enumerate(words)} | {word: word for word in words}


MODES: Final = _words(
    "balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"
) | {"lacp": "802.3ad"}  # fmt: skip
_CHOICES: Final[Mapping[str, Mapping[str, str]]] = {
    "ad_select": _words("stable", "bandwidth", "count"),
    "all_slaves_active": {"0": "0", "1": "1", "dropped": "0", "delivered": "1"},
    "arp_all_targets": _words("any", "all"),
    "arp_validate": _words("none", "active", "backup", "all", "filter", "filter_active", "filter_backup"),
    "fail_over_mac": _words("none", "active", "follow"),
    "lacp_rate": _words("slow", "fast"),
    "primary_reselect": _words("always", "better", "failure"),
    "xmit_hash_policy": _words("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"),
}
_NUMBERS: Final = {
    "ad_actor_sys_prio": 65535, "ad_user_port_key": 65535, "arp_interval": HIGHEST, "arp_missed_max": 255,
    "downdelay": HIGHEST, "lp_interval": HIGHEST, "miimon": HIGHEST, "min_links": HIGHEST, "num_grat_arp": 255,
    "num_unsol_na": 255, "packets_per_slave": HIGHEST, "resend_igmp": HIGHEST, "updelay": HIGHEST,
}  # fmt: skip
_FLAGS: Final = ("lacp_active", "tlb_dynamic_lb", "use_carrier")
_MODES_OF: Final = {
    "lacp_rate": ("802.3ad",),
    "lacp_active": ("802.3ad",),
    "primary": ("active-backup", "balance-tlb", "balance-alb"),
}
"""Options that only some modes have."""
_USUAL_MISSED: Final = 2
"""The kernel's own arp_missed_max; older versions of NetworkManager do not know the option."""


def read_bond(fields: Fields) -> tuple[dict[str, Setting], tuple[Port, ...] | None]:
    """Its settings, and its ports where they are given."""
    bond = fields.fields("link-aggregation", "bond")
    if bond is None:
        raise FormatError(f"{fields.at('link-aggregation')}: is needed and not there")
    mode = bond.choice("mode", MODES)
    if mode is None:
        raise FormatError(f"{bond.at('mode')}: is needed and not there")
    options = bond.fields("options")
    settings = read_options(options, mode) if options else {}
    listed = [name for _, name in bond.texts("port", "ports")] if "port" in bond or "ports" in bond else None
    described = [_port(port) for port in bond.each("ports-config")] if "ports-config" in bond else None
    path = bond.at("ports-config")
    bond.done()
    return {"mode": mode} | settings, _ports(listed, described, path)


def read_options(options: Fields, mode: str) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for name, choices in _CHOICES.items():
        if (word := options.choice(name, choices)) is not None:
            settings[name] = word
    for name, highest in _NUMBERS.items():
        if (number := options.number(name, 0, highest)) is not None:
            settings[name] = number
    for name in _FLAGS:
        if (flag := options.flag(name)) is not None:
            settings[name] = int(flag)
    if (slb := options.flag("balance_slb", "balance-slb")) is not None:
        settings["balance-slb"] = int(slb)
    if system := options.text("ad_actor_system"):
        settings["ad_actor_system"] = mac_address(system, options.at("ad_actor_system"))
    if primary := options.text("primary"):
        settings["primary"] = primary
    if targets := options.text("arp_ip_target"):
        path = options.at("arp_ip_target")
        settings["arp_ip_target"] = ",".join(
            written(address_of(4, each, path)) for each in targets.split(",")
        )
    if six := options.texts("ns_ip6_target"):
        settings["ns_ip6_target"] = ",".join(written(address_of(6, each, path)) for path, each in six)
    options.done()
    if settings.get("arp_missed_max") == _USUAL_MISSED:
        del settings["arp_missed_max"]
    _check(options, mode, settings)
    return settings


def _check(options: Fields, mode: str, settings: Mapping[str, Setting]) -> None:
    """What the kernel or NetworkManager would not take together; such a bond would just not be there."""
    for name, modes in _MODES_OF.items():
        if name in settings and mode not in modes:
            raise FormatError(f"{options.at(name)}: is for the mode {' or '.join(modes)}, this is {mode}")
    for name in ("updelay", "downdelay"):
        if settings.get(name) and settings.get("miimon") == 0:
            raise FormatError(f"{options.at(name)}: needs a miimon above 0")
    grat, unsolicited = settings.get("num_grat_arp"), settings.get("num_unsol_na")
    if grat is not None and unsolicited is not None and grat != unsolicited:
        raise FormatError(f"{options.at('num_unsol_na')}: is another name of num_grat_arp, which differs")
    if str(settings.get("ad_actor_system", "")).startswith("01:00:5E"):
        raise FormatError(f"{options.at('ad_actor_system')}: cannot be a multicast address")
    if settings.get("balance-slb") and (mode, settings.get("xmit_hash_policy")) != (
        "balance-xor",
        "vlan+srcmac",
    ):
        raise FormatError(
            f"{options.at('balance-slb')}: needs the mode balance-xor and xmit_hash_policy vlan+srcmac"
        )
    _check_arp(options, mode, settings)


def _check_arp(options: Fields, mode: str, settings: Mapping[str, Setting]) -> None:
    interval = settings.get("arp_interval")
    targets = [name for name in ("arp_ip_target", "ns_ip6_target") if name in settings]
    if interval and settings.get("miimon"):
        raise FormatError(
            f"{options.at('arp_interval')}: a bond watches its links with miimon or with ARP, not with both"
        )
    if interval and mode in ("802.3ad", "balance-tlb", "balance-alb"):
        raise FormatError(f"{options.at('arp_interval')}: cannot be used in the mode {mode}")
    if interval and not targets:
        raise FormatError(f"{options.at('arp_interval')}: needs an arp_ip_target or ns_ip6_target")
    if targets and not interval:
        raise FormatError(f"{options.at(targets[0])}: needs an arp_interval above 0")


def _port(fields: Fields) -> Port:
    settings: dict[str, Setting] = {}
    if priority := fields.number("priority", -(2**31), 2**31 - 1):
        settings["prio"] = priority
    queue = fields.number("queue-id", 0, 65535)
    if queue or (settings and queue is not None):
        settings["queue-id"] = queue
    port = Port(fields.needed("name"), settings)
    fields.done()
    return port


def _ports(
    listed: Sequence[str] | None, described: Sequence[Port] | None, path: str
) -> tuple[Port, ...] | None:
    if described is None:
        return None if listed is None else tuple(Port(name) for name in listed)
    if listed is not None and {port.name for port in described} != set(listed):
        raise FormatError(f"{path}: describes other ports than the ones that are listed beside it")
    queues = [port.settings["queue-id"] for port in described if port.settings.get("queue-id")]
    if len(queues) != len(set(queues)):
        raise FormatError(f"{path}: two ports have the same queue-id")
    return tuple(described)
