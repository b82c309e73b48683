"""Where the API is and who we are to it: from a kubeconfig, or from being a pod in the cluster, to an `Access`.

The file that is asked for comes first, then KUBECONFIG (which may name several), then the pod's own service account, then
~/.kube/config. A token is never sent without TLS. What is not supported is refused with a sentence, not ignored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast, get_args
from urllib.parse import urlsplit

from ingot.kube.access import Access
from ingot.kube.content import FileContent
from ingot.kube.errors import ConfigError, CredentialError
from ingot.kube.exec_plugin import API_VERSIONS, ExecPlugin, ExecSettings, InteractiveMode
from ingot.kube.identity import IdentitySource, KnownIdentity
from ingot.kube.kubeconfig import Entry, Kubeconfig
from ingot.kube.tls import Trust, client_context
from ingot.trust import Secret

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
_UNSUPPORTED_USER: Final = ("auth-provider", "username", "password", "as")


def load(
    path: Path | str | None = None,
    *,
    context: str | None = None,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The access that is asked for, or else the first that there is."""
    named = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    if path is not None:
        named = [Path(path)]
    a_pod = "KUBERNETES_SERVICE_HOST" in environment and (service_account / "token").exists()
    if a_pod and not named and context is None:
        return in_cluster(environment, service_account)
    home = Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"
    return _from_kubeconfig(Kubeconfig(named or [home]), context)


def in_cluster(
    environment: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> Access:
    """The cluster that this process is a pod of. Kubelet renews the token; both files are read again."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not port.isdecimal():
        raise ConfigError(f"KUBERNETES_SERVICE_PORT should be a number, found {port!r}")
    access = Access(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        trust=Trust(FileContent(service_account / "ca.crt", "cluster's certificate authority")),
        identity=KnownIdentity(token=FileContent(service_account / "token", "service account's token")),
    )
    client_context(access.trust, None)
    return access


def _from_kubeconfig(files: Kubeconfig, context: str | None) -> Access:
    chosen, cluster, user = files.chosen(context)
    server = cluster.text("server").rstrip("/")
    if not (server.startswith(("https://", "http://")) and _names_a_host(server)):
        raise ConfigError(f"{cluster.file}: the server should be an https:// address, found {server!r}")
    for name in _UNSUPPORTED_USER:
        if user.body.get(name):
            raise ConfigError(
                f"{user.file}: user {chosen.text('user')} logs in by {name!r}, which is not supported. "
                "Give the user a token, a tokenFile, a client certificate, or an exec plugin."
            )
    if not server.startswith("https://") and any(user.text(name) for name in ("token", "tokenFile")):
        raise ConfigError(f"{cluster.file}: {server} has no TLS, and a token is never sent in the clear")
    try:
        return Access(
            server=server,
            trust=_trust(cluster),
            identity=_identity(cluster, user),
            server_name=cluster.text("tls-server-name"),
            proxy=_proxy(cluster),
            namespace=chosen.text("namespace"),
        )
    except CredentialError as error:
        raise CredentialError(f"{user.file}: {error}") from error


def _names_a_host(server: str) -> bool:
    try:
        parts = urlsplit(server)
        # The port is read when it is asked for.
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _trust(cluster: Entry) -> Trust:
    trust = Trust(
        cluster.content("certificate-authority"), verify=not cluster.flag("insecure-skip-tls-verify")
    )
    # Made once here, so that what is wrong with it is said before anything starts.
    client_context(trust, None)
    return trust


def _proxy(cluster: Entry) -> str:
    proxy = cluster.text("proxy-url")
    if proxy and not proxy.startswith("http://"):
        raise ConfigError(f"{cluster.file}: proxy-url should be an http:// address; others are not supported")
    return proxy


def _identity(cluster: Entry, user: Entry) -> IdentitySource:
    certificate, key = user.content("client-certificate"), user.content("client-key")
    if (certificate is None) != (key is None):
        raise ConfigError(f"{user.file}: a user needs both client-certificate and client-key, or neither")
    file, token = user.file_of("tokenFile"), user.text("token")
    plugin = user.part("exec")
    if plugin is not None and not (file or token):
        if certificate is not None:
            raise ConfigError(f"{user.file}: a user has either an exec plugin or a client certificate")
        return ExecPlugin(_exec_settings(cluster, plugin))
    known = KnownIdentity(
        token=FileContent(file, "token file") if file else Secret(token) if token else None,
        certificate=certificate,
        key=key,
    )
    if certificate is not None:
        client_context(Trust(), known.now().certificate)
    return known


def _exec_settings(cluster: Entry, plugin: Entry) -> ExecSettings:
    api_version, command = plugin.text("apiVersion"), plugin.text("command")
    if api_version not in API_VERSIONS:
        raise ConfigError(
            f"{plugin.file}: apiVersion of exec should be {' or '.join(API_VERSIONS)}, found {api_version!r}"
        )
    if not command:
        raise ConfigError(f"{plugin.file}: exec has no command")
    if not cluster.text("server").startswith("https://"):
        raise ConfigError(
            f"{plugin.file}: an exec plugin needs a server with TLS; nothing is sent in the clear"
        )
    mode = plugin.text("interactiveMode") or "IfAvailable"
    if mode not in get_args(InteractiveMode):
        raise ConfigError(
            f"{plugin.file}: interactiveMode should be one of {', '.join(get_args(InteractiveMode))}, found {mode!r}"
        )
    return ExecSettings(
        api_version=api_version,
        # A path counts from the file it stands in; a bare name is looked up on PATH.
        command=str(plugin.file.parent / command) if "/" in command else command,
        args=plugin.texts("args"),
        env={part.text("name"): part.text("value") for part in plugin.parts("env")},
        install_hint=plugin.text("installHint"),
        interactive_mode=cast("InteractiveMode", mode),
        cluster=_told_of(cluster) if plugin.flag("provideClusterInfo") else None,
    )


def _told_of(cluster: Entry) -> dict[str, object]:
    """What a plugin that asks for it is told of the cluster."""
    told: dict[str, Any] = {
        name: cluster.body[name]
        for name in ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url")
        if cluster.body.get(name)
    }
    authority = cluster.content("certificate-authority")
    if authority is not None:
        told["certificate-authority-data"] = authority.read()
    for extension in cluster.parts("extensions"):
        if extension.text("name") == _EXEC_EXTENSION:
            told["config"] = extension.body.get("extension")
    return told
