"""The name servers of a desired state, the domains to search in, and the options of the resolver."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Final

from ingot.formats.errors import FormatError, UnsupportedFormat
from ingot.formats.network.model import Resolver, Server
from ingot.formats.network.reading import Fields
from ingot.formats.network.telling import shown
from ingot.formats.network.values import ip_address, search_domain

_OPTIONS: Final = frozenset({
    "debug", "edns0", "inet6", "ip6-bytestring", "ip6-dotint", "no-aaaa", "no-check-names", "no-ip6-dotint", "no-reload",
    "no-tld-query", "rotate", "single-request", "single-request-reopen", "trust-ad", "use-vc",
})  # fmt: skip
_NUMBERED: Final = re.compile(r"(?:ndots|timeout|attempts):[0-9]{1,5}")


def read_resolver(fields: Fields | None) -> Resolver:
    if fields is None:
        return Resolver()
    fields.passed_over("running")
    config = fields.fields("config")
    fields.done()
    if config is None:
        return Resolver()
    resolver = Resolver(
        servers=tuple(read_server(text, path) for path, text in config.texts("server")),
        search=tuple(search_domain(text, path) for path, text in config.texts("search")),
        options=tuple(_option(text, path) for path, text in config.texts("options")),
    )
    config.done()
    return resolver


def read_server(text: str, path: str) -> Server:
    bare, percent, zone = text.partition("%")
    address = ip_address(bare, path)
    if percent and not (zone and isinstance(address, IPv6Address) and address.is_link_local):
        raise FormatError(
            f"{path}: {shown(text)}: only a link-local address has the name of an interface behind it"
        )
    return Server(address, zone or None, path)


def _option(text: str, path: str) -> str:
    if text not in _OPTIONS and not _NUMBERED.fullmatch(text):
        raise UnsupportedFormat(f"{path}: {shown(text)} is not an option of the resolver")
    return text
