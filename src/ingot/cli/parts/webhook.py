"""`--webhook-listen` and what belongs to it: where admission is served, under which certificate, and how the API finds it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import click

from ingot.api.baremetalhost import BareMetalHost
from ingot.cli.parts.judging import SUBJECTS, Rules
from ingot.cli.parts.listen import AddressAndPort, Listen
from ingot.cli.parts.state import StateFolder
from ingot.kube import Client, Informer
from ingot.kube.admission import AdmissionServer, Endpoint, Registration, Service, Wish
from ingot.kube.admission.registration import FailurePolicy
from ingot.trust import Authority, Certificate, ServingTls

CONFIGURATION: Final = "ingot"

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Webhook:
    """What was asked for. `endpoint` is None where the API can use the address that is listened on."""

    listen: Listen
    endpoint: Endpoint | None
    certs: Path | None
    client_ca: Path | None
    failure_policy: FailurePolicy
    namespace: str
    """The one namespace that the operator looks after; "" for all."""

    def tls(self, state: StateFolder) -> ServingTls:
        try:
            tls = ServingTls(lambda: self._certificate(state))
        except OSError as error:
            # Also ssl.SSLError: files that are there and hold something else.
            raise click.ClickException(
                f"the webhook's certificate in {self.certs or state.operator} cannot be used: {error}"
            ) from error
        if self.client_ca is not None:
            try:
                tls.let_in_only(self.client_ca)
            except OSError as error:
                raise click.ClickException(
                    f"--webhook-client-ca {self.client_ca} cannot be used: {error}"
                ) from error
        return tls

    def server(self, client: Client, hosts: Informer[BareMetalHost], tls: ServingTls) -> AdmissionServer:
        return AdmissionServer(Rules(client, hosts), host=self.listen.host, port=self.listen.port, tls=tls)

    def registration(self, client: Client, tls: ServingTls, port: int) -> Registration:
        wish = Wish(
            subjects=SUBJECTS,
            endpoint=self.endpoint or _url(self.listen.host, port),
            namespace=self.namespace,
            failure_policy=self.failure_policy,
        )
        # Operators that look after one namespace each have a configuration each.
        name = f"{CONFIGURATION}-{self.namespace}" if self.namespace else CONFIGURATION
        return Registration(client, name, wish, ca_bundle=lambda: tls.authority)

    def _certificate(self, state: StateFolder) -> Certificate:
        if self.certs is not None:
            return Certificate(self.certs / "tls.crt", self.certs / "tls.key", self.certs / "ca.crt")
        return Authority(state.ca).issue(state.operator, "webhook", self._names())

    def _names(self) -> list[str]:
        names = ["127.0.0.1", "localhost"]
        if not _is_everywhere(self.listen.host):
            names.append(self.listen.host)
        match self.endpoint:
            case Service(namespace=namespace, name=name):
                names += [f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local"]
            case str(url):
                names.append(urlsplit(url).hostname or "")
        return list(dict.fromkeys(names))


class _ServiceReference(click.ParamType[Service]):
    name = "NAMESPACE/NAME[:PORT]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Service:
        if isinstance(value, Service):
            return value
        place, _, port = str(value).partition(":")
        namespace, slash, name = place.partition("/")
        a_port = (port or "443").isdecimal() and 0 < int(port or 443) < 65536
        if not (slash and namespace and name and "/" not in name and a_port):
            self.fail(f"{value!r} is not {self.name}; for example metal/ingot-webhook", param, ctx)
        return Service(namespace=namespace, name=name, port=int(port or 443))


class _HttpsUrl(click.ParamType[str]):
    name = "URL"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _is_plain_https(str(value)):
            self.fail(f"{value!r} is not an https:// address without query and user", param, ctx)
        return str(value)


_OPTIONS: Final = (
    click.option(
        "--webhook-listen",
        type=AddressAndPort(),
        help="Serve admission rules here, and register them with the API. Off by default: the embedded API has them built in.",
    ),
    click.option(
        "--webhook-url",
        type=_HttpsUrl(),
        help="Where the API reaches it, if not at the address of --webhook-listen.",
    ),
    click.option(
        "--webhook-service", type=_ServiceReference(), help="The Service in front of it, in a cluster."
    ),
    click.option(
        "--webhook-certs",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="A folder with tls.crt, tls.key and ca.crt, as a Secret is mounted; several replicas need to share one. "
        "Without it, a certificate of this installation's own authority.",
    ),
    click.option(
        "--webhook-client-ca",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Answer only callers with a certificate of this authority.",
    ),
    click.option(
        "--webhook-failure-policy",
        type=click.Choice(["Fail", "Ignore"]),
        default="Fail",
        show_default=True,
        help="What the API does while nobody answers: refuse new objects and changes of specs, or let them pass.",
    ),
)


def webhook_options(command: Command) -> Command:
    """The options; `webhook_from` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def webhook_from(options: Mapping[str, Any]) -> Webhook | None:
    listen: Listen | None = options["webhook_listen"]
    url, service = options["webhook_url"], options["webhook_service"]
    if listen is None:
        if url or service:
            raise click.UsageError("--webhook-url and --webhook-service go with --webhook-listen")
        return None
    if url and service:
        raise click.UsageError("give --webhook-url or --webhook-service, not both")
    if not (url or service) and _is_everywhere(listen.host):
        raise click.UsageError(
            f"--webhook-listen {listen.host} is no address to call; say with --webhook-url or --webhook-service where the API "
            "reaches it"
        )
    return Webhook(
        listen,
        url or service,
        options["webhook_certs"],
        options["webhook_client_ca"],
        options["webhook_failure_policy"],
        options["namespace"],
    )


def _is_plain_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
        more = parts.query or parts.fragment or parts.username
        # The port is read when it is asked for.
        return parts.scheme == "https" and bool(parts.hostname) and parts.port != 0 and not more
    except ValueError:
        return False


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _url(host: str, port: int) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
