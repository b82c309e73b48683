"""`ingot release unpack`: the files of a payload in a folder, for servers of files."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from ingot.cli.release.shown import errors_as_sentences, output_option, print_json, told_progress


class UnpackReport(msgspec.Struct, rename="camel", kw_only=True):
    """What `-o json` tells."""

    folder: str
    changed: bool
    key: str
    versions: dict[str, str]
    files: list[str]


@click.command()
@click.option(
    "-a",
    "--architecture",
    "architectures",
    metavar="ARCH",
    multiple=True,
    help="Only this one; may be repeated.  [default: all]",
)
@click.option(
    "--parts",
    type=click.Choice(["all", "iso", "pxe", "image-build"]),
    default="all",
    show_default=True,
    help="image-build: the ISO image and the initial RAM disk.",
)
@click.option(
    "-k",
    "--karg",
    "arguments",
    metavar="ARG",
    multiple=True,
    help="A kernel argument to append in the ISO images; may be repeated.",
)
@click.option(
    "--own-architecture",
    metavar="ARCH",
    help="Whose files are called ironic-python-agent.* without an architecture.  [default: this machine's]",
)
@output_option
@click.argument("payload", metavar="PAYLOAD")
@click.argument("target", metavar="TARGET")
def unpack(
    payload: str,
    target: str,
    architectures: tuple[str, ...],
    parts: str,
    arguments: tuple[str, ...],
    own_architecture: str | None,
    output: str,
) -> None:
    """Unpack a payload: ISO images, kernels, initial RAM disks and root file systems, also as ironic-python-agent*.

    PAYLOAD is a folder with a payload (or with its files, as they are in its container under /coreos). Doing it again does
    nothing where all is as it should be. A new release takes the place of the old one at once, when all of it is there.

    \b
    ingot release unpack payload /shared/html/images
    ingot release unpack payload images --parts pxe -a aarch64
    """
    from ingot.images.release.extracting import Kind, Parts
    from ingot.images.release.payload import Payload
    from ingot.images.release.tool import this_architecture
    from ingot.images.release.unpacking import Wish
    from ingot.images.release.unpacking import unpack as unpack_payload

    if arguments and Kind.ISO not in Parts(parts).kinds:
        raise click.UsageError(
            f"-k goes into the ISO images, and --parts {parts} has no ISO image; a boot loader has kernel arguments of its own"
        )
    wish = Wish(
        architectures=architectures,
        parts=Parts(parts),
        arguments=arguments,
        own_architecture=own_architecture or this_architecture(),
    )
    with errors_as_sentences(), told_progress() as tell:
        opened = Payload.open(Path(payload))
        if own_architecture:
            opened.image(
                own_architecture
            )  # one that is not there would have no names, and nobody would notice
        done = unpack_payload(opened, Path(target), wish, tell)
    names = sorted({*done.stamp.files, *done.stamp.links})
    if output == "json":
        print_json(
            UnpackReport(
                folder=target,
                changed=done.changed,
                key=done.stamp.key,
                versions=done.stamp.versions,
                files=names,
            )
        )
        return
    click.echo(
        f"{target}: unpacked" if done.changed else f"{target}: all is there already, and as it should be"
    )
    for name in names:
        click.echo(f"  {name}")
