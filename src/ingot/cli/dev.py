"""`ingot dev`: what images are made of, for people who build or debug them. The output is coreos-installer's, to the byte.

Leaves out what coreos-installer has for its own disk images (osmet).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Final

import click

from ingot.cli.live.extents import extents_of
from ingot.cli.live.inputs import read_archive, read_image
from ingot.cli.live.words import WordedGroup
from ingot.formats import FormatError
from ingot.formats.coreos import Area, ArgumentArea, ArgumentAreas, LiveIso
from ingot.formats.initrd import chosen, list_names, read_members
from ingot.formats.iso9660 import Iso
from ingot.formats.iso9660.descriptors import Descriptor
from ingot.formats.iso9660.layout import BOOT, PRIMARY, SUPPLEMENTARY

_LARGEST_EXTRACT: Final = 2 << 30


@click.group(cls=WordedGroup)
def dev() -> None:
    """What images are made of."""


@dev.group()
def show() -> None:
    """Show what an image is made of."""


@show.command("iso")
@click.option("--ignition", is_flag=True, help="Where the Ignition area is.")
@click.option("--kargs", is_flag=True, help="Where the kernel argument areas are.")
@click.argument("image", metavar="ISO")
def show_iso(image: str, ignition: bool, kargs: bool) -> None:
    """Show the volume and the files of an ISO image, or one of the areas of a live image, as JSON."""
    if ignition and kargs:
        raise click.UsageError("the options --ignition and --kargs exclude each other")
    with read_image(image) as file:
        if ignition:
            described: object = _area(LiveIso(file).ignition_area)
        elif kargs:
            described = _arguments(LiveIso(file).argument_areas)
        else:
            described = _volume(Iso(file, plain_names=True))
    click.echo(json.dumps(described, indent=2, ensure_ascii=False))


@show.command("initrd")
@click.argument("image", metavar="INITRD")
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
def show_initrd(image: str, patterns: tuple[str, ...]) -> None:
    """List the files of an initial RAM disk; - is standard input."""
    with read_archive(None if image == "-" else image) as file:
        for name in list_names(file, _wanted(patterns)):
            click.echo(name)


@show.command("fiemap")
@click.argument("path", metavar="PATH")
def show_fiemap(path: str) -> None:
    """Show where the bytes of a file lie on its device, as JSON."""
    described = {"extents": [asdict(extent) for extent in extents_of(path)]}
    click.echo(json.dumps(described, indent=2))


@dev.group()
def extract() -> None:
    """Take an image apart."""


@extract.command("initrd")
@click.option("-C", "--directory", metavar="DIR", default=".", show_default=True, help="Where the files go.")
@click.option("-v", "--verbose", is_flag=True, help="Print the path of each file.")
@click.argument("image", metavar="INITRD")
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
def extract_initrd(image: str, patterns: tuple[str, ...], directory: str, verbose: bool) -> None:
    """Extract the files of an initial RAM disk; - is standard input."""
    with read_archive(None if image == "-" else image) as file:
        members = read_members(file, _wanted(patterns), limit=_LARGEST_EXTRACT)
    for path in members:
        if path.startswith("/") or ".." in PurePosixPath(path).parts:
            raise FormatError(f"path {path} contains path traversal")
    for path, content in members.items():
        target = Path(directory) / path
        if verbose:
            click.echo(f"{directory.rstrip('/')}/{path}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as made:
            made.write(content)


def _volume(iso: Iso) -> dict[str, object]:
    iso.check_complete()
    return {
        "header": {"descriptors": [_descriptor(descriptor) for descriptor in iso.descriptors]},
        "records": [entry.path.lstrip("/") for entry in iso.entries()],
    }


def _descriptor(descriptor: Descriptor) -> dict[str, object]:
    if descriptor.kind == BOOT:
        return {"type": "boot", "boot_system_id": descriptor.boot_system, "boot_id": descriptor.boot_id}
    if descriptor.kind == SUPPLEMENTARY:
        return {"type": "supplementary"}
    if descriptor.kind != PRIMARY:
        return {"type": "unknown", "type_id": descriptor.kind}
    root = descriptor.root
    return {
        "type": "primary",
        "system_id": descriptor.system,
        "volume_id": descriptor.label,
        "volume_space_size": descriptor.sectors,
        "root": {
            "name": ".",
            "address": int.from_bytes(root[2:6], "little"),
            "length": int.from_bytes(root[10:14], "little"),
        },
    }


def _arguments(areas: ArgumentAreas | None) -> dict[str, object] | None:
    if areas is None:
        return None
    places = [{**_area(area), **_filling(area)} for area in areas.areas]
    return {"length": areas.length, "default": areas.default, "kargs": places}


def _area(area: Area) -> dict[str, object]:
    return {"offset": area.offset, "length": area.length}


def _filling(area: ArgumentArea) -> dict[str, object]:
    known = {"pad": area.pad, "end": area.end_mark}
    return {name: value for name, value in known.items() if value is not None}


def _wanted(patterns: Sequence[str]) -> Callable[[str], bool]:
    return chosen(patterns or ["*"])
