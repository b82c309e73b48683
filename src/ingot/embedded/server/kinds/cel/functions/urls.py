"""URLs: whether a text is one, and what it consists of."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

from cel_expr_python import cel

from ingot.embedded.server.kinds.cel.functions.declaring import BOOL, DYN, RECORD, STRING, member, plain

_ABSOLUTE: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:.*|/.*)")
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")


def functions() -> list[cel.FunctionDecl]:
    return [
        plain("isURL", ([STRING], BOOL, lambda text: _parsed(text) is not None)),
        plain("url", ([STRING], RECORD, _url)),
        member("getScheme", ([RECORD], STRING, lambda url: url["scheme"])),
        member("getHost", ([RECORD], STRING, lambda url: url["host"])),
        member("getHostname", ([RECORD], STRING, lambda url: url["hostname"])),
        member("getPort", ([RECORD], STRING, lambda url: url["port"])),
        member("getEscapedPath", ([RECORD], STRING, lambda url: url["path"])),
        member("getQuery", ([RECORD], DYN, lambda url: url["query"])),
    ]


def _url(text: str) -> dict[str, Any]:
    parsed = _parsed(text)
    if parsed is None:
        raise ValueError(
            f"URL parse error during conversion from string: parse {text!r}: invalid URI for request"
        )
    return parsed


def _parsed(text: str) -> dict[str, Any] | None:
    """Absolute, or a path from the root: what a request can be made with."""
    if not _ABSOLUTE.fullmatch(text) or _CONTROL.search(text):
        return None
    try:
        parts = urlsplit(text)
        port = "" if parts.port is None else str(parts.port)
    except ValueError:
        return None
    host = parts.netloc.rpartition("@")[2]
    name = host[1 : host.index("]")] if host.startswith("[") and "]" in host else host.partition(":")[0]
    return {
        "type": "url",
        "scheme": parts.scheme,
        "host": host,
        "hostname": name,
        "port": port,
        "path": quote(parts.path, safe="/%:@!$&'()*+,;=-._~"),
        "query": parse_qs(parts.query, keep_blank_values=True),
    }
