"""What a site allows of what users ask for.

Safe without being set: what is an attack is refused everywhere (see the other modules). A site can go further: name the hosts
that images may come from, and forbid what Metal3 takes although it is weak. From the environment:

    INGOT_IMAGE_HOSTS   hosts, .domains and networks (10.0.0.0/8), separated by commas; unset: any host but link-local addresses
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    image_hosts: tuple[str, ...] = ()
    """Hosts, domains with a dot before them, and networks. Empty: any host but link-local addresses."""
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
            # The services that answer there, such as a cloud's metadata, trust whoever asks.
            return not _is_link_local(host)
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


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    # An IPv4 address in the clothes of an IPv6 one.
    return found.ipv4_mapped or found if isinstance(found, ipaddress.IPv6Address) else found


def _is_link_local(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_link_local


def _fits(host: str, entry: str) -> bool:
    if "/" in entry:
        address = _address(host)
        return address is not None and address in ipaddress.ip_network(entry)
    return host.endswith(entry) if entry.startswith(".") else host == entry
