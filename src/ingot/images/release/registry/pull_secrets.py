"""Credentials for registries, from the file that docker, podman and clusters write: `config.json`, `auth.json`, a pull secret.

An entry is for a registry (`quay.io`) or for a part of it (`quay.io/team`); the longest that fits counts. Programs that hold
credentials elsewhere (credential helpers) are not run; an entry that is only there is as good as none, and the error says so.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from ingot.formats.oci import Reference
from ingot.images.release.errors import ReleaseError
from ingot.trust import Secret

_DOCKER_HUB: Final = "https://index.docker.io/v1/"


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user with a password, or a token that stands for both."""

    user: str
    password: Secret
    identity_token: Secret | None = None


class _Entry(msgspec.Struct):
    auth: str = ""
    username: str = ""
    password: str = ""
    identitytoken: str = ""


class _File(msgspec.Struct, rename="camel"):
    auths: dict[str, _Entry] = {}
    cred_helpers: dict[str, str] = {}
    creds_store: str = ""


@dataclass(frozen=True, slots=True)
class PullSecrets:
    """What a file says; `where` is for messages."""

    where: str = "no file with credentials"
    entries: Mapping[str, Credentials] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()

    def find(self, reference: Reference) -> Credentials | None:
        """The credentials for a repository."""
        for scope in _scopes(reference):
            if scope in self.entries:
                return self.entries[scope]
        return None

    def why_none(self, reference: Reference) -> str:
        if reference.registry in self.elsewhere:
            return f"{self.where} leaves {reference.registry} to a credential helper, which is not asked; log in without one"
        return f"{self.where} has nothing for {reference.registry}"


def find_pull_secrets(environment: Mapping[str, str], named: Path | None = None) -> PullSecrets:
    """The file that is named, else the first that there is where podman and docker keep it."""
    if named is not None:
        return read_pull_secrets(named)
    for path in _usual_places(environment):
        if path.is_file():
            return read_pull_secrets(path)
    return PullSecrets()


def read_pull_secrets(path: Path) -> PullSecrets:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ReleaseError(
            f"the credentials for registries in {path} cannot be read: {error.strerror}"
        ) from error
    return parse_pull_secrets(content, str(path))


def parse_pull_secrets(content: bytes, where: str) -> PullSecrets:
    # Nothing of the content goes into a message, nor into what a message was raised from: there are passwords in it.
    try:
        file = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ReleaseError(
            f"{where} is no file with credentials for registries: JSON with the key auths"
        ) from None
    entries = {_scope(name): _credentials(entry, name, where) for name, entry in file.auths.items()}
    elsewhere = {_scope(name) for name in file.cred_helpers}
    if file.creds_store:
        elsewhere |= {scope for scope, found in entries.items() if found is None}
    return PullSecrets(
        where, {scope: found for scope, found in entries.items() if found}, frozenset(elsewhere)
    )


def _credentials(entry: _Entry, name: str, where: str) -> Credentials | None:
    user, password = entry.username, entry.password
    if entry.auth:
        try:
            user, colon, password = base64.b64decode(entry.auth, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            colon = ""
        if not colon:
            raise ReleaseError(f"{where}: the auth of {name} is not USER:PASSWORD in base64") from None
    token = Secret(entry.identitytoken) if entry.identitytoken else None
    if not user and token is None:
        return None
    return Credentials(user, Secret(password.rstrip("\0")), token)


def _scope(name: str) -> str:
    """The registry, or the part of it, that an entry is for; docker writes some of them as URLs."""
    if name == _DOCKER_HUB:
        return "docker.io"
    return (
        name.removeprefix("https://")
        .removeprefix("http://")
        .removesuffix("/")
        .removesuffix("/v1")
        .removesuffix("/v2")
    )


def _scopes(reference: Reference) -> Iterator[str]:
    parts = reference.name.split("/")
    for count in range(len(parts), 0, -1):
        yield "/".join(parts[:count])


def _usual_places(environment: Mapping[str, str]) -> Iterator[Path]:
    if named := environment.get("REGISTRY_AUTH_FILE"):
        yield Path(named)
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "containers" / "auth.json"
    home = Path(environment.get("HOME") or os.devnull)
    yield Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "containers" / "auth.json"
    yield Path(environment.get("DOCKER_CONFIG") or home / ".docker") / "config.json"
