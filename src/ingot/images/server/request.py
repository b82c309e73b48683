"""A request as it came, and what is no request.

Pure, and strict: a grammar for each line of the head, which leaves no two ways to read it. What stands in front of us or behind
us may be lenient; a head that could mean something else to somebody else is refused, and so is a body, because nothing here
takes one. After a refusal the connection is closed: what follows cannot be told from the rest of what was refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

LARGEST_HEAD: Final = 8 * 1024
MOST_FIELDS: Final = 64
END: Final = b"\r\n\r\n"

_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - HTTP's word for such a name
_FIRST: Final = re.compile(rf"({_TOKEN}) ([!-~]+) HTTP/1\.([01])", re.ASCII)
_FIELD: Final = re.compile(rf"({_TOKEN}):([\t -~\x80-\xff]*)", re.ASCII)
_HOST: Final = re.compile(r"[A-Za-z0-9._~%!$&'()*+;=:\[\]-]*")


class Refused(Exception):
    """The status that this gets, and a sentence for whoever sent it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Request(NamedTuple):
    """`fields` by name in lower case. `stays` says whether the connection is to be kept afterwards."""

    method: str
    target: str
    fields: Mapping[str, str]
    stays: bool


def parsed(head: bytes) -> Request:
    """The request whose head this is, from the first byte to the empty line, which is not part of it any more."""
    first, *lines = head.decode("latin-1").split("\r\n")
    matched = _FIRST.fullmatch(first)
    if matched is None or not lines or lines.pop() or len(lines) > MOST_FIELDS:
        raise Refused(400, "that is no request of HTTP/1.1")
    fields: dict[str, str] = {}
    for name, value in map(_field, lines):
        # Twice the same field is a list; where no list may be, it then is no value that is understood.
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    method, target, minor = matched.groups()
    _check(fields, newest=minor == "1")
    return Request(method, target, fields, _stays(fields.get("connection", ""), newest=minor == "1"))


@lru_cache(maxsize=512)
def _field(line: str) -> tuple[str, str]:
    """Name and value. A client says most of its lines again and again."""
    matched = _FIELD.fullmatch(line)
    if matched is None:
        raise Refused(400, "that is no request of HTTP/1.1")
    return matched[1].lower(), matched[2].strip(" \t")


def _stays(connection: str, *, newest: bool) -> bool:
    words = {word.strip().lower() for word in connection.split(",")} if connection else ()
    return "close" not in words and (newest or "keep-alive" in words)


def _check(fields: Mapping[str, str], *, newest: bool) -> None:
    host = fields.get("host")
    if (newest and host is None) or (host is not None and not _HOST.fullmatch(host)):
        raise Refused(400, "a request names one host")
    if "transfer-encoding" in fields or fields.get("content-length", "0") != "0":
        raise Refused(413, "nothing here takes a body")
