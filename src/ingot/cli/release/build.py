"""`ingot release build`: a release payload out of ISO images, in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from ingot.cli.release.shown import errors_as_sentences, output_option, pairs, print_json

if TYPE_CHECKING:
    from ingot.images.release.assembling import LayerFile
    from ingot.images.release.building import Ingredients, StreamFile


class BuildReport(msgspec.Struct, rename="camel", kw_only=True):
    """What `-o json` tells."""

    folder: str
    digest: str
    architectures: list[str]
    with_tool: list[str]


@dataclass(frozen=True, slots=True)
class _Options:
    hashes: Mapping[str, str]
    tools: Mapping[str, str]
    installers: Mapping[str, str]
    base: str | None
    without_tool: bool


@click.command()
@click.option(
    "--stream",
    metavar="FILE",
    help="The stream metadata: the hashes to check, and part of the payload.  [default: coreos-stream.json beside the first ISO]",
)
@click.option(
    "--sha256",
    "hashes",
    metavar="ARCH=HEX",
    multiple=True,
    help="The hash of an ISO image, where there is no stream metadata.  [default: from ISO.sha256]",
)
@click.option("--base", metavar="FOLDER", help="An image to build upon, with Python, as an OCI layout.")
@click.option(
    "--tool",
    "tools",
    metavar="ARCH=FOLDER",
    multiple=True,
    help="Our tool for another architecture: what `pip install --target FOLDER` made.",
)
@click.option(
    "--coreos-installer",
    "installers",
    metavar="ARCH=FILE",
    multiple=True,
    help="The real coreos-installer, to be put in under its name.",
)
@click.option("--no-tool", "without_tool", is_flag=True, help="Only the ISO images.")
@output_option
@click.argument("folder", metavar="FOLDER")
@click.argument("isos", metavar="[ARCH=]ISO...", nargs=-1, required=True)
def build(
    folder: str,
    isos: tuple[str, ...],
    stream: str | None,
    hashes: tuple[str, ...],
    base: str | None,
    tools: tuple[str, ...],
    installers: tuple[str, ...],
    without_tool: bool,
    output: str,
) -> None:
    """Build a release payload out of live ISO images, as an OCI layout in FOLDER.

    The hash of every ISO image is checked, against the stream metadata, against --sha256, or against the file ISO.sha256
    beside it. With the stream metadata, the architecture of an ISO image is known by its hash. The same input makes the same
    digest.

    \b
    ingot release build payload images/*.iso
    ingot release build payload x86_64=rhcos.iso --sha256 x86_64=9f86d081884c7d65…
    """
    from ingot.images.release.building import build as build_payload
    from ingot.images.release.layout import Layout

    options = _Options(
        pairs(hashes, "--sha256"),
        pairs(tools, "--tool"),
        pairs(installers, "--coreos-installer"),
        base,
        without_tool,
    )
    with errors_as_sentences():
        described = _stream(stream, isos[0])
        found = _named(isos, described)
        for option, given in (
            ("--sha256", options.hashes),
            ("--tool", options.tools),
            ("--coreos-installer", options.installers),
        ):
            for architecture in given.keys() - found.keys():
                raise click.UsageError(
                    f"{option} is given for {architecture}, of which there is no ISO image"
                )
        ingredients = {
            architecture: _ingredients(architecture, iso, described, options)
            for architecture, iso in found.items()
        }
        root = build_payload(Layout(Path(folder)), ingredients, described, _say)
    with_tool = sorted(name for name, one in ingredients.items() if one.has_tool)
    if output == "json":
        print_json(
            BuildReport(folder=folder, digest=root.digest, architectures=sorted(found), with_tool=with_tool)
        )
        return
    for architecture in sorted(found.keys() - set(with_tool)) if not without_tool else ():
        click.echo(f"{architecture}: without our tool; give it with --tool {architecture}=FOLDER", err=True)
    click.echo(root.digest)


def _stream(named: str | None, first: str) -> StreamFile | None:
    """The stream metadata that is named, else what `ingot release fetch` leaves beside the ISO images."""
    from ingot.images.release.building import STREAM_FILE, StreamFile

    beside = _apart(first)[1].with_name(STREAM_FILE)
    if named is None and not beside.is_file():
        return None
    return StreamFile((Path(named) if named else beside).read_bytes())


def _named(isos: tuple[str, ...], stream: StreamFile | None) -> dict[str, Path]:
    """The ISO images by architecture: as it is said, else by their hashes in the stream metadata."""
    found: dict[str, Path] = {}
    for text in isos:
        said, path = _apart(text)
        architecture = said or _recognized(path, stream)
        if architecture in found:
            raise click.UsageError(f"{found[architecture]} and {path} are both for {architecture}")
        found[architecture] = path
    return found


def _recognized(iso: Path, stream: StreamFile | None) -> str:
    from ingot.images.release.building import sha256_of

    if stream is None:
        raise click.UsageError(f"{iso}: say for which architecture it is (x86_64={iso}), or give --stream")
    _say(f"{iso}: reading, to know its architecture by its hash")
    sha256 = sha256_of(iso)
    known = stream.architecture_of(sha256)
    if known is None:
        raise click.ClickException(
            f"{iso} has the sha256 {sha256}, which no ISO image of the stream {stream.stream.name} has. It is damaged, or of "
            "another release"
        )
    return known


def _apart(text: str) -> tuple[str | None, Path]:
    """`[ARCH=]ISO`; a path may have an equals sign of its own."""
    architecture, equals, rest = text.partition("=")
    return (architecture, Path(rest)) if equals and "/" not in architecture else (None, Path(text))


def _ingredients(architecture: str, iso: Path, stream: StreamFile | None, options: _Options) -> Ingredients:
    from ingot.images.release.assembling import base_image
    from ingot.images.release.building import Ingredients
    from ingot.images.release.layout import Layout

    return Ingredients(
        iso=iso,
        sha256=_sha256(architecture, iso, stream, options.hashes),
        tool=list(_tool(architecture, options)),
        base=base_image(Layout(Path(options.base)), architecture) if options.base else None,
    )


def _sha256(architecture: str, iso: Path, stream: StreamFile | None, hashes: Mapping[str, str]) -> str:
    """What the ISO image must be, by all who say something about it."""
    said = hashes.get(architecture, "").lower()
    if stream is not None:
        published = stream.iso_sha256(architecture)
        if said not in ("", published):
            raise click.UsageError(
                f"--sha256 for {architecture} is not what the stream metadata says ({published})"
            )
        return published
    beside = iso.with_name(f"{iso.name}.sha256")
    if not said and beside.is_file():
        said = (beside.read_text().split() or [""])[0].lower()
    if len(said) != 64 or set(said) - set("0123456789abcdef"):
        raise click.UsageError(
            f"{iso}: nobody says what its sha256 must be. Give --stream, --sha256 {architecture}=HEX, or a file {beside.name} "
            "beside it"
        )
    return said


def _tool(architecture: str, options: _Options) -> list[LayerFile]:
    from ingot.images.release import tool

    installer = Path(options.installers[architecture]) if architecture in options.installers else None
    if options.without_tool:
        return [tool.installer_file(installer)] if installer else []
    if architecture in options.tools:
        return [*tool.launchers(installer), *tool.given_tool(Path(options.tools[architecture]))]
    if architecture == tool.this_architecture():
        return [*tool.launchers(installer), *tool.running_tool()]
    return [tool.installer_file(installer)] if installer else []


def _say(text: str) -> None:
    click.echo(text, err=True)
