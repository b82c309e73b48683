"""What a site allows of what users ask for.

Safe without being set: what is an attack is refused everywhere (see the other modules). A site can go further: name the hosts
that images may come from, and forbid what Metal3 takes although it is weak. From the environment:

    INGOT_IMAGE_HOSTS   hosts, .domains and networks (10.0.0.0/8), separated by commas; unset: any, but see `meant_by_nobody`
    INGOT_FORBID        any of md5, checksum-url, url-credentials, unverified, separated by commas; unset: none
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ingot.api.inputs.urls import is_web_host
from ingot.api.inputs.weaknesses import Weakness

IMAGE_HOSTS: Final = "INGOT_IMAGE_HOSTS"
FORBID: Final = "INGOT_FORBID"

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_TRANSLATED: Final = tuple(
    map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"))
)
"""Where the last four bytes of an IPv6 address are an IPv4 address: compatible, translated (SIIT), NAT64."""
_METADATA: Final = frozenset(
    # Amazon (and its containers), Google, Oracle, Alibaba, Azure. All others are link-local.
    map(
        ipaddress.ip_address,
        (
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "100.100.100.200",
            "168.63.129.16",
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    image_hosts: tuple[str, ...] = ()
    """Hosts, domains with a dot before them, and networks. Empty: any host but those of `meant_by_nobody`."""
    forbidden: frozenset[Weakness] = frozenset()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Policy:
        """Raises `ValueError` with a sentence."""
        return cls(
            image_hosts=tuple(_host(entry) for entry in _entries(environment, IMAGE_HOSTS)),
            forbidden=frozenset(_weakness(entry) for entry in _entries(environment, FORBID)),
        )

    def allows(self, host: str) -> bool:
        """Whether something may be fetched from this host, which is an IP address or a name."""
        host = host.lower().rstrip(".")
        if not self.image_hosts:
            return not meant_by_nobody(host)
        return any(_fits(host, entry) for entry in self.image_hosts)


def _entries(environment: Mapping[str, str], name: str) -> list[str]:
    return [entry for entry in (part.strip() for part in environment.get(name, "").split(",")) if entry]


def _host(entry: str) -> str:
    plain = entry.lower()
    if "/" in plain:
        try:
            return str(ipaddress.ip_network(plain))
        except ValueError:
            raise ValueError(f"{IMAGE_HOSTS} has {entry!r}; expected a network such as 10.0.0.0/8") from None
    if not is_web_host(plain.removeprefix(".")):
        raise ValueError(f"{IMAGE_HOSTS} has {entry!r}; expected a host, .domain or network")
    return plain


def _weakness(entry: str) -> Weakness:
    try:
        return Weakness(entry)
    except ValueError:
        raise ValueError(f"{FORBID} has {entry!r}; expected some of {', '.join(Weakness)}") from None


def meant_by_nobody(host: str) -> str:
    """What this address is that nobody means who names an image, in words; "" for all others.

    The services that answer there, such as a cloud's metadata, trust whoever asks. Names are not looked up: what they lead to for
    Ironic, and a moment later, is not known here.
    """
    address = _address(host)
    if address is None:
        return ""
    if address.is_unspecified:
        return "no address of anybody"
    if address in _METADATA:
        return "where a cloud tells its machines about themselves"
    return "a link-local address" if any(one.is_link_local for one in (address, *_inside(address))) else ""


def _address(host: str) -> _Address | None:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    # An IPv4 address in the clothes of an IPv6 one.
    return found.ipv4_mapped or found if isinstance(found, ipaddress.IPv6Address) else found


def _inside(address: _Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses that a router or a translator makes of an IPv6 address."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    found = [address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _TRANSLATED):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return [one for one in found if one is not None]


def _fits(host: str, entry: str) -> bool:
    if "/" in entry:
        address = _address(host)
        return address is not None and address in ipaddress.ip_network(entry)
    return host.endswith(entry) if entry.startswith(".") else host == entry
