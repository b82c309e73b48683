"""Whether the server lives, and whether it can do its work: `/livez`, `/readyz`, `/healthz`, and each check by its name.

It lives as long as it answers. It is ready while its database takes writes; when that refuses one (a full disk), reading goes
on, and the sentence says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import web
from multidict import MultiMapping

ENDPOINTS: Final = ("healthz", "livez", "readyz")
# The name of the storage's check is the one that monitoring knows from kube-apiserver.
_STORAGE: Final = "etcd"
_LIVE: Final = ("ping", "log")
_READY: Final = ("ping", "log", _STORAGE)

# What is wrong with the storage; empty when nothing is.
Trouble = Callable[[], str]


def answer(path: str, query: MultiMapping[str], trouble: Trouble) -> web.Response | None:
    """The answer for this path, or None when it is not about health."""
    endpoint, _, check = path.strip("/").partition("/")
    if endpoint not in ENDPOINTS:
        return None
    names = _READY if endpoint == "readyz" else _LIVE
    found = {name: trouble() if name == _STORAGE else "" for name in names}
    if check:
        return _one(endpoint, check, {_STORAGE: trouble(), **found})
    return _all(endpoint, found, query)


def _one(endpoint: str, check: str, found: Mapping[str, str]) -> web.Response:
    if check not in found:
        return web.Response(status=404, text="404 page not found\n")
    if wrong := found[check]:
        return web.Response(status=500, text=f"{endpoint} check failed: {wrong}\n")
    return web.Response(text="ok")


def _all(endpoint: str, found: Mapping[str, str], query: MultiMapping[str]) -> web.Response:
    left_out = query.getall("exclude", [])
    lines = []
    well = True
    for name, wrong in found.items():
        if name in left_out:
            lines.append(f"[+]{name} excluded: ok")
        elif wrong:
            well = False
            lines.append(f"[-]{name} failed: {wrong}")
        else:
            lines.append(f"[+]{name} ok")
    if unknown := [name for name in left_out if name not in found]:
        quoted = ", ".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
    if not well:
        return web.Response(status=500, text="\n".join([*lines, f"{endpoint} check failed\n"]))
    if "verbose" in query:
        return web.Response(text="\n".join([*lines, f"{endpoint} check passed\n"]))
    return web.Response(text="ok")
