"""Values that become part of a keyfile or the name of one: checked once, written in one way.

Owns what the kernel takes as the name of an interface, what may be the name of a file, MAC and PCI addresses, IP addresses and
networks. Each function takes the path of the field, which is where its error points.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, TypeAlias

from ingot.formats.errors import FormatError
from ingot.formats.network.telling import shown

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_RESERVED: Final = {".", "..", "all", "default", "bonding_masters", "lo"}
"""Names that the kernel keeps for itself, in /sys/class/net and /proc/sys/net, and the one interface that is always there."""
_INTERFACE: Final = re.compile(r"[!-~]{1,15}")
_MAC: Final = re.compile(r"[0-9A-F]{2}(?::[0-9A-F]{2}){5}")
_PCI: Final = re.compile(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})\.([0-7])")
_DOMAIN: Final = re.compile(r"~\.|~?[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?")
_EXTENSION: Final = ".nmconnection"
_LONGEST_FILE_NAME: Final = 255


def is_interface_name(text: str) -> bool:
    """Whether the kernel can give an interface this name."""
    return bool(_INTERFACE.fullmatch(text)) and text not in _RESERVED and not set(text) & set("/:%")


def interface_name(text: str, path: str) -> str:
    if not is_interface_name(text):
        raise FormatError(
            f"{path}: {shown(text)} is no name for an interface: 1 to 15 characters, without blanks, '/', ':' and '%'"
        )
    return text


def is_profile_name(text: str) -> bool:
    """Whether a connection can have this name, which is also its file's."""
    fits = 0 < len((text + _EXTENSION).encode()) <= _LONGEST_FILE_NAME
    return fits and text.isprintable() and "/" not in text and text[0] not in ". " and text[-1] != " "


def profile_name(text: str, path: str) -> str:
    if not is_profile_name(text):
        raise FormatError(
            f"{path}: {shown(text)} becomes the name of a file: up to 242 bytes, no '/', no dot in front, no blanks around it"
        )
    return text


def file_name(profile: str) -> str:
    return profile + _EXTENSION


def mac_address(text: str, path: str) -> str:
    """In upper case and with colons, as it is written everywhere in a keyfile."""
    mac = text.upper().replace("-", ":")
    if not _MAC.fullmatch(mac):
        raise FormatError(f"{path}: {shown(text)} is not a MAC address like 52:54:00:12:34:56")
    return mac


def pci_address(text: str, path: str) -> str:
    found = _PCI.fullmatch(text)
    if not found:
        raise FormatError(f"{path}: {shown(text)} is not a PCI address like 0000:07:00.1")
    domain, bus, slot = (int(part or "0", 16) for part in found.group(1, 2, 3))
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{found[4]}"


def ip_address(text: str, path: str) -> Address:
    try:
        if "%" in text:
            raise AddressValueError
        return IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        raise FormatError(f"{path}: {shown(text)} is not an IP address") from None


def written(address: Address) -> str:
    """Python's versions differ in how they write an IPv4 address inside an IPv6 one."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return f"::ffff:{address.ipv4_mapped}"
    return str(address)


def written_network(network: Network) -> str:
    return f"{written(network.network_address)}/{network.prefixlen}"


def address_of(version: int, text: str, path: str) -> Address:
    found = ip_address(text, path)
    if found.version != version:
        raise FormatError(f"{path}: {shown(text)} is not an IPv{version} address")
    return found


def ip_network(text: str, path: str) -> Network:
    """A network; bits behind its prefix are cleared, an address alone is the network of just that address."""
    address, _, prefix = text.partition("/")
    found = ip_address(address, path)
    width = found.max_prefixlen
    if "/" in text and not (
        prefix.isascii() and prefix.isdigit() and len(prefix) <= 3 and int(prefix) <= width
    ):
        raise FormatError(
            f"{path}: {shown(text)} has no prefix length between 0 and {width} behind its slash"
        )
    length = int(prefix) if prefix else width
    if isinstance(found, IPv4Address):
        return IPv4Network((found, length), strict=False)
    return IPv6Network((found, length), strict=False)


def search_domain(text: str, path: str) -> str:
    if not _DOMAIN.fullmatch(text):
        raise FormatError(f"{path}: {shown(text)} is not a domain to search in")
    return text
