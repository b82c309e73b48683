"""NetworkManager keyfiles on the way into an archive and out of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

import click

from ingot.formats import FormatError, UnsupportedFormat
from ingot.formats.coreos import NETWORK
from ingot.formats.initrd import Members


def embedded_keyfiles(paths: Iterable[str]) -> Members:
    """Keyfiles as members of an archive, each under its own name."""
    members: Members = {}
    for path in paths:
        name = Path(path).name
        if f"{NETWORK}/{name}" in members:
            raise FormatError(f"multiple input files named '{name}'")
        members[f"{NETWORK}/{name}"] = Path(path).read_bytes()
    return members


def show_keyfiles(members: Mapping[str, bytes], directory: str | None) -> None:
    """Print the keyfiles, or write them to a directory and print where."""
    if not members:
        raise UnsupportedFormat("No embedded network settings.")
    # The archive may come from anywhere: only the last part of a path becomes a file's name.
    files = {PurePosixPath(path).name: content for path, content in members.items()}
    if directory is not None:
        _write(files, Path(directory))
        return
    for number, (name, content) in enumerate(files.items()):
        click.echo(("\n" if number else "") + f"########## {name} ##########")
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()


def _write(files: Mapping[str, bytes], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if name in ("", ".", ".."):
            raise FormatError(f"the archive has a keyfile named {name!r}, which is no name for a file")
        with (folder / name).open("xb") as file:
            file.write(content)
        click.echo(str(folder / name))
