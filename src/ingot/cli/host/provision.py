"""`ingot host provision NAME`: have an image installed, with what its first boot reads.

User data and the like come from files and become Secrets of the host's namespace, named after the host and owned by it, so
that they go when it goes. They are never printed, and never on the command line.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

import click

from ingot.cli.parts.errands import (
    Errand,
    Preparation,
    Refusal,
    errand_options,
    must_not_be_used,
    must_stay,
    run_errand,
)
from ingot.cli.parts.following import well

if TYPE_CHECKING:
    from ingot.api.baremetalhost import BareMetalHost
    from ingot.kube import Client

Command = TypeVar("Command", bound=Callable[..., Any])

DATA: Final = {"userData": "user-data", "networkData": "network-data", "metaData": "metadata"}
"""By field of the spec, which is also the key in the Secret: how the Secret's name ends."""


def _file(option: str, what: str) -> Callable[[Command], Command]:
    return click.option(
        option,
        type=click.File("rb"),
        metavar="FILE",
        help=f"{what}; - for standard input. It becomes a Secret that belongs to the host.",
    )


@click.command()
@click.option("--image", metavar="URL", help="What to install: http, https, oci.")
@click.option("--checksum", metavar="SUM|URL", default="", help="Its checksum, or where that is.")
@click.option("--checksum-type", type=click.Choice(["md5", "sha256", "sha512", "auto"]))
@click.option("--format", type=click.Choice(["raw", "qcow2", "vdi", "vmdk", "live-iso", "coreos"]))
@click.option(
    "--coreos",
    is_flag=True,
    help="CoreOS, as the ramdisk brings it, or the --image. Short for --format coreos.",
)
@_file("--ignition", "What CoreOS reads at its first boot, checked before it is sent")
@click.option("--custom-deploy", metavar="METHOD", help="Install by this deploy step: install_coreos.")
@_file("--user-data", "What the system reads at its first boot: cloud-init or Ignition")
@_file("--network-data", "The network of the system: network_data.json; for CoreOS also nmstate")
@_file("--metadata", "Additional metadata of the first boot")
@click.option("--replace", is_flag=True, help="Remove what runs there now, and clean the disks.")
@click.option("--force", is_flag=True, help="Although something uses the host (spec.consumerRef).")
@errand_options
def provision(
    image: str | None,
    checksum: str,
    checksum_type: str | None,
    format: str | None,
    coreos: bool,
    ignition: IO[bytes] | None,
    custom_deploy: str | None,
    user_data: IO[bytes] | None,
    network_data: IO[bytes] | None,
    metadata: IO[bytes] | None,
    replace: bool,
    force: bool,
    **options: Any,
) -> None:
    """Have an image installed on a host, and switch it on.

    \b
    ingot host provision h17 --image https://images.example/debian-12.qcow2 \\
      --checksum https://images.example/debian-12.qcow2.sha256 --format qcow2 --user-data cloud-init.yaml --wait
    ingot host provision h17 --coreos --ignition worker.ign --wait
    """
    if coreos and format not in (None, "coreos"):
        raise click.UsageError(f"--coreos installs CoreOS, and --format says {format}: choose one")
    format = "coreos" if coreos else format
    if ignition is not None and user_data is not None:
        raise click.UsageError(
            "--ignition is the user data of CoreOS: give one of --ignition and --user-data"
        )
    wish: dict[str, Any] = {}
    if image is not None or format == "coreos":
        picture = {"url": image or "", "checksum": checksum, "checksumType": checksum_type, "format": format}
        wish["image"] = {name: value for name, value in picture.items() if value or name == "url"}
    elif checksum or checksum_type or format:
        raise click.UsageError(
            "--checksum, --checksum-type and --format belong to an image: say which one with --image"
        )
    if custom_deploy:
        wish["customDeploy"] = {"method": custom_deploy}
    if not wish:
        raise click.UsageError("say what to install: --image URL, --coreos, or --custom-deploy METHOD")
    files = {"userData": ignition or user_data, "networkData": network_data, "metaData": metadata}
    data = {field: file.read() for field, file in files.items() if file is not None}
    is_coreos = custom_deploy == "install_coreos" or (format == "coreos" and not custom_deploy)
    if is_coreos:
        _must_be_ignition(data.get("userData", b""))
    elif ignition is not None:
        raise click.UsageError("only CoreOS reads --ignition: add --coreos, or give --user-data")
    _must_be_a_network(data.get("networkData", b""), for_coreos=is_coreos)
    run_errand(
        options,
        lambda host: installed(host, wish, data=data, replace=replace, force=force),
        prepare=_secrets(data) if data else None,
    )


def _must_be_ignition(content: bytes) -> None:
    """What Ignition itself would refuse, at a first boot that nobody watches, is refused here."""
    from ingot.formats import FormatError
    from ingot.formats.ignition import parse_ignition

    if not content.strip():
        return
    try:
        _, warnings = parse_ignition(content)
    except FormatError as error:
        raise click.UsageError(f"{error}. CoreOS is configured with Ignition, which is JSON") from error
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)


def _must_be_a_network(content: bytes, *, for_coreos: bool) -> None:
    """What the host would refuse before it is installed, is refused before it becomes a Secret."""
    from ingot.api.inputs.network_data import UnreadableNetworkData, parse
    from ingot.formats import FormatError
    from ingot.formats.network import keyfiles_of_secret

    if not content.strip():
        return
    try:
        if for_coreos:
            keyfiles_of_secret({"networkData": content})
        else:
            parse(content.decode())
    except FormatError as error:
        raise click.UsageError(f"--network-data cannot become the network of CoreOS: {error}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError("--network-data is not text") from error
    except UnreadableNetworkData as error:
        raise click.UsageError(f"--network-data {error}") from error


def installed(
    host: BareMetalHost,
    wish: Mapping[str, Any],
    *,
    data: Mapping[str, bytes],
    replace: bool = False,
    force: bool = False,
) -> Errand:
    from ingot.api.baremetalhost import State

    must_stay(host)
    must_not_be_used(host, force=force)
    spec: dict[str, Any] = {"image": None, "customDeploy": None, "online": True, **wish}
    spec |= {field: {"name": secret_name(host, field)} for field in data}
    _must_not_cost_what_runs(host, spec, replace=replace)
    _must_be_allowed(host, spec)
    return Errand(
        patch={"spec": spec},
        said="is to be provisioned",
        done=lambda found: well(found) and found.state is State.PROVISIONED and found.status.powered_on,
        end="is provisioned",
    )


def secret_name(host: BareMetalHost, field: str) -> str:
    return f"{host.metadata.name}-{DATA[field]}"


def _must_not_cost_what_runs(host: BareMetalHost, spec: Mapping[str, Any], *, replace: bool) -> None:
    import msgspec

    from ingot.api.baremetalhost import BareMetalHostSpec
    from ingot.api.installed import installed, wanted

    if host.spec.externally_provisioned:
        raise Refusal(
            f"{host.key} was installed by somebody else (spec.externallyProvisioned), and Ingot does not install it. Unset "
            "that first; the host then counts as provisioned."
        )
    there = installed(host.status)
    want = wanted(
        msgspec.convert({"image": spec["image"], "customDeploy": spec["customDeploy"]}, BareMetalHostSpec)
    )
    if there is not None and there.is_contradicted_by(want) and not replace:
        raise Refusal(
            f"{host.key} runs {there.image_url or there.deploy_method}. With --replace that is removed, its disks are cleaned, "
            "and the new one is installed."
        )


def _must_be_allowed(host: BareMetalHost, spec: Mapping[str, Any]) -> None:
    """What the API would refuse is refused before any Secret is written."""
    from ingot.api.admission import check
    from ingot.api.baremetalhost import BARE_METAL_HOSTS
    from ingot.api.wire import wire

    old = wire(host)
    new = old | {"spec": {name: value for name, value in (old["spec"] | spec).items() if value is not None}}
    if errors := check(BARE_METAL_HOSTS.group, BARE_METAL_HOSTS.kind, new, old):
        raise Refusal("\n".join(str(error) for error in errors))


def _secrets(data: Mapping[str, bytes]) -> Preparation:
    async def write(client: Client, host: BareMetalHost) -> None:
        from ingot.api.baremetalhost import BARE_METAL_HOSTS
        from ingot.api.core import SECRETS
        from ingot.kube import Contested

        owner = {
            "apiVersion": BARE_METAL_HOSTS.api_version,
            "kind": BARE_METAL_HOSTS.kind,
            "name": host.metadata.name,
            "uid": host.metadata.uid,
        }
        for field, content in data.items():
            name = secret_name(host, field)
            body = {
                "metadata": {"name": name, "ownerReferences": [owner]},
                "data": {field: base64.b64encode(content).decode()},
            }
            try:
                await client.apply(
                    SECRETS, body, namespace=host.metadata.namespace, field_manager="ingot-host"
                )
            except Contested as error:
                raise Refusal(
                    f"Secret {host.metadata.namespace}/{name} exists and was not made by this command. Remove it, or name it in "
                    f"spec.{field} yourself and leave out the file."
                ) from error

    return write
