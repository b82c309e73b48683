"""`ingot host add NAME`: describe a server and how to log in to its BMC.

The password is never on the command line, where everybody on the machine could read it. What the API would refuse is refused
before anything is written, and a Secret whose host could not be made is taken back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final

import click
import msgspec

from ingot.cli.parts.api_access import ApiAccess, access_from, api_options
from ingot.cli.parts.following import Failed, follow, sayer, state_and_why, wait_options, well, when
from ingot.cli.parts.sentences import errors_as_sentences
from ingot.trust import Secret

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost
    from ingot.api.meta import Key
    from ingot.kube import Client

PASSWORD: Final = "INGOT_BMC_PASSWORD"  # noqa: S105 - the name of an environment variable
USERNAME: Final = "INGOT_BMC_USERNAME"


@dataclass(frozen=True, slots=True)
class Login:
    """What the Secret is made of."""

    username: str
    password: Secret


@click.command()
@click.argument("name")
@click.option(
    "--address",
    required=True,
    metavar="URL",
    help="The BMC: redfish-virtualmedia://10.4.0.17/redfish/v1/Systems/1",
)
@click.option(
    "--username", envvar=USERNAME, show_envvar=True, help="The user at the BMC; asked for otherwise."
)
@click.option(
    "--password-file",
    type=click.File("r"),
    metavar="FILE",
    help=f"Its password; - for standard input. Also in the environment, as {PASSWORD}; asked for otherwise.",
)
@click.option(
    "--credentials", metavar="SECRET", help="A Secret that is there, instead of user name and password."
)
@click.option(
    "--mac", metavar="ADDRESS", help="The MAC address of the interface that the machine boots from."
)
@click.option("--boot-mode", type=click.Choice(["UEFI", "UEFISecureBoot", "legacy"]))
@click.option("--inspection", type=click.Choice(["agent", "fast", "disabled"]), help="How to inspect it.")
@click.option("--root-device", metavar="/dev/…", help="The disk to install on.")
@click.option("--description", help="A note for people.")
@click.option("--label", "labels", metavar="KEY=VALUE", multiple=True, help="May be given several times.")
@click.option("--offline", is_flag=True, help="The machine is to be off.")
@click.option(
    "--externally-provisioned", is_flag=True, help="Somebody else installed it; only its power is managed."
)
@click.option("--any-certificate", is_flag=True, help="Accept any certificate of the BMC.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@wait_options()
@api_options
def add(name: str, wait: bool, timeout: float | None, output: str, **options: Any) -> None:
    """Add a host: it is registered, inspected and kept available.

    \b
    ingot host add h17 --address redfish-virtualmedia://10.4.0.17/redfish/v1/Systems/1 --username admin
    pass show bmc/h17 | ingot host add h17 --address redfish://10.4.0.17 --username admin --password-file - --wait
    """
    with errors_as_sentences():
        spec, labels = spec_from(name, options), labels_from(options["labels"])
        must_be_allowed(name, spec)
        login = None if options["credentials"] else _login(options["username"], options["password_file"])
        key, host, verdict = asyncio.run(
            _add(
                access_from(options),
                name,
                labels,
                spec,
                login,
                say=sayer(output),
                timeout=timeout if wait else 0,
            )
        )
    if output == "json":
        from ingot.cli.parts.host_report import report_on

        click.echo(msgspec.json.format(msgspec.json.encode(report_on(host))))
    if verdict is not None:
        raise click.ClickException(f"{key}: {verdict.why}")


def spec_from(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The host that was described on the command line."""
    wish = {
        "bootMACAddress": options["mac"],
        "bootMode": options["boot_mode"],
        "inspectionMode": options["inspection"],
        "rootDeviceHints": {"deviceName": options["root_device"]} if options["root_device"] else None,
        "description": options["description"],
        "externallyProvisioned": options["externally_provisioned"],
    }
    bmc = {
        "address": options["address"],
        "credentialsName": options["credentials"] or f"{name}-bmc",
    } | ({"disableCertificateVerification": True} if options["any_certificate"] else {})
    chosen = {field: value for field, value in wish.items() if value}
    return {"online": not options["offline"], "bmc": bmc} | chosen


def labels_from(pairs: tuple[str, ...]) -> dict[str, str]:
    for pair in pairs:
        if "=" not in pair:
            raise click.BadParameter(f"{pair!r}: write a label as KEY=VALUE.", param_hint="--label")
    return dict(pair.split("=", 1) for pair in pairs)


def must_be_allowed(name: str, spec: Mapping[str, Any]) -> None:
    """What the API would refuse."""
    from ingot.api.admission import check
    from ingot.api.baremetalhost import BARE_METAL_HOSTS

    body = {"metadata": {"name": name}, "spec": spec}
    if errors := check(BARE_METAL_HOSTS.group, BARE_METAL_HOSTS.kind, body, None):
        raise click.ClickException("\n".join(str(error) for error in errors))


def _login(username: str | None, file: IO[str] | None) -> Login:
    asks = sys.stdin.isatty()
    if not username:
        if not asks:
            raise click.UsageError(f"who logs in to the BMC? Say it with --username or {USERNAME}.")
        username = click.prompt("User at the BMC", err=True)
    if file is not None:
        # One line end comes from whoever wrote the file; all others belong to the password.
        password = file.read().removesuffix("\n").removesuffix("\r")
    elif not (password := os.environ.get(PASSWORD, "")):
        if not asks:
            raise click.UsageError(
                f"the password is missing: --password-file FILE (- for standard input), or {PASSWORD}."
            )
        password = click.prompt("Its password", hide_input=True, err=True)
    if not password:
        raise click.UsageError("the password is empty.")
    return Login(username, Secret(password))


async def _add(
    api: ApiAccess,
    name: str,
    labels: Mapping[str, str],
    spec: Mapping[str, Any],
    login: Login | None,
    *,
    say: Callable[[str], None],
    timeout: float | None,
) -> tuple[Key, BareMetalHost, Failed | None]:
    """The host, and why it did not arrive where somebody waited. A timeout of 0: nobody waits."""
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.api.meta import Key
    from ingot.cli.parts.progress import goal_of

    async with api.client() as client:
        key = Key(api.namespace_for(client), name)
        host = await _create(client, key, {"metadata": {"name": name, "labels": labels}, "spec": spec}, login)
        say(f"{key} was added")
        if timeout == 0:
            return key, host, None
        judge = when(
            lambda found: well(found) and found.status.provisioning.state == goal_of(found),
            noticed=lambda found: True,
        )
        verdict = await follow(client, host, judge, timeout=timeout, tell=state_and_why, say=say)
        if isinstance(verdict, Failed):
            return key, host, verdict
        host = await client.get(BARE_METAL_HOSTS, key)
        say(f"{key} is {host.status.provisioning.state}")
        return key, host, None


async def _create(client: Client, key: Key, body: Mapping[str, Any], login: Login | None) -> BareMetalHost:
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.api.core import SECRETS
    from ingot.api.meta import Key
    from ingot.kube import AlreadyExists, KubeError, NotFound

    with contextlib.suppress(NotFound):
        await client.get(BARE_METAL_HOSTS, key)
        raise click.ClickException(f"{key} exists already. To see it: ingot host show {key.name}.")
    if login is None:
        return await client.create(BARE_METAL_HOSTS, body, namespace=key.namespace)
    secret = f"{key.name}-bmc"
    data = {"username": login.username, "password": login.password.reveal()}
    try:
        made = await client.create(
            SECRETS, {"metadata": {"name": secret}, "stringData": data}, namespace=key.namespace
        )
    except AlreadyExists as error:
        raise click.ClickException(
            f"Secret {key.namespace}/{secret} exists already, and is not overwritten. Use it with --credentials {secret}, or "
            "remove it."
        ) from error
    try:
        return await client.create(BARE_METAL_HOSTS, body, namespace=key.namespace)
    except KubeError:
        with contextlib.suppress(KubeError):
            await client.delete(SECRETS, Key(key.namespace, secret), uid=made.metadata.uid)
        raise
