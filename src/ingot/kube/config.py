"""Where the API is and who we are: reading a kubeconfig.

Owns the way from files to an `Access`: the server's address, a TLS context, and where the token comes from. `KUBECONFIG` may
name several files, as with kubectl: the first that defines a name wins, and relative paths count from the file they stand in.
A token is never sent without TLS. Exec plugins, auth providers and proxies are refused with a sentence, not ignored.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import yaml

from ingot.kube.errors import ConfigError
from ingot.trust import Secret, write_private

TOKEN_FILE_LIFE: Final = 60.0
"""Seconds for which a token file is not read again: kubelet replaces projected tokens long before they expire."""

_UNSUPPORTED_USER: Final = ("exec", "auth-provider", "username", "password", "as")


class TokenSource(Protocol):
    """Where the bearer token comes from; None where a client certificate (or nothing) says who we are."""

    def token(self) -> Secret | None: ...

    def refused(self) -> bool:
        """The server did not accept the token. True if there may be another one now."""
        ...


class FixedToken:
    """The token that stands in the kubeconfig, or none."""

    def __init__(self, token: Secret | None = None) -> None:
        self._token = token

    def token(self) -> Secret | None:
        return self._token

    def refused(self) -> bool:
        return False


class TokenFile:
    """A token in a file that somebody else renews."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token: Secret | None = None
        self._read_at = 0.0

    def token(self) -> Secret:
        if self._token is None or time.monotonic() - self._read_at > TOKEN_FILE_LIFE:
            try:
                self._token = Secret(self._path.read_text().strip())
            except OSError as error:
                raise ConfigError(f"the token file {self._path} cannot be read: {error.strerror}") from error
            self._read_at = time.monotonic()
        return self._token

    def refused(self) -> bool:
        before, self._token = self._token, None
        return self.token() != before


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to reach an API and be let in."""

    server: str
    tls: ssl.SSLContext | None
    server_name: str = ""
    """The name to expect in the server's certificate, where it is not the one in the address."""
    tokens: TokenSource = field(default_factory=FixedToken)


def load(
    path: Path | str | None = None,
    *,
    context: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Access:
    """The access that a kubeconfig describes: the file given, else KUBECONFIG, else ~/.kube/config."""
    paths = _paths(path, environment)
    merged = _Merged(paths)
    return merged.access(context)


def _paths(path: Path | str | None, environment: Mapping[str, str]) -> list[Path]:
    if path is not None:
        return [Path(path)]
    named = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return named or [Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"]


@dataclass(frozen=True, slots=True)
class _Entry:
    """A cluster, user or context, and the file it stands in."""

    body: Mapping[str, object]
    file: Path

    def text(self, name: str) -> str:
        value = self.body.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{self.file}: {name} should be text")
        return value

    def flag(self, name: str) -> bool:
        value = self.body.get(name)
        # "false" in quotes is text, and text is true to Python: that must not switch anything off.
        if not isinstance(value, bool | None):
            raise ConfigError(f"{self.file}: {name} should be true or false, found {value!r}")
        return bool(value)

    def file_of(self, name: str) -> Path | None:
        value = self.text(name)
        return self.file.parent / value if value else None

    def data(self, name: str) -> bytes | None:
        value = self.text(f"{name}-data")
        if not value:
            return None
        try:
            return base64.b64decode(value, validate=False)
        except binascii.Error as error:
            raise ConfigError(f"{self.file}: {name}-data is not base64") from error


class _Merged:
    """Several kubeconfig files seen as one."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._names = ", ".join(str(path) for path in paths)
        self._entries: dict[tuple[str, str], _Entry] = {}
        self._current = ""
        found = False
        for path in paths:
            # As with kubectl, a file of the list that is not there is as good as an empty one.
            if path.exists():
                found = True
                self._add(path)
        if not found:
            raise ConfigError(
                f"there is no kubeconfig at {self._names}. Set KUBECONFIG to the file that describes the cluster, "
                "or start one on this machine with `ingot up`."
            )

    def _add(self, path: Path) -> None:
        try:
            content = yaml.safe_load(path.read_bytes())
        except (OSError, yaml.YAMLError) as error:
            raise ConfigError(f"the kubeconfig {path} cannot be read: {error}") from error
        if not isinstance(content, dict):
            raise ConfigError(f"the kubeconfig {path} should be a mapping with clusters, users and contexts")
        self._current = self._current or str(content.get("current-context") or "")
        for section, member in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            items = content.get(section) or []
            if not isinstance(items, list):
                raise ConfigError(f"the kubeconfig {path}: {section} should be a list")
            for item in items:
                if not (isinstance(item, dict) and isinstance(item.get("name"), str)):
                    raise ConfigError(f"the kubeconfig {path} has an entry without a name under {section}")
                body = item.get(member) or {}
                if not isinstance(body, dict):
                    raise ConfigError(
                        f"the kubeconfig {path}: {member} of {item['name']} should be a mapping"
                    )
                self._entries.setdefault((section, item["name"]), _Entry(body, path))

    def access(self, context: str | None) -> Access:
        name = context or self._current
        if not name:
            raise ConfigError(f"{self._names} has no current-context; choose one with --context")
        chosen = self._entry("contexts", name)
        cluster = self._entry("clusters", chosen.text("cluster"))
        user_name = chosen.text("user")
        user = self._entry("users", user_name) if user_name else _Entry({}, chosen.file)
        return _access(cluster, user, user_name)

    def _entry(self, section: str, name: str) -> _Entry:
        try:
            return self._entries[section, name]
        except KeyError:
            known = ", ".join(sorted(other for part, other in self._entries if part == section)) or "none"
            raise ConfigError(
                f"{self._names} has no entry {name!r} under {section}; it has: {known}"
            ) from None


def _access(cluster: _Entry, user: _Entry, user_name: str) -> Access:
    server = cluster.text("server").rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise ConfigError(f"{cluster.file}: the server should be an https:// address, found {server!r}")
    if cluster.text("proxy-url"):
        raise ConfigError(f"{cluster.file}: proxy-url is not supported; remove it or use a direct address")
    for name in _UNSUPPORTED_USER:
        if user.body.get(name):
            raise ConfigError(
                f"{user.file}: user {user_name} logs in by {name!r}, which is not supported. "
                "Give the user a token, a tokenFile, or a client certificate."
            )
    tokens = _tokens(user)
    secure = server.startswith("https://")
    if not secure and not (isinstance(tokens, FixedToken) and tokens.token() is None):
        raise ConfigError(f"{cluster.file}: {server} has no TLS, and a token is never sent in the clear")
    return Access(
        server=server,
        tls=_context(cluster, user) if secure else None,
        server_name=cluster.text("tls-server-name"),
        tokens=tokens,
    )


def _tokens(user: _Entry) -> TokenSource:
    file = user.file_of("tokenFile")
    if file is not None:
        return TokenFile(file)
    token = user.text("token")
    return FixedToken(Secret(token) if token else None)


def _context(cluster: _Entry, user: _Entry) -> ssl.SSLContext:
    data = cluster.data("certificate-authority")
    file = cluster.file_of("certificate-authority")
    try:
        context = ssl.create_default_context(
            cafile=str(file) if file and data is None else None,
            cadata=data.decode("ascii") if data is not None else None,
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"{cluster.file}: the certificate authority cannot be used: {error}") from error
    if cluster.flag("insecure-skip-tls-verify"):
        # The user's explicit wish in their own file; kubectl does the same.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_identity(context, user)
    return context


def _load_identity(context: ssl.SSLContext, user: _Entry) -> None:
    """Put the client certificate into the context, if the user has one."""
    with tempfile.TemporaryDirectory() as folder:
        # The ssl module reads certificates from files only; this folder is ours alone and gone in a moment.
        cert = _as_file(user, "client-certificate", Path(folder))
        key = _as_file(user, "client-key", Path(folder))
        if cert is None and key is None:
            return
        if cert is None or key is None:
            raise ConfigError(f"{user.file}: a user needs both client-certificate and client-key, or neither")
        try:
            context.load_cert_chain(cert, key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"{user.file}: the client certificate cannot be used: {error}") from error


def _as_file(user: _Entry, name: str, folder: Path) -> Path | None:
    data = user.data(name)
    if data is None:
        return user.file_of(name)
    path = folder / name
    write_private(path, data)
    return path
