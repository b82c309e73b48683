"""`ingot release push`, `pull` and `mirror`: a payload on its way between folders and registries."""

from __future__ import annotations

import asyncio

import click
import msgspec

from ingot.cli.release.shown import (
    RegistryOptions,
    errors_as_sentences,
    human,
    output_option,
    print_json,
    registry_options,
    told_progress,
)


class CopyReport(msgspec.Struct, rename="camel", kw_only=True):
    """What `-o json` tells."""

    source: str
    target: str
    digest: str
    copied: int
    copied_bytes: int
    kept: int


@click.command()
@registry_options
@output_option
@click.argument("folder", metavar="FOLDER")
@click.argument("reference", metavar="REGISTRY/REPOSITORY:TAG")
def push(folder: str, reference: str, registry: RegistryOptions, output: str) -> None:
    """Copy a payload from a folder to a registry, with all its architectures; what is there is not sent again.

    \b
    ingot release push payload registry.example:5000/coreos/payload:44 --ca ca.crt
    """
    _copy(_folder(folder), _image(reference), registry, output)


@click.command()
@registry_options
@output_option
@click.argument("reference", metavar="REGISTRY/REPOSITORY[:TAG][@DIGEST]")
@click.argument("folder", metavar="FOLDER")
def pull(reference: str, folder: str, registry: RegistryOptions, output: str) -> None:
    """Copy a payload from a registry to a folder, with all its architectures, verified.

    Who serves the folder meanwhile goes on with the payload it had, and finds the new one when all of it is there. What is there
    and whole is not fetched again; an interrupted copy goes on where it ended.

    \b
    ingot release pull registry.example:5000/coreos/payload:44 payload
    """
    _copy(_image(reference), _folder(folder), registry, output)


@click.command()
@registry_options
@output_option
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
def mirror(source: str, target: str, registry: RegistryOptions, output: str) -> None:
    """Copy a payload from anywhere to anywhere: each of SOURCE and TARGET is a folder or an image in a registry.

    What begins with a registry (a name with a dot or a port) is an image there; anything else is a folder, and oci:FOLDER always
    is. The digest stays the same, and so does every byte; what is there already is not copied again.

    \b
    ingot release mirror quay.io/example/payload:44 /media/disk/payload
    ingot release mirror /media/disk/payload registry.inside:5000/coreos/payload:44
    """
    _copy(source, target, registry, output)


def _folder(text: str) -> str:
    """A folder, whatever its name looks like."""
    return f"oci:{text.removeprefix('oci:')}"


def _image(text: str) -> str:
    return f"docker://{text.removeprefix('docker://')}"


def _copy(source: str, target: str, registry: RegistryOptions, output: str) -> None:
    with errors_as_sentences():
        report = asyncio.run(_mirrored(source, target, registry))
    if output == "json":
        print_json(report)
        return
    kept = f", {report.kept} parts were there" if report.kept else ""
    copied = (
        f"{report.copied} parts copied ({human(report.copied_bytes)})" if report.copied else "nothing to copy"
    )
    click.echo(f"{report.target}: {report.digest}\n{copied}{kept}")


async def _mirrored(source: str, target: str, registry: RegistryOptions) -> CopyReport:
    from ingot.images.release.mirroring import mirror as mirror_image
    from ingot.images.release.places import place_of

    async with registry.session(source, target) as session:
        here, there = place_of(source, session), place_of(target, session)
        with told_progress() as tell:
            done = await mirror_image(here, there, tell)
    return CopyReport(
        source=str(here),
        target=str(there),
        digest=done.digest,
        copied=done.copied,
        copied_bytes=done.copied_bytes,
        kept=done.kept,
    )
