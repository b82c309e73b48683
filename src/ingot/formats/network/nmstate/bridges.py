"""The part of a Linux bridge in a desired state: options, spanning tree, ports and their VLANs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import HIGHEST, Port
from ingot.formats.network.nmstate.vlans import HIGHEST_VLAN, PROTOCOLS
from ingot.formats.network.reading import Fields
from ingot.formats.network.telling import shown
from ingot.formats.network.values import mac_address

_LONG: Final = 2**64 - 1
_NUMBERS: Final = {
    "hash-max": ("multicast-hash-max", HIGHEST),
    "mac-ageing-time": ("ageing-time", HIGHEST),
    "multicast-last-member-count": ("multicast-last-member-count", HIGHEST),
    "multicast-last-member-interval": ("multicast-last-member-interval", _LONG),
    "multicast-membership-interval": ("multicast-membership-interval", _LONG),
    "multicast-querier-interval": ("multicast-querier-interval", _LONG),
    "multicast-query-interval": ("multicast-query-interval", _LONG),
    "multicast-query-response-interval": ("multicast-query-response-interval", _LONG),
    "multicast-startup-query-count": ("multicast-startup-query-count", HIGHEST),
    "multicast-startup-query-interval": ("multicast-startup-query-interval", _LONG),
}
_GROUP: Final = re.compile(r"01:80:C2:00:00:0[04-9A-F]")
_NEVER_FORWARDED: Final = 7
_FLAGS: Final = ("multicast-querier", "multicast-query-use-ifaddr", "multicast-snooping")
_ROUTERS: Final = {"0": "disabled", "1": "auto", "2": "enabled"} | {
    word: word for word in ("auto", "disabled", "enabled")
}
_STP_NUMBERS: Final = {
    "forward-delay": (2, 30), "hello-time": (1, 10), "max-age": (6, 40), "priority": (0, 65535)
}  # fmt: skip
_MODES: Final = {"trunk": "trunk", "access": "access"}


def read_bridge(fields: Fields) -> tuple[dict[str, Setting], tuple[Port, ...] | None]:
    """Its settings, and its ports where they are given."""
    bridge = fields.fields("bridge")
    if bridge is None:
        return {}, None
    ports = (
        tuple(_port(port) for port in bridge.each("port", "ports"))
        if "port" in bridge or "ports" in bridge
        else None
    )
    options = bridge.fields("options")
    settings = _options(options) if options else {}
    bridge.done()
    filtering = any("vlans" in port.settings for port in ports or ())
    if settings.get("vlan-default-pvid", 1) != 1 and not filtering:
        raise FormatError(f"{bridge.at('options')}.vlan-default-pvid: no port has VLANs to filter")
    if ports is not None:
        settings["vlan-filtering"] = filtering
    return settings, ports


def _options(options: Fields) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    options.passed_over("gc-timer", "hello-timer")
    if group := options.text("group-addr"):
        settings["group-address"] = mac_address(group, options.at("group-addr"))
        if not _GROUP.fullmatch(str(settings["group-address"])):
            raise FormatError(
                f"{options.at('group-addr')}: {shown(group)} is not 01:80:C2:00:00:0X, with X 0 or 4 to F"
            )
    masks = [options.number(name, 0, 65535) for name in ("group-forward-mask", "group-fwd-mask")]
    given = {mask for mask in masks if mask is not None}
    if len(given) > 1:
        raise FormatError(
            f"{options.at('group-fwd-mask')}: is another name of group-forward-mask, which differs"
        )
    for mask in given:
        if mask & _NEVER_FORWARDED:
            raise FormatError(
                f"{options.at('group-fwd-mask')}: {mask} has the bits 0 (STP), 1 (MAC) or 2 (LACP)"
            )
        settings["group-forward-mask"] = mask
    for name, (written, highest) in _NUMBERS.items():
        if (number := options.number(name, 0, highest)) is not None:
            settings[written] = number
    if (buckets := settings.get("multicast-hash-max")) and int(str(buckets)).bit_count() > 1:
        raise FormatError(f"{options.at('hash-max')}: {buckets} is not a power of two")
    for name in _FLAGS:
        if (flag := options.flag(name)) is not None:
            settings[name] = flag
    if router := options.choice("multicast-router", _ROUTERS):
        settings["multicast-router"] = router
    if protocol := options.choice("vlan-protocol", PROTOCOLS):
        settings["vlan-protocol"] = protocol
    if (pvid := options.number("vlan-default-pvid", 0, HIGHEST_VLAN)) is not None:
        settings["vlan-default-pvid"] = pvid
    if stp := options.fields("stp"):
        settings |= _spanning_tree(stp)
    options.done()
    return settings


def _spanning_tree(stp: Fields) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    if (enabled := stp.flag("enabled")) is not None:
        settings["stp"] = enabled
    for name, (low, high) in _STP_NUMBERS.items():
        if (number := stp.number(name, low, high)) is not None:
            settings[name] = number
    stp.done()
    return settings


def _port(fields: Fields) -> Port:
    settings: dict[str, Setting] = {}
    if (hairpin := fields.flag("stp-hairpin-mode")) is not None:
        settings["hairpin-mode"] = hairpin
    if (cost := fields.number("stp-path-cost", 0, HIGHEST)) is not None:
        settings["path-cost"] = cost
    if (priority := fields.number("stp-priority", 0, 65535)) is not None:
        settings["priority"] = priority
    vlan = fields.fields("vlan")
    if vlan is not None and (vlans := _port_vlans(vlan)) is not None:
        settings["vlans"] = vlans
    port = Port(fields.needed("name"), settings)
    fields.done()
    return port


def _port_vlans(vlan: Fields) -> str | None:
    """The VLANs of a port; None for an empty mapping, which asks for none."""
    native, mode = vlan.flag("enable-native"), vlan.choice("mode", _MODES)
    tag = vlan.number("tag", 0, HIGHEST_VLAN)
    trunk = [_range(tags) for tags in vlan.each("trunk-tags")] if "trunk-tags" in vlan else None
    vlan.done()
    if (native, mode, tag, trunk) == (None, None, None, None):
        return None
    if mode is None:
        raise FormatError(f"{vlan.at('mode')}: is needed and not there")
    if mode == "access" and (native or trunk):
        raise FormatError(f"{vlan.path}: enable-native and trunk-tags are for the mode trunk")
    if mode == "trunk" and trunk is None:
        raise FormatError(f"{vlan.at('trunk-tags')}: is needed in the mode trunk")
    if mode == "trunk" and tag and not native:
        raise FormatError(f"{vlan.at('tag')}: needs enable-native in the mode trunk")
    native_tag = [(tag, tag)] if tag is not None else []
    _check_overlap([*(trunk or ()), *native_tag], vlan.at("trunk-tags"))
    ranges = [(first, f"{first}-{last}" if last > first else f"{first}") for first, last in trunk or ()]
    if tag is not None:
        ranges.append((tag, f"{tag} pvid untagged"))
    return ",".join(text for _, text in sorted(ranges, key=lambda each: each[0]))


def _range(tags: Fields) -> tuple[int, int]:
    single = tags.number("id", 0, HIGHEST_VLAN)
    between = tags.fields("id-range")
    tags.done()
    if single is not None and between is None:
        return single, single
    if single is not None or between is None:
        raise FormatError(f"{tags.path}: either an id or an id-range is needed")
    first, last = between.number("min", 0, HIGHEST_VLAN), between.number("max", 0, HIGHEST_VLAN)
    between.done()
    if first is None or last is None or first > last:
        raise FormatError(f"{between.path}: a min and a max that is not below it are needed")
    return first, last


def _check_overlap(ranges: Sequence[tuple[int, int]], path: str) -> None:
    for (_, last), (first, _) in zip(ordered := sorted(ranges), ordered[1:], strict=False):
        if first <= last:
            raise FormatError(f"{path}: the VLAN {first} is there twice")
