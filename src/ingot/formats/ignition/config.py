"""Making an Ignition config piece by piece; contents travel inside it, compressed.

Refuses a path or unit that is there already, as Ignition would on the machine, where nobody sees it.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ingot.formats.errors import FormatError

Resource = dict[str, str]


@dataclass(slots=True)
class IgnitionConfig:
    """A config of one specification under construction."""

    version: str
    merged: list[Resource] = field(default_factory=list)
    authorities: list[Resource] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    units: list[dict[str, Any]] = field(default_factory=list)
    users: list[dict[str, Any]] = field(default_factory=list)
    _taken: set[tuple[str, str]] = field(default_factory=set, init=False, repr=False, compare=False)
    """What there is already, by kind and name: a config may have thousands of files."""

    def __bool__(self) -> bool:
        return bool(self.merged or self.authorities or self.files or self.units or self.users)

    def merge(self, config: Mapping[str, Any]) -> None:
        """Have another config merged into this one when the machine reads it."""
        self.merged.append(resource(msgspec.json.encode(config)))

    def add_authority(self, bundle: bytes) -> None:
        """Trust these certificates (PEM) when something is fetched."""
        self.authorities.append(resource(bundle))

    def add_file(self, path: str, content: bytes, *, mode: int, overwrite: bool = False) -> None:
        """With `overwrite`, in place of a file that the system brings along; without, there must be none."""
        file: dict[str, Any] = {"path": path, "contents": resource(content), "mode": mode}
        self._add(file | ({"overwrite": True} if overwrite else {}))

    def append_to_file(self, path: str, content: bytes) -> None:
        """Put this behind what the system's own file has."""
        self._add({"path": path, "append": [resource(content)]})

    def _add(self, file: dict[str, Any]) -> None:
        self._take("path", file["path"])
        self.files.append(file)

    def add_user(self, name: str, ssh_keys: list[str]) -> None:
        """A user that may log in with these keys; one that the system brings along gets them too."""
        self._take("user", name)
        self.users.append({"name": name, "sshAuthorizedKeys": ssh_keys})

    def add_unit(self, name: str, text: str) -> None:
        """A unit of systemd that is enabled."""
        self._take("unit", name)
        self.units.append({"name": name, "contents": text, "enabled": True})

    def _take(self, kind: str, name: str) -> None:
        if (kind, name) in self._taken:
            raise FormatError(f"config already specifies {kind} {name}")
        self._taken.add((kind, name))

    def encoded(self) -> bytes:
        ignition: dict[str, Any] = {"version": self.version}
        if self.merged:
            ignition["config"] = {"merge": self.merged}
        if self.authorities:
            ignition["security"] = {"tls": {"certificateAuthorities": self.authorities}}
        config: dict[str, Any] = {"ignition": ignition}
        if self.users:
            config["passwd"] = {"users": self.users}
        if self.files:
            config["storage"] = {"files": self.files}
        if self.units:
            config["systemd"] = {"units": self.units}
        return msgspec.json.encode(config) + b"\n"


def resource(content: bytes) -> Resource:
    """Contents as a data URL, compressed; the same contents give the same URL."""
    packed = base64.b64encode(gzip.compress(content, mtime=0)).decode()
    return {"compression": "gzip", "source": f"data:;base64,{packed}"}
