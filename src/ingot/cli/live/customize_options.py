"""The options that `iso customize` and `pxe customize` share, and what they mean as a `Customization`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ingot.formats import FormatError
from ingot.formats.coreos import Customization, Input
from ingot.formats.coreos.console import normal_console

Command = TypeVar("Command", bound=Callable[..., Any])

_FILES: Final = {
    "dest-ignition": "Ignition config for the installed system; the installer runs by itself.",
    "network-keyfile": "NetworkManager keyfile for the live system, and the installed one if the installer runs.",
    "network-nmstate": "Desired state of nmstate (YAML or JSON), which becomes such keyfiles.",
    "ignition-ca": "Certificates (PEM) that Ignition trusts, in the live system and the installed one.",
    "pre-install": "Script to run before the installer.",
    "post-install": "Script to run after the installer.",
    "installer-config": "Configuration file of the installer, which runs by itself.",
    "live-ignition": "Ignition config for the live system.",
}
_WORDS: Final = {
    "dest-console": (
        "CONSOLE",
        "Console of the installed system's kernel and boot loader, like ttyS0,115200n8.",
    ),
    "dest-karg-append": ("ARG", "Append to the installed system's kernel arguments."),
    "dest-karg-delete": ("ARG", "Delete from the installed system's kernel arguments."),
}


def customize_options(command: Command) -> Command:
    for name, text in reversed(_FILES.items()):
        command = click.option(f"--{name}", metavar="FILE", multiple=True, help=text)(command)
    for name, (metavar, text) in reversed(_WORDS.items()):
        checked = _consoles if name == "dest-console" else None
        command = click.option(f"--{name}", metavar=metavar, multiple=True, callback=checked, help=text)(
            command
        )
    return click.option(
        "--dest-device",
        metavar="DEVICE",
        help="Install to this device, without asking; the installer runs by itself.",
    )(command)


def customization(options: Mapping[str, Any]) -> Customization:
    """The values of these options, with the files read."""
    given: dict[str, Any] = {_field(name): _read(options[_field(name)]) for name in _FILES}
    words: dict[str, tuple[str, ...]] = {_field(name): options[_field(name)] for name in _WORDS}
    for word in (options["dest_device"] or "", *(word for each in words.values() for word in each)):
        word.encode()  # raises where the command line had bytes that are no text; YAML would disguise them
    given |= words
    return Customization(dest_device=options["dest_device"], **given)


def tell(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(note, err=True)


def _consoles(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """A console that nobody knows is a wrong option, not a wrong image."""
    try:
        return tuple(normal_console(value) for value in values)
    except FormatError as error:
        raise click.BadParameter(str(error)) from error


def _field(option: str) -> str:
    return option.replace("-", "_")


def _read(paths: Sequence[str]) -> list[Input]:
    return [Input(path, Path(path).read_bytes()) for path in paths]
