"""Which proxy a URL is fetched through, as the environment says: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, and NO_PROXY for exceptions.

Pure: environment in, decision out. NO_PROXY may hold domains (with and without the leading dot), addresses and networks
(10.0.0.0/8), each with a port if need be; a star stands for everything. A proxy's password is in its URL, so that is never shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Final

import aiohttp
from yarl import URL

from ingot.images.fetching.errors import Refused

_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Proxy:
    url: URL
    headers: Mapping[str, str]
    """What the proxy alone is told: who asks."""

    def request_headers(self, url: URL, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Those of a request that goes through it. Without a tunnel it reads them itself; with one the server does."""
        return {**headers, **self.headers} if url.scheme == "http" else headers


def proxy_for(url: URL, environment: Mapping[str, str]) -> Proxy | None:
    """The proxy for this URL; None where it is fetched directly."""
    named = _value(environment, f"{url.scheme}_proxy") or _value(environment, "all_proxy")
    if not named or _excepted(url, _value(environment, "no_proxy")):
        return None
    try:
        proxy = URL(named if "://" in named else f"http://{named}")
        port = proxy.port
    except ValueError:
        proxy, port = URL(), None
    if proxy.scheme not in ("http", "https") or not proxy.host or not port:
        raise Refused(
            f"the proxy that the environment names for {url.scheme} is not of the form http://HOST:PORT; mend "
            f"{url.scheme.upper()}_PROXY, or except {url.host} from it with NO_PROXY"
        )
    headers = {}
    if proxy.user:
        headers["Proxy-Authorization"] = aiohttp.encode_basic_auth(proxy.user, proxy.password or "")
    return Proxy(proxy.with_user(None), headers)


def _value(environment: Mapping[str, str], name: str) -> str:
    """The small letters count before the capitals, as they do for curl."""
    if name == "http_proxy" and "REQUEST_METHOD" in environment:
        # Under a web server's CGI the capitals are a header of whoever asks.
        return environment.get(name, "").strip()
    return (environment.get(name) or environment.get(name.upper()) or "").strip()


def _excepted(url: URL, exceptions: str) -> bool:
    host, port = (url.host or "").rstrip(".").lower(), url.port or _PORTS.get(url.scheme)
    return any(_matches(word.lower(), host, port) for word in exceptions.replace(",", " ").split())


def _matches(word: str, host: str, port: int | None) -> bool:
    if word == "*":
        return True
    name, _, wanted = word.rpartition(":") if word.count(":") == 1 or "]:" in word else (word, "", "")
    if wanted and wanted != str(port):
        return False
    name = name.strip("[]")
    try:
        network = ip_network(name, strict=False)
    except ValueError:
        domain = name.removeprefix("*").strip(".")
        return bool(domain) and (host == domain or host.endswith(f".{domain}"))
    try:
        return ip_address(host) in network
    except ValueError:
        return False
