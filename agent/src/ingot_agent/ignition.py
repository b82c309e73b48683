"""The Ignition config that the installed system gets: the user's own, to the letter, with what is ours beneath it.

Ours names the machine and gives the user `core` its SSH keys. It merges the user's config: Ignition lets a merged config win
over the one that merges it, so nothing of the user's is changed by it, whatever that config replaces, merges or fetches itself.
Where there is nothing of ours, the user's config stands alone.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard
from urllib.parse import quote

from ingot_agent.errors import Refused

# The oldest of spec 3: every CoreOS that is installed like this reads it, whatever the merged config is written in.
_OURS: Final = "3.0.0"
_SPEC_3: Final = re.compile(r"3\.\d+\.\d+(-[a-z]+)?")
_HOSTNAME: Final = "/etc/hostname"
# What coreos-installer is given is read whole; this is far beyond any config, and far below the memory of a server.
LARGEST: Final = 64 << 20


def text_of(given: object, where: str) -> str | None:
    """The user's config as text; None where there is none. `where` names its place in messages, which never quote it."""
    if given is None or given == "":
        return None
    if isinstance(given, Mapping):
        given = json.dumps(given, separators=(",", ":"))
    if not isinstance(given, str):
        raise Refused(f"{where} is neither an object nor a text; write the Ignition config there.")
    if len(given) > LARGEST:
        raise Refused(f"{where} is larger than {LARGEST >> 20} MiB; no Ignition config is.")
    _check(given, where)
    return given


def config(user: str | None, *, hostname: str | None, ssh_keys: Sequence[str]) -> bytes | None:
    """The config to write; None where nobody has anything to say."""
    theirs = json.loads(user) if user else {}
    ours: dict[str, Any] = {}
    if hostname and _HOSTNAME not in _paths(theirs):
        ours["storage"] = {"files": [_hostname_file(hostname)]}
    known = set(_core_keys(theirs))
    if keys := [key for key in dict.fromkeys(ssh_keys) if key not in known]:
        ours["passwd"] = {"users": [{"name": "core", "sshAuthorizedKeys": keys}]}
    if not ours:
        return user.encode() if user else None
    head: dict[str, Any] = {"version": _OURS}
    if user:
        source = "data:;base64," + base64.b64encode(user.encode()).decode()
        head["config"] = {"merge": [{"source": source}]}
    return json.dumps({"ignition": head, **ours}, separators=(",", ":")).encode()


def _check(text: str, where: str) -> None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        kind = "a cloud-config" if text.lstrip().startswith("#cloud-config") else "no JSON"
        raise Refused(f"{where} is {kind}; CoreOS is configured with Ignition, which is JSON.") from None
    head = document.get("ignition") if isinstance(document, dict) else None
    if not isinstance(head, dict) or not isinstance(head.get("version"), str):
        raise Refused(f"{where} is JSON, but no Ignition config: it has no ignition.version.")
    if not _SPEC_3.fullmatch(head["version"]):
        raise Refused(
            f"{where} is an Ignition config of version {head['version'][:20]!r}; CoreOS reads those of spec 3."
        )


def _hostname_file(hostname: str) -> dict[str, Any]:
    return {
        "path": _HOSTNAME,
        "mode": 0o644,
        "overwrite": True,
        "contents": {"source": "data:," + quote(hostname + "\n")},
    }


def _paths(document: Mapping[str, Any]) -> set[str]:
    storage = document.get("storage")
    kinds = (storage.get(kind) for kind in ("files", "links", "directories")) if _is_map(storage) else ()
    return {path for kind in kinds for item in _maps(kind) if isinstance(path := item.get("path"), str)}


def _core_keys(document: Mapping[str, Any]) -> Iterator[str]:
    passwd = document.get("passwd")
    for user in _maps(passwd.get("users") if _is_map(passwd) else None):
        keys = user.get("sshAuthorizedKeys")
        if user.get("name") == "core" and isinstance(keys, list):
            yield from (key for key in keys if isinstance(key, str))


def _is_map(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, dict)


def _maps(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
