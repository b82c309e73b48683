"""What a registry asks of us when it answers 401: the header WWW-Authenticate, read into a value. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_PARAMETER: Final = re.compile(r'\s*([a-zA-Z0-9_-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))\s*(?:,|$)')
_SCHEME: Final = re.compile(r"\s*([a-zA-Z][a-zA-Z0-9._~+/-]*)(?:\s+|$)(?!=)")


@dataclass(frozen=True, slots=True)
class BasicChallenge:
    """User name and password with each request."""


@dataclass(frozen=True, slots=True)
class BearerChallenge:
    """A token, which another server hands out."""

    realm: str
    service: str | None
    scope: str | None


def parse_challenges(headers: Sequence[str]) -> BasicChallenge | BearerChallenge | None:
    """What to do, by the headers of one answer; a token is preferred to a password on every request."""
    found: list[BasicChallenge | BearerChallenge] = []
    for header in headers:
        rest = header
        while scheme := _SCHEME.match(rest):
            rest = rest[scheme.end() :]
            parameters: dict[str, str] = {}
            while one := _PARAMETER.match(rest):
                value = re.sub(r"\\(.)", r"\1", one[2]) if one[2] is not None else one[3]
                parameters.setdefault(one[1].lower(), value)
                rest = rest[one.end() :]
            match scheme[1].lower():
                case "basic":
                    found.append(BasicChallenge())
                case "bearer" if "realm" in parameters:
                    realm = parameters["realm"]
                    found.append(BearerChallenge(realm, parameters.get("service"), parameters.get("scope")))
    bearers = [one for one in found if isinstance(one, BearerChallenge)]
    return (bearers or found or [None])[0]
