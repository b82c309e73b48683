"""`ingot pxe`: initial RAM disks for booting CoreOS live systems over the network, with coreos-installer's verbs and options."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import click

from ingot.cli.live.customize_options import customization, customize_options, tell
from ingot.cli.live.inputs import read_archive, read_image
from ingot.cli.live.keyfiles import embedded_keyfiles, show_keyfiles
from ingot.cli.live.outputs import (
    binary_output,
    copy_range,
    new_file,
    replace_file,
    scratch_file,
    size_of,
    stream,
)
from ingot.cli.live.words import WordedGroup
from ingot.formats import UnsupportedFormat
from ingot.formats.coreos import IGNITION, NETWORK, Features, customized, network_of, parse_features
from ingot.formats.coreos.features import IN_INITRD
from ingot.formats.initrd import Members, chosen, pack, read_members

_STAMP: Final = "etc/coreos-live-initramfs"
_TELLING: Final = (_STAMP, IN_INITRD, IGNITION, f"{NETWORK}/*")


@click.group(cls=WordedGroup)
def pxe() -> None:
    """Make and read initial RAM disks for live systems."""


@pxe.group()
def ignition() -> None:
    """The Ignition config of the live system."""


@ignition.command("wrap")
@click.option(
    "-i", "--ignition-file", "config", metavar="FILE", help="The Ignition config. Default: standard input."
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
def wrap_ignition(config: str | None, output: str | None) -> None:
    """Wrap an Ignition config in an initial RAM disk, to be loaded beside that of the live system."""
    out = binary_output() if output is None else None
    content = Path(config).read_bytes() if config else sys.stdin.buffer.read()
    _write({IGNITION: content}, output, out)


@ignition.command("unwrap")
@click.argument("image", metavar="[INITRD]", required=False)
def unwrap_ignition(image: str | None) -> None:
    """Print the Ignition config that an initial RAM disk holds."""
    with read_archive(image) as file:
        content = read_members(file, chosen([IGNITION])).get(IGNITION)
    if content is None:
        raise UnsupportedFormat("couldn't find Ignition config in archive")
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


@pxe.group()
def network() -> None:
    """The network settings of the live system."""


@network.command("wrap")
@click.option(
    "-k",
    "--keyfile",
    "keyfiles",
    metavar="FILE",
    multiple=True,
    required=True,
    help="A NetworkManager keyfile.",
)
@click.option("-o", "--output", metavar="FILE", help="Write to a file instead of standard output.")
def wrap_network(keyfiles: tuple[str, ...], output: str | None) -> None:
    """Wrap NetworkManager keyfiles in an initial RAM disk."""
    out = binary_output() if output is None else None
    _write(embedded_keyfiles(keyfiles), output, out)


@network.command("unwrap")
@click.option("-C", "--directory", metavar="DIR", help="Write files here instead of printing them.")
@click.argument("image", metavar="[INITRD]", required=False)
def unwrap_network(image: str | None, directory: str | None) -> None:
    """Print the keyfiles that an initial RAM disk holds, or write them to a directory."""
    with read_archive(image) as file:
        members = read_members(file, chosen([f"{NETWORK}/*"]))
    show_keyfiles(network_of(members), directory)


@pxe.command()
@customize_options
@click.option(
    "-o", "--output", metavar="FILE", required=True, help="Write to a new file; - is standard output."
)
@click.argument("image", metavar="INITRD")
def customize(image: str, output: str, **options: Any) -> None:
    """Customize the live system, and what its installer does: the initial RAM disk with an archive behind it."""
    wanted = customization(options)
    out = binary_output() if output == "-" else None
    with _twice(image) as file:
        members, notes = customized(wanted, _features(read_members(file, chosen(_TELLING))))
        if IGNITION in members:
            notes.append("The kernel arguments must have: ignition.firstboot ignition.platform.id=metal")
        tell(notes)
        archive = pack(members) if members else b""
        if out is not None:
            stream(file, [], out)
            out.write(archive)
            out.flush()
            return
        with new_file(output) as made:
            copy_range(file, made.fileno(), 0, size_of(file))
            made.seek(0, os.SEEK_END)
            made.write(archive)


@contextmanager
def _twice(image: str) -> Iterator[BinaryIO]:
    """A file that can be read a second time, also where the image comes out of a pipe."""
    with read_image(image) as file:
        if file.seekable():
            yield file
            return
        with scratch_file() as copy:
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            yield copy


def _features(members: Members) -> Features:
    """What a live system's initial RAM disk can do; refuses any other, and one that is customized."""
    if _STAMP not in members:
        raise UnsupportedFormat("not a CoreOS live initramfs image")
    if IGNITION in members or network_of(members):
        raise UnsupportedFormat("input is already customized")
    return parse_features(members.get(IN_INITRD))


def _write(members: Members, output: str | None, out: BinaryIO | None) -> None:
    packed = pack(members)
    if output is not None:
        replace_file(output, packed)
    elif out is not None:
        out.write(packed)
        out.flush()
