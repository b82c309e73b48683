"""`ingot lab manifests`: the servers as Kubernetes objects."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click
import yaml

from ingot.cli.parts.sentences import errors_as_sentences
from ingot.cli.parts.state import StateFolder, state_option
from ingot.lab import labfile
from ingot.lab.manifests import manifests as lab_manifests

_FORMATS = ("raw", "qcow2", "live-iso", "coreos")


@click.command()
@click.argument("names", nargs=-1)
@state_option
@click.option("--count", type=click.IntRange(0), help="No more than so many servers.")
@click.option("--namespace", default="default", show_default=True, help="The namespace of the objects.")
@click.option(
    "--provision", default=0, show_default=True, type=click.IntRange(0), help="How many servers get an image."
)
@click.option("--format", "image_format", default="qcow2", show_default=True, type=click.Choice(_FORMATS))
@click.option("--image", "image_url", help="URL of the image, instead of the lab's sample.")
@click.option("--checksum", default="", help="SHA-256 of that image.")
@click.option(
    "--user-data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="User data for servers that get an image, instead of the sample's.",
)
@click.option("--offline", is_flag=True, help="The servers stay switched off.")
def manifests(
    names: tuple[str, ...],
    state: StateFolder,
    count: int | None,
    namespace: str,
    provision: int,
    image_format: str,
    image_url: str | None,
    checksum: str,
    user_data: Path | None,
    offline: bool,
) -> None:
    """Print the servers as Secrets and BareMetalHosts, ready for `kubectl apply -f -`.

    NAMES are patterns like 'server-1*'; without any, all servers are printed.
    """
    if image_url is None and checksum:
        raise click.UsageError("--checksum is of an image that --image names.")
    if image_url is not None and not checksum and image_format != "live-iso":
        raise click.UsageError(f"an image of format {image_format} needs its --checksum.")
    image = {"url": image_url, "format": image_format} if image_url else None
    if image is not None and checksum:
        image |= {"checksum": checksum, "checksumType": "sha256"}
    with errors_as_sentences():
        objects = lab_manifests(
            labfile.load(state.path),
            names=names or ("*",),
            count=count,
            namespace=namespace,
            provision=provision,
            image=image,
            image_format=image_format,
            user_data=user_data.read_text() if user_data else "",
            online=not offline,
        )
    if not objects and names:
        raise click.ClickException(f"the lab has no server that fits {' or '.join(names)}")
    with contextlib.suppress(BrokenPipeError):
        click.echo(yaml.safe_dump_all(objects, sort_keys=False), nl=False)
