"""The two address families of an interface in a desired state.

A family that is not enabled is disabled, whatever else stands there; but where `enabled` is left out and addresses or DHCP are
asked for, that is refused: nmstate would disable the family without a word. What only matters to automatic addresses
(`auto-dns` and its like) is checked and left out where there are none.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final

from ingot.formats.errors import FormatError
from ingot.formats.network.keyfile import Setting
from ingot.formats.network.model import FOREVER, HIGHEST, Ip, Method
from ingot.formats.network.reading import Fields
from ingot.formats.network.telling import shown
from ingot.formats.network.values import address_of, written

_GENERATION: Final = {"eui64": "0", "EUI64": "0", "stable-privacy": "1", "STABLE-PRIVACY": "1"}
_HOST_BITS: Final = 1 << 64
_WORDS: Final = ("ll", "llt", "lease", "stable-ll", "stable-llt", "stable-uuid")
_DUIDS: Final = {word: word for word in _WORDS} | {"LL": "ll", "LLT": "llt"}
_DUID: Final = re.compile(r"[0-9a-fA-F]{1,2}(?::[0-9a-fA-F]{1,2}){2,129}")


def read_ip(interface: Fields, version: int) -> Ip | None:
    fields = interface.fields(f"ipv{version}")
    if fields is None:
        return None
    said, dhcp = fields.flag("enabled"), bool(fields.flag("dhcp"))
    autoconf = bool(fields.flag("autoconf")) if version == 6 else False
    addresses = tuple(_address(each, version) for each in fields.each("address"))
    automatic = _automatic(fields, version, token_allowed=autoconf)
    always: dict[str, Setting] = {}
    if version == 6:
        always["addr-gen-mode"] = int(fields.choice("addr-gen-mode", _GENERATION) or "0")
    forwarding = fields.flag("forwarding") if version == 4 else None
    fields.passed_over("allow-extra-address")
    fields.done()
    if said is None and (dhcp or autoconf or addresses):
        raise FormatError(f"{fields.at('enabled')}: is needed; without it, IPv{version} would be disabled")
    if forwarding is not None and (said or not forwarding):
        always["forwarding"] = int(forwarding)
    if not said:
        return Ip(enabled=False, method=Method.DISABLED, settings=always)
    if dhcp and "token" in automatic and always["addr-gen-mode"]:
        raise FormatError(f"{fields.at('token')}: needs the addr-gen-mode eui64")
    if autoconf and not dhcp:
        fields.refuse(
            "autoconf", "without dhcp is not supported: NetworkManager asks for both or for DHCP alone"
        )
    settings = always | automatic if dhcp else always
    return Ip(
        enabled=True,
        method=_method(version, dhcp, autoconf, addresses),
        addresses=addresses,
        settings=settings,
    )


def _method(version: int, dhcp: bool, autoconf: bool, addresses: tuple[str, ...]) -> Method:
    if dhcp:
        return Method.AUTO if version == 4 or autoconf else Method.DHCP
    if addresses:
        return Method.MANUAL
    return Method.DISABLED if version == 4 else Method.LINK_LOCAL


def _address(fields: Fields, version: int) -> str:
    address = address_of(version, fields.needed("ip"), fields.at("ip"))
    prefix = fields.number("prefix-length", 0, address.max_prefixlen)
    if prefix is None:
        raise FormatError(f"{fields.at('prefix-length')}: is needed and not there")
    if isinstance(address, IPv6Address) and address.is_link_local:
        fields.refuse("ip", "a link-local address is made by the system itself, it cannot be given")
    fields.done()
    return f"{written(address)}/{prefix}"


def automatic_settings(version: int) -> dict[str, Setting]:
    """What DHCP and router advertisements go by where nothing else is said."""
    settings: dict[str, Setting] = {
        "ignore-auto-dns": False,
        "never-default": False,
        "ignore-auto-routes": False,
        "dhcp-send-hostname": True,
    }
    if version == 4:
        return settings | {"dhcp-client-id": "mac"}
    return settings | {"dhcp-duid": "ll", "dhcp-iaid": "mac", "ra-timeout": FOREVER}


def _automatic(fields: Fields, version: int, *, token_allowed: bool) -> dict[str, Setting]:
    settings = automatic_settings(version)
    for name, ignored in (
        ("auto-dns", "ignore-auto-dns"),
        ("auto-gateway", "never-default"),
        ("auto-routes", "ignore-auto-routes"),
    ):
        if (wanted := fields.flag(name)) is not None:
            settings[ignored] = not wanted
    if (table := fields.number("auto-route-table-id", 0, HIGHEST)) is not None:
        settings["route-table"] = table
    if (metric := fields.number("auto-route-metric", 0, HIGHEST)) is not None:
        settings["route-metric"] = metric
    settings |= _identity(fields, version)
    custom = fields.text("dhcp-custom-hostname")
    if fields.flag("dhcp-send-hostname") is False:
        settings["dhcp-send-hostname"] = False
    elif custom:
        settings["dhcp-fqdn" if version == 4 and "." in custom else "dhcp-hostname"] = custom
    if version == 6 and (token := _token(fields)):
        if not token_allowed:
            raise FormatError(f"{fields.at('token')}: is for autoconf, which is not enabled")
        settings["token"] = token
    return settings


def _identity(fields: Fields, version: int) -> dict[str, Setting]:
    """How the machine calls itself to the DHCP server."""
    if version == 4:
        client = fields.text("dhcp-client-id")
        known = {"ll": "mac", "LL": "mac", "iaid+duid": "duid", "IAID+DUID": "duid"}
        return {"dhcp-client-id": known.get(client, client)} if client else {}
    duid = fields.text("dhcp-duid")
    if not duid:
        return {}
    if duid not in _DUIDS and not _DUID.fullmatch(duid):
        fields.refuse(
            "dhcp-duid", f"{shown(duid)} is neither one of {', '.join(_WORDS)} nor bytes like 00:01:5e"
        )
    return {"dhcp-duid": _DUIDS.get(duid, duid)}


def _token(fields: Fields) -> str | None:
    """The second half of the addresses that are made from router advertisements."""
    text = fields.text("token")
    if not text or text == "::":
        return None
    address = int(address_of(6, text, fields.at("token")))
    if address >= _HOST_BITS:
        raise FormatError(f"{fields.at('token')}: {text} has something in its first 64 bits")
    # As part of a whole address it is not taken for an IPv4 address in disguise.
    return str(IPv6Address(0x20010DB8 << 96 | address)).removeprefix("2001:db8")
