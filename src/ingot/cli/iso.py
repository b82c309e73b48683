"""`ingot iso`: look into a CoreOS live ISO image and change what is embedded in it.

The verbs, options, output modes, exit codes and the greppable parts of the messages are coreos-installer's, so that a script
written for it runs with ours. What an image is and what may be changed in it is `formats.coreos`; writing is `live.outputs`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ingot.cli.live.customize_options import customization, customize_options, tell
from ingot.cli.live.inputs import read_image
from ingot.cli.live.keyfiles import embedded_keyfiles, show_keyfiles
from ingot.cli.live.outputs import (
    binary_output,
    change_image,
    check_free,
    copy_range,
    new_file,
    scratch_file,
    stream,
    write_patches,
)
from ingot.cli.live.words import OnceCommand, WordedGroup
from ingot.formats import UnsupportedFormat
from ingot.formats.coreos import (
    IGNITION,
    ROOTFS,
    ArgumentChanges,
    LiveIso,
    Patch,
    customized,
    minimal_changes,
    network_of,
    recipe_of,
)
from ingot.formats.iso9660 import Iso

_PXE: Final = "IMAGES/PXEBOOT"

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(cls=WordedGroup)
def iso() -> None:
    """Look into CoreOS live ISO images and change what is embedded in them."""


def _image(command: Command) -> Command:
    return click.argument("image", metavar="ISO")(command)


def _output(command: Command) -> Command:
    return click.option("-o", "--output", metavar="FILE", help="Write to a new file; - is standard output.")(
        command
    )


def _force(what: str) -> Callable[[Command], Command]:
    return click.option("-f", "--force", is_flag=True, help=f"Replace {what} that the image has.")


def _config(*names: str) -> Callable[[Command], Command]:
    return click.option(
        *names, "config", metavar="FILE", help="The Ignition config. Default: standard input."
    )


@iso.group()
def ignition() -> None:
    """The Ignition config of the live system."""


@ignition.command("embed")
@_force("an Ignition config")
@click.option(
    "-i", "--ignition-file", "config", metavar="FILE", help="The Ignition config. Default: standard input."
)
@_output
@_image
def embed_ignition(image: str, output: str | None, force: bool, config: str | None) -> None:
    """Embed an Ignition config."""
    content = Path(config).read_bytes() if config else sys.stdin.buffer.read()

    def embedding(live: LiveIso) -> list[Patch]:
        if live.ignition is not None and not force:
            raise UnsupportedFormat(
                "This ISO image already has an embedded Ignition config; use -f to force."
            )
        return live.embedding({**live.embedded, IGNITION: content})

    change_image(image, output, embedding)


@ignition.command("show")
@_image
def show_ignition(image: str) -> None:
    """Print the embedded Ignition config."""
    with read_image(image) as file:
        content = LiveIso(file).ignition
    if content is None:
        raise UnsupportedFormat("No embedded Ignition config.")
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


@ignition.command("remove")
@_output
@_image
def remove_ignition(image: str, output: str | None) -> None:
    """Remove the embedded Ignition config."""

    def removing(live: LiveIso) -> list[Patch]:
        return live.embedding({path: data for path, data in live.embedded.items() if path != IGNITION})

    change_image(image, output, removing)


@iso.group()
def network() -> None:
    """The network settings of the live system."""


@network.command("embed")
@click.option(
    "-k",
    "--keyfile",
    "keyfiles",
    metavar="FILE",
    multiple=True,
    required=True,
    help="A NetworkManager keyfile.",
)
@_force("network settings")
@_output
@_image
def embed_network(image: str, output: str | None, force: bool, keyfiles: tuple[str, ...]) -> None:
    """Embed NetworkManager keyfiles instead of those that are there."""
    settings = embedded_keyfiles(keyfiles)

    def embedding(live: LiveIso) -> list[Patch]:
        live.features.check_network()
        if live.network and not force:
            raise UnsupportedFormat("This ISO image already has embedded network settings; use -f to force.")
        return live.embedding({**_without_network(live), **settings})

    change_image(image, output, embedding)


@network.command("extract")
@click.option("-C", "--directory", metavar="DIR", help="Write files here instead of printing them.")
@_image
def extract_network(image: str, directory: str | None) -> None:
    """Print the embedded keyfiles, or write them to a directory."""
    with read_image(image) as file:
        settings = LiveIso(file).network
    show_keyfiles(settings, directory)


@network.command("remove")
@_output
@_image
def remove_network(image: str, output: str | None) -> None:
    """Remove the embedded network settings."""
    change_image(image, output, lambda live: live.embedding(_without_network(live)))


def _without_network(live: LiveIso) -> dict[str, bytes]:
    return {path: data for path, data in live.embedded.items() if path not in network_of(live.embedded)}


@iso.group()
def kargs() -> None:
    """The kernel arguments of the live system."""


@kargs.command("modify")
@click.option("-a", "--append", metavar="ARG", multiple=True, help="Append a kernel argument.")
@click.option("-d", "--delete", metavar="ARG", multiple=True, help="Delete a kernel argument.")
@click.option(
    "-r", "--replace", metavar="KEY=OLD=NEW", multiple=True, help="Replace the value of an argument."
)
@_output
@_image
def modify_kargs(
    image: str, output: str | None, append: tuple[str, ...], delete: tuple[str, ...], replace: tuple[str, ...]
) -> None:
    """Change kernel arguments."""
    changes = ArgumentChanges(append=append, delete=delete, replace=replace)
    change_image(image, output, lambda live: live.arguing(changes.applied_to(live.arguments)))


@kargs.command("reset")
@_output
@_image
def reset_kargs(image: str, output: str | None) -> None:
    """Restore the kernel arguments that the image was published with."""
    change_image(image, output, lambda live: live.arguing(live.default_arguments))


@kargs.command("show")
@click.option("-d", "--default", is_flag=True, help="Those that the image was published with.")
@_image
def show_kargs(image: str, default: bool) -> None:
    """Print the kernel arguments."""
    with read_image(image) as file:
        live = LiveIso(file)
        click.echo(live.default_arguments if default else live.arguments)


@iso.command()
@customize_options
@click.option(
    "--live-karg-append", metavar="ARG", multiple=True, help="Append to the live system's kernel arguments."
)
@click.option(
    "--live-karg-delete", metavar="ARG", multiple=True, help="Delete from the live system's kernel arguments."
)
@click.option(
    "--live-karg-replace",
    metavar="KEY=OLD=NEW",
    multiple=True,
    help="Replace a live system's kernel argument.",
)
@_force("customizations")
@_output
@_image
def customize(
    image: str,
    output: str | None,
    force: bool,
    live_karg_append: tuple[str, ...],
    live_karg_delete: tuple[str, ...],
    live_karg_replace: tuple[str, ...],
    **options: Any,
) -> None:
    """Customize the live system, and what its installer does."""
    wanted = customization(options)
    arguments = ArgumentChanges(append=live_karg_append, delete=live_karg_delete, replace=live_karg_replace)

    def customizing(live: LiveIso) -> list[Patch]:
        if not force and live.customized:
            raise UnsupportedFormat("This ISO image is already customized; use -f to force.")
        members, notes = customized(wanted, live.features)
        patches = live.embedding(members)
        if arguments:
            if live.argument_areas is None:
                raise UnsupportedFormat("This OS image does not support customizing live kernel arguments.")
            patches += live.arguing(arguments.applied_to(live.default_arguments))
        tell(notes)
        return patches

    change_image(image, output, customizing)


@iso.command()
@_output
@_image
def reset(image: str, output: str | None) -> None:
    """Restore the image as it was published."""
    change_image(image, output, LiveIso.reset)


@iso.group()
def extract() -> None:
    """Take files out of the image."""


@extract.command()
@click.option(
    "-o", "--output-dir", metavar="DIR", default=".", show_default=True, help="Where the files are written."
)
@_image
def pxe(image: str, output_dir: str) -> None:
    """Extract kernel, initial RAM disk and root file system for booting over the network."""
    with read_image(image) as file:
        opened = Iso(file, plain_names=True)
        opened.check_complete()
        try:
            entries = [entry for entry in opened.children(_PXE) if not entry.directory]
        except KeyError:
            raise UnsupportedFormat("Unrecognized CoreOS ISO image.") from None
        stem = Path(image).stem
        targets = [
            os.path.join(output_dir, f"{stem}-{Path(entry.path).name.lower()}")  # noqa: PTH118 - "./x" stays "./x"
            for entry in entries
        ]
        for target in targets:
            check_free(target)
        Path(output_dir).mkdir(parents=True, exist_ok=True)
        for entry, target in zip(entries, targets, strict=True):
            click.echo(target)
            with new_file(target, private=False) as made:
                copy_range(file, made.fileno(), entry.offset, entry.size)


@extract.command("minimal-iso")
@click.option("--output-rootfs", metavar="FILE", help="Extract the root file system too.")
@click.option("--rootfs-url", metavar="URL", help="Where the live system finds its root file system.")
@_image
@click.argument("output", metavar="[OUTPUT_ISO]", default="-")
def minimal_iso(image: str, output: str, output_rootfs: str | None, rootfs_url: str | None) -> None:
    """Make an image without the root file system, for slow virtual media; - is standard output."""
    with read_image(image) as file, contextlib.ExitStack() as outputs:
        live = LiveIso(file)
        recipe = recipe_of(live)
        out = binary_output() if output == "-" else None
        made = outputs.enter_context(new_file(output) if out is None else scratch_file())
        made.writelines(recipe.chunks(live.iso))
        made.flush()
        patches = minimal_changes(LiveIso(made), rootfs_url)
        if output_rootfs is not None:
            if ROOTFS not in live.iso:
                raise UnsupportedFormat("This ISO image has no root file system to extract.")
            rootfs = live.iso.entry(ROOTFS)
            copy = outputs.enter_context(new_file(output_rootfs, private=False))
            copy_range(file, copy.fileno(), rootfs.offset, rootfs.size)
        if out is None:
            write_patches(made.fileno(), patches)
        else:
            stream(made, patches, out)


def _old_name(name: str, command: click.Command, params: list[click.Parameter]) -> None:
    """coreos-installer's first names for the Ignition verbs still work."""
    assert command.callback is not None
    iso.add_command(
        OnceCommand(name, callback=command.callback, params=params, help=command.help, hidden=True)
    )


_old_name("show", show_ignition, show_ignition.params)
_old_name("remove", remove_ignition, remove_ignition.params)
_old_name(
    "embed",
    embed_ignition,
    [
        *(param for param in embed_ignition.params if param.name != "config"),
        click.Option(
            ["-c", "--config"], metavar="FILE", help="The Ignition config. Default: standard input."
        ),
    ],
)
