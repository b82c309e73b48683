"""BMC addresses: from the string a user writes to what it means and what can be done through it.

An address is a URL. Its scheme names the protocol and the way the machine boots; schemes of the Redfish family take `+http` or
`+https` and mean https by default. Without a scheme the address is a host, reached over IPMI.

    redfish-virtualmedia://10.0.0.7/redfish/v1/Systems/1
    idrac-virtualmedia+http://[fd00::7]:8000/redfish/v1/Systems/System.Embedded.1
    ipmi://10.0.0.7:6230    libvirt:10.0.0.7    10.0.0.7

A parsed address holds only what was checked: the host is an IP address or a DNS name, the port is a number, the path stays below
that host. Which Ironic driver serves a scheme is the provisioner's to know.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import parse_qs, unquote

from ingot.api.inputs.urls import ENCODED_CONTROL
from ingot.api.meta import Malformed

Transport = Literal["", "http", "https"]
PrivilegeLevel = Literal["ADMINISTRATOR", "OPERATOR", "USER", "CALLBACK"]


class InvalidAddress(Malformed):
    """Not an address of a BMC. `shown` is what may be repeated of it: never a password."""

    def __init__(self, shown: str, problem: str) -> None:
        super().__init__(f"{shown!r} is not the address of a BMC: {problem}")
        self.shown = shown
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """What can be done with a machine whose address has this scheme."""

    name: str
    has_transport: bool = True
    boots_from_iso: bool = False
    """The BMC is told to boot an ISO image; no network boot, no DHCP."""
    virtual_media: bool = False
    """That image is attached to the machine as a drive."""
    secure_boot: bool = True
    hardware_raid: bool = True
    fast_inspection: bool = True
    """The BMC itself can tell what the machine is made of."""
    firmware_settings: bool = True
    """The settings of the machine's firmware can be read and changed through the BMC."""
    firmware_updates: bool = True
    """Firmware can be flashed through the BMC."""
    needs_mac: bool = False
    """The machine cannot be told from others without the MAC address of its boot interface."""

    @property
    def needs_provisioning_network(self) -> bool:
        return not self.boots_from_iso


def _by_network(name: str) -> Scheme:
    return Scheme(name=name)


def _by_media(name: str) -> Scheme:
    return Scheme(name=name, boots_from_iso=True, virtual_media=True)


def _by_ipmi(name: str, *, needs_mac: bool = False) -> Scheme:
    return Scheme(
        name=name,
        has_transport=False,
        secure_boot=False,
        hardware_raid=False,
        fast_inspection=False,
        firmware_settings=False,
        firmware_updates=False,
        needs_mac=needs_mac,
    )


IPMI: Final = _by_ipmi("ipmi")

SCHEMES: Final[dict[str, Scheme]] = {
    scheme.name: scheme
    for scheme in (
        IPMI,
        _by_ipmi("libvirt", needs_mac=True),
        _by_network("redfish"),
        _by_network("ilo5-redfish"),
        _by_network("idrac-redfish"),
        _by_media("redfish-virtualmedia"),
        _by_media("ilo5-virtualmedia"),
        _by_media("idrac-virtualmedia"),
        Scheme(name="redfish-uefihttp", boots_from_iso=True),
    )
}

GONE: Final[dict[str, str]] = {
    "ibmc": "redfish or redfish-virtualmedia",
    "idrac": "idrac-redfish or idrac-virtualmedia",
    "ilo4": "ipmi",
    "ilo4-virtualmedia": "ipmi, with which the machine boots over the network",
    "ilo5": "ilo5-redfish or ilo5-virtualmedia",
    "irmc": "redfish or redfish-virtualmedia, or ipmi for a controller that has no Redfish",
}
"""Schemes of earlier days, whose drivers Ironic has dropped, and what serves such machines now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    scheme: Scheme
    transport: Transport
    """http or https where the scheme speaks HTTP; otherwise empty."""
    host: str
    """IP address without brackets, or DNS name."""
    port: int | None = None
    path: str = ""
    query: str = ""
    privilege_level: PrivilegeLevel = "ADMINISTRATOR"
    """What an IPMI session asks for: ?privilegelevel= in the address."""

    @property
    def netloc(self) -> str:
        """Host and port as they stand in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def root(self) -> str:
        """Where the BMC's web service is: https://10.0.0.7:8443. Empty for a BMC that has none."""
        return f"{self.transport}://{self.netloc}" if self.transport else ""


_LABEL: Final = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_WITH_SLASHES: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://(.*)", re.DOTALL)
_WITHOUT_SLASHES: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)", re.DOTALL)
_REST: Final = re.compile(r"(?P<authority>[^/?#]*)(?P<path>[^?#]*)(\?(?P<query>[^#]*))?(#.*)?")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]*")


def parse(address: str) -> Address:
    """What an address means; raises `InvalidAddress`, saying what is wrong with it."""
    if "@" in address:
        # Whatever stands before it may be a password, slashes and spaces included: nothing of it is repeated.
        raise InvalidAddress(
            f"******@{ascii(address.rpartition('@')[2])[1:-1]}",
            "it contains a user name or password. Put them into the Secret that bmc.credentialsName names.",
        )
    if not _VISIBLE.fullmatch(address):
        raise InvalidAddress(
            ascii(address)[1:-1], "it contains a space or a character that is not printable ASCII."
        )
    scheme_name, rest = _split_scheme(address)
    match = _REST.fullmatch(rest)
    assert match is not None  # every part of the pattern may be empty
    scheme, transport = _known_scheme(scheme_name, address)
    host, port = _host_and_port(match["authority"], address)
    query = match["query"] or ""
    return Address(
        scheme=scheme,
        transport=transport,
        host=host,
        port=port,
        path=_below_the_host(match["path"], address),
        query=query,
        privilege_level="ADMINISTRATOR" if scheme.has_transport else _privilege_level(query, address),
    )


def _split_scheme(address: str) -> tuple[str, str]:
    if found := _WITH_SLASHES.fullmatch(address):
        return found[1].lower(), found[2]
    # "host:623" looks just like "scheme:host"; only a known scheme makes it one.
    found = _WITHOUT_SLASHES.fullmatch(address)
    if found and found[1].lower().partition("+")[0] in SCHEMES.keys() | GONE.keys():
        return found[1].lower(), found[2]
    return IPMI.name, address


def _known_scheme(name: str, address: str) -> tuple[Scheme, Transport]:
    base, plus, transport = name.partition("+")
    scheme = SCHEMES.get(base)
    if base in GONE:
        raise InvalidAddress(
            address, f"Ironic has no driver for the scheme {base!r} any more. Use {GONE[base]}."
        )
    if scheme is None:
        raise InvalidAddress(address, f"there is no scheme {name!r}. Use one of: {', '.join(SCHEMES)}.")
    if not plus:
        return scheme, "https" if scheme.has_transport else ""
    if scheme.has_transport and transport == "http":
        return scheme, "http"
    if scheme.has_transport and transport == "https":
        return scheme, "https"
    choice = f"{base}+http or {base}+https" if scheme.has_transport else base
    raise InvalidAddress(address, f"there is no scheme {name!r}. Use {choice}.")


def _host_and_port(authority: str, address: str) -> tuple[str, int | None]:
    if authority.startswith("["):
        host, bracket, after = authority[1:].partition("]")
        if not bracket or not _is_ip(host, version=6):
            raise InvalidAddress(address, f"{authority!r} is not an IPv6 address in brackets.")
        colon, port = after[:1], after[1:]
        if after and colon != ":":
            raise InvalidAddress(address, f"{after!r} after the IPv6 address is not a port.")
    else:
        if _is_ip(authority, version=6):
            raise InvalidAddress(address, f"write the IPv6 address in brackets: [{authority}].")
        host, colon, port = authority.partition(":")
        if not host:
            raise InvalidAddress(address, "it names no host.")
        if not _is_ip(host, version=4) and not _is_dns_name(host):
            raise InvalidAddress(address, f"{host!r} is neither an IP address nor a DNS name.")
    if not colon or not port:
        return host, None
    if not port.isdecimal() or len(port) > 5 or not 0 < int(port) < 65536:
        raise InvalidAddress(address, f"{port!r} is not a port: a number from 1 to 65535.")
    return host, int(port)


def _below_the_host(path: str, address: str) -> str:
    """A path that begins with two slashes is the name of another host to whoever joins it to the BMC's URL, what climbs up leaves
    the place where the BMC keeps its machines, and a control character ends a line of the request for who decodes it."""
    plain = unquote(path)
    if plain.startswith("//"):
        raise InvalidAddress(address, "its path begins with two slashes; write one.")
    if ".." in plain.split("/") or "\\" in plain:
        raise InvalidAddress(address, "its path must hold neither '..' nor a backslash.")
    if ENCODED_CONTROL.search(path):
        raise InvalidAddress(address, "its path holds an encoded control character (%00 to %1F, %7F).")
    return path


def _privilege_level(query: str, address: str) -> PrivilegeLevel:
    found = parse_qs(query, keep_blank_values=True).get("privilegelevel", ["ADMINISTRATOR"])[-1]
    match found:
        case "ADMINISTRATOR" | "OPERATOR" | "USER" | "CALLBACK":
            return found
    raise InvalidAddress(
        address,
        f"{found!r} is not a privilege level: ADMINISTRATOR, OPERATOR, USER or CALLBACK.",
    )


def is_host(text: str) -> bool:
    """Whether this alone can be where something is: an IP address without brackets, or a DNS name."""
    return _is_ip(text, version=4) or _is_ip(text, version=6) or _is_dns_name(text)


def is_host_and_port(text: str) -> bool:
    """Whether this can be where something is, with a port: 10.0.0.7:3306, [fd00::7]:3306, db.example.com:3306."""
    try:
        return _host_and_port(text, text)[1] is not None
    except InvalidAddress:
        return False


def _is_dns_name(text: str) -> bool:
    return len(text) <= 253 and _DNS_NAME.fullmatch(text) is not None


def _is_ip(host: str, *, version: Literal[4, 6]) -> bool:
    try:
        return ipaddress.ip_address(host).version == version and "%" not in host
    except ValueError:
        return False
