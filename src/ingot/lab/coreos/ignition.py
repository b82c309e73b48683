"""Ignition as far as a simulated server can follow it: configs that are merged and replaced, files, units, SSH keys.

Pure. What a config refers to has to travel inside it, as `data:` URLs; one that has to be fetched ends the boot, with a sentence
that says so. So does what Ignition itself refuses: a config of an unknown version, a path that is there twice, contents that do
not have their hash.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from ingot.formats import FormatError
from ingot.formats.ignition import parse_ignition
from ingot.lab.errors import BootFailure

_DEEPEST: Final = 8
_LARGEST: Final = 64 << 20
_MODE: Final = 0o644

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    mode: int

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Unit:
    text: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class Applied:
    """What a system has after Ignition has run."""

    files: Mapping[str, File] = field(default_factory=dict)
    units: Mapping[str, Unit] = field(default_factory=dict)
    ssh_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By user."""

    @property
    def hostname(self) -> str:
        named = self.files.get("/etc/hostname")
        return named.text.strip() if named is not None else ""


def applied(config: bytes) -> Applied:
    """Run Ignition with this config."""
    try:
        whole = _whole(config, 0)
        files = {path: _file(path, entry) for path, entry in whole["files"].items()}
    except FormatError as error:
        raise BootFailure(f"Ignition fails: {error}") from error
    return Applied(
        files=files,
        units={name: _unit(entry) for name, entry in whole["units"].items()},
        ssh_keys={
            name: tuple(entry.get("sshAuthorizedKeys") or ()) for name, entry in whole["users"].items()
        },
    )


def _whole(content: bytes, depth: int) -> dict[str, dict[str, Any]]:
    """Files, units and users of a config and of those that it merges, by path or name."""
    if depth > _DEEPEST:
        raise FormatError(f"the Ignition configs merge one another more than {_DEEPEST} deep")
    config, _ = parse_ignition(content)
    referred: Config = config["ignition"].get("config") or {}
    if (other := referred.get("replace")) and other.get("source"):
        return _whole(_resource(other, "the config that replaces this one"), depth + 1)
    whole = _own(config)
    for number, one in enumerate(referred.get("merge") or ()):
        child = _whole(_resource(one, f"merged config {number}"), depth + 1)
        whole = {kind: _merged(whole[kind], child[kind]) for kind in whole}
    return whole


def _own(config: Config) -> dict[str, dict[str, Any]]:
    storage: Config = config.get("storage") or {}
    nodes = [storage.get(kind) or [] for kind in ("files", "directories", "links")]
    _each_once([node["path"] for kind in nodes for node in kind], "path")
    units = (config.get("systemd") or {}).get("units") or []
    _each_once([unit["name"] for unit in units], "unit")
    users = (config.get("passwd") or {}).get("users") or []
    _each_once([user["name"] for user in users], "user")
    return {
        "files": {file["path"]: file for file in nodes[0]},
        "units": {unit["name"]: unit for unit in units},
        "users": {user["name"]: user for user in users},
    }


def _each_once(names: list[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise FormatError(f"the {what} {name} is in the Ignition config twice")


def _merged(parent: Mapping[str, Config], child: Mapping[str, Config]) -> dict[str, Any]:
    """A config that is merged wins over the one that merges it; lists of both are taken together."""
    merged: dict[str, Any] = dict(parent)
    for name, entry in child.items():
        before = merged.get(name, {})
        given = {key: value for key, value in entry.items() if value is not None}
        both = {
            key: [*before[key], *(one for one in value if one not in before[key])]
            for key, value in given.items()
            if isinstance(value, list) and isinstance(before.get(key), list)
        }
        merged[name] = {**before, **given, **both}
    return merged


def _file(path: str, entry: Config) -> File:
    parts = [entry.get("contents") or {}, *(entry.get("append") or ())]
    content = b"".join(_resource(part, path) for part in parts)
    mode = entry.get("mode")
    return File(content, _MODE if mode is None else mode)


def _unit(entry: Config) -> Unit:
    return Unit(entry.get("contents") or "", bool(entry.get("enabled")) and not entry.get("mask"))


def _resource(entry: Config, what: str) -> bytes:
    source = entry.get("source") or ""
    if not source:
        return b""
    content = _data(source, what)
    if entry.get("compression") == "gzip":
        content = _unpacked(content, what)
    if wanted := (entry.get("verification") or {}).get("hash"):
        kind, _, value = wanted.partition("-")
        if kind not in ("sha256", "sha512") or hashlib.new(kind, content).hexdigest() != value:
            raise FormatError(f"the contents of {what} do not have the hash that the config says")
    return content


def _data(source: str, what: str) -> bytes:
    scheme, _, rest = source.partition(":")
    head, comma, body = rest.partition(",")
    if scheme != "data":
        raise FormatError(
            f"{what} is to be fetched ({scheme}), and the simulated servers fetch nothing for it"
        )
    if not comma:
        raise FormatError(f"the data URL of {what} has no comma")
    plain = unquote_to_bytes(body)
    if not head.endswith(";base64"):
        return plain
    try:
        return base64.b64decode(plain, validate=True)
    except binascii.Error as error:
        raise FormatError(f"the data URL of {what} is not base64") from error


def _unpacked(content: bytes, what: str) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    try:
        plain = stream.decompress(content, _LARGEST)
    except zlib.error as error:
        raise FormatError(f"the contents of {what} are not gzip") from error
    if not stream.eof:
        raise FormatError(f"the contents of {what} end too early, or are more than {_LARGEST} bytes")
    return plain
